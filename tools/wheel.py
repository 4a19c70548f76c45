"""The package as one file, which the site offers and each problem set brings along."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

from flit_core.wheel import make_wheel_in

from tools.command import ROOT

# The time that the files in it carry: the same package gives the same bytes.
EPOCH = {"SOURCE_DATE_EPOCH": "1577836800"}


def build(folder: Path) -> Path:
    """Write the wheel into a folder; return its path."""
    with mock.patch.dict(os.environ, EPOCH):
        made: Path = make_wheel_in(ROOT / "pyproject.toml", folder).file
    return made
