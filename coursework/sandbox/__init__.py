"""What the process of a student's code is made of; it sees these files and ``lib``."""
