"""Fixtures of the browser tests, and the settings of the property tests.

Tests never assert seconds, and neither does the property testing. In CI the examples
are the same in every run: what is red there is red here.
"""

import os

import pytest
from hypothesis import settings

from tools.browser import browser_path, launched
from tools.notebooks import ROOT
from tools.serve import HTML, served, source_digest

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "slow: minutes long; run by `pytest -m slow`, and in the weekly run"
    )


def pytest_collection_modifyitems(config, items):
    """Slow tests are run when a command names markers, and left out otherwise."""
    if config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    items[:] = [item for item in items if item not in slow]
    config.hook.pytest_deselected(items=slow)


@pytest.fixture(scope="session")
def site():
    """Address of the built site, served as ``make serve`` serves it."""
    assert (ROOT / "_build" / "built-from").read_text() == source_digest(), "make site"
    with served(ROOT / HTML) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    path = browser_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no browser: CI needs Chromium")
        pytest.skip("no browser found: install Chromium to test the site")
    with launched(path) as browser:
        yield browser
