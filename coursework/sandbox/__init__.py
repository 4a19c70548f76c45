"""Files of the process of a student's code; it sees these and ``lib``."""
