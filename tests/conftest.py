"""Tests never assert seconds, and neither does the property testing.

In CI the examples are the same in every run: what is red there is red here.
"""

import os

from hypothesis import settings

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
