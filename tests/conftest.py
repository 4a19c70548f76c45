"""Fixtures of the browser tests; what they need is imported when one asks for them."""

import os
from functools import cache

import pytest

# Each of its tests opens a page of its own, so that two workers can share them.
SHARED = "test_site.py"
ASKED_FOR = {
    "slow": "minutes long; `pytest -m slow`, and weekly",
    "browsers": "Firefox and WebKit; `make browsers`, and weekly",
}


def pytest_configure(config):
    for name, what in ASKED_FOR.items():
        config.addinivalue_line("markers", f"{name}: {what}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One worker has all tests of a file, for which servers are started once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            return nodeid if path.endswith(SHARED) else path

    return ByFile(config, log)


def pytest_collection_modifyitems(config, items):
    """Leave out what only a command that names markers asks for."""
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
    from playwright.sync_api import expect
    from waits import MILLISECONDS, patient

    from tools.browser import browser_path, launched

    path = browser_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no browser: CI needs Chromium")
        pytest.skip("no browser found: install Chromium to test the site")
    with launched(path) as browser:
        expect.set_options(timeout=MILLISECONDS)
        yield patient(browser)


@cache
def beginning(name):
    """A page of the site up to its first exhibit; the browser closes what is open.

    What follows takes longer to open than most exhibits take to be tried.
    """
    from test_site import SITE

    text = (SITE / name).read_text("utf-8")
    end = text.index("</figure>", text.index('book-exhibit"'))
    end = text.index("/>", text.index("<link", end)) + 2  # behind it is the style sheet
    return text[:end] + text[text.index("</article>", end) :]


@pytest.fixture
def visit(site, browser):
    """Opens a page, whole or up to its exhibit; at the end nothing has complained."""
    from test_site import opened
    from waits import MILLISECONDS

    contexts, seen = [], []

    def go(name, *, whole=False, init=None, routes=(), fails=False, **options):
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        context.set_default_timeout(MILLISECONDS)
        contexts.append(context)
        if init:
            context.add_init_script(init)
        if not whole:
            body = beginning(name)
            context.route(site + name, lambda route: route.fulfill(body=body))
        for pattern, handler in routes:
            context.route(pattern, handler)
        page = opened(context, site + name, [] if fails else seen)
        return page, page.locator(".book-exhibit").first

    yield go
    for context in contexts:
        context.close()
    assert seen == []
