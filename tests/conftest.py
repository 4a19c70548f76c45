"""Fixtures of the browser tests; what they need is imported when one asks for them."""

import os

import pytest


@pytest.fixture(scope="session")
def site():
    """Address of the built site, served as ``make serve`` serves it."""
    from tools.notebooks import ROOT
    from tools.serve import HTML, served, source_digest

    assert (ROOT / "_build" / "built-from").read_text() == source_digest(), "make site"
    with served(ROOT / HTML) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    from tools.browser import browser_path, launched

    path = browser_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no browser: CI needs Chromium")
        pytest.skip("no browser found: install Chromium to test the site")
    with launched(path) as browser:
        yield browser
