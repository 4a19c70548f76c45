"""What holds for all tests: a Ctrl-C that is heard, and the notebooks of nbval.

Notebooks are executed watched, and without what is not there: their kernels refuse to
open files that a reader of one notebook does not have, and cells that need the real
images are skipped where those are absent, except in CI.
"""

import os
import signal
import tempfile
from pathlib import Path

import pytest

from lib.data import DataUnavailable, fashion_mnist
from tools.alone import ALIKE, profile

TAG = "needs-images"


def pytest_configure(config):
    """Ctrl-C is heard; kernels of nbval are watched, alike, without own settings."""
    # A shell starts its jobs in the background with SIGINT ignored, and so do their
    # children; tests that press Ctrl-C would wait for nothing.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not any(config.getoption(name, False) for name in ("nbval", "nbval_lax")):
        return
    folder = tempfile.TemporaryDirectory(prefix="watched-")
    patch = pytest.MonkeyPatch()
    root = Path(__file__).resolve().parent
    patch.setenv("IPYTHONDIR", str(profile(Path(folder.name), root)))
    for name, value in ALIKE.items():
        patch.setenv(name, os.environ.get(name, value))
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
