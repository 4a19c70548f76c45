"""The limit that describes a transformer of given sizes.

:func:`describe` returns a row for each quantity that decides between limits: its
value, the limit that applies, what that predicts, the correction at this size, and the
label of the statement. ``python -m lib.regimes`` prints them; its ``--preset`` knows
published models.
"""

from lib.regimes.presets import PRESETS, Preset, preset
from lib.regimes.rows import Row, describe

__all__ = ["PRESETS", "Preset", "Row", "describe", "preset"]
