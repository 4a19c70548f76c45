"""Fixtures of the browser tests; what they need is imported when one asks for them."""

import os

import pytest

# Each of their tests opens a page of its own, so that two workers can share them.
SHARED = {"test_site"}
ASKED_FOR = {
    "slow": "minutes long; `pytest -m slow`, and weekly",
    "browsers": "Firefox and WebKit; `make browsers`, and weekly",
}


def pytest_configure(config):
    config.addinivalue_line("markers", "xdist_group(name): tests of one worker")
    for name, what in ASKED_FOR.items():
        config.addinivalue_line("markers", f"{name}: {what}")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """Keep the tests of a file on one worker, where servers are started once.

    What only a command that names markers asks for is left out.
    """
    for item in items:
        if item.path.stem not in SHARED:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if config.option.markexpr:
        return
    out = [each for each in items if any(map(each.get_closest_marker, ASKED_FOR))]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)


@pytest.fixture(scope="session")
def site():
    """Address of the built site, served as ``make serve`` serves it."""
    from tools.command import ROOT
    from tools.serve import HTML, STAMP, served, source_digest

    assert (ROOT / STAMP).read_text() == source_digest(), "make site"
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
