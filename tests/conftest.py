"""Fixtures of the browser tests, and the settings of the property tests.

Tests never assert seconds, and neither does the property testing. In CI the examples
are the same in every run: what is red there is red here.
"""

import asyncio
import os
import threading

import pytest
import tornado.httpserver
import tornado.ioloop
from hypothesis import settings

from tools.browser import browser_path
from tools.notebooks import ROOT
from tools.serve import HTML, application, source_digest

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def site():
    """Address of the built site, served as ``make serve`` serves it."""
    assert (ROOT / "_build" / "built-from").read_text() == source_digest(), "make site"
    ready, state = threading.Event(), {}

    def run():
        asyncio.set_event_loop(asyncio.new_event_loop())
        server = tornado.httpserver.HTTPServer(application(ROOT / HTML))
        server.listen(0, address="127.0.0.1")
        sockets = server._sockets.values()
        state["port"] = next(iter(sockets)).getsockname()[1]
        state["loop"] = tornado.ioloop.IOLoop.current()
        ready.set()
        state["loop"].start()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(10)
    yield f"http://127.0.0.1:{state['port']}/"
    state["loop"].add_callback(state["loop"].stop)
    thread.join(10)


@pytest.fixture(scope="session")
def browser():
    path = browser_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no browser: CI needs Chromium")
        pytest.skip("no browser found: install Chromium to test the site")
    from playwright.sync_api import sync_playwright

    quiet = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()
