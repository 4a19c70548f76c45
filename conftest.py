"""The notebooks that nbval executes: watched, and without what is not there.

Their kernels refuse to open files that a reader of one notebook does not have. Cells
that need the real images are skipped where those are absent, except in CI.
"""

import os
import tempfile
from pathlib import Path

import pytest

from lib.data import DataUnavailable, fashion_mnist
from tools.alone import profile

TAG = "needs-images"


def pytest_configure(config):
    """Kernels of nbval start with the watch, and without settings of the user."""
    if not any(config.getoption(name, False) for name in ("nbval", "nbval_lax")):
        return
    folder = tempfile.TemporaryDirectory(prefix="watched-")
    patch = pytest.MonkeyPatch()
    root = Path(__file__).resolve().parent
    patch.setenv("IPYTHONDIR", str(profile(Path(folder.name), root)))
    config.add_cleanup(patch.undo)
    config.add_cleanup(folder.cleanup)


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
