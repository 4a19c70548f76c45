"""Cells that need the real images are skipped where those are absent, except in CI."""

import os
from pathlib import Path

import pytest

from lib.data import DataUnavailable, fashion_mnist

TAG = "needs-images"


def pytest_sessionstart(session):
    """What nbval leaves out of the comparison, unless a command names another file."""
    if getattr(session.config.option, "nbval_sanitize_with", "") is None:
        path = Path(__file__).parent / "tools" / "nbval.cfg"
        session.config.option.nbval_sanitize_with = str(path)


def pytest_collection_modifyitems(config, items):
    needing = [
        item
        for item in items
        if TAG in getattr(item, "cell", {}).get("metadata", {}).get("tags", ())
    ]
    if not needing or os.environ.get("CI"):
        return
    try:
        fashion_mnist()
    except DataUnavailable as error:
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=str(error)))
