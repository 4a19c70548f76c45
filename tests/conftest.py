"""Tests never assert seconds, and neither does the property testing."""

from hypothesis import settings

settings.register_profile("no seconds", deadline=None)
settings.load_profile("no seconds")
