"""The built site in a browser: quiet, self-contained, and no wider than the screen."""

import asyncio
import gzip
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest
import tornado.httpserver
import tornado.ioloop

from tools.notebooks import ROOT
from tools.serve import HTML, application, source_digest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SITE = ROOT / HTML


@pytest.fixture(scope="session")
def site():
    """Address of the built site, served as ``make serve`` serves it."""
    assert (ROOT / "_build" / "built-from").read_text() == source_digest(), "make site"
    ready, state = threading.Event(), {}

    def run():
        asyncio.set_event_loop(asyncio.new_event_loop())
        server = tornado.httpserver.HTTPServer(application(SITE))
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
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
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


def pages():
    """Addresses of all pages of the built site, less the redirection at its root."""
    found = (p.relative_to(SITE).as_posix() for p in SITE.rglob("*.html"))
    return sorted(p for p in found if p != "index.html" and "_static" not in p)


def test_root_leads_to_the_landing_page(site, browser):
    page = browser.new_page()
    page.goto(site, wait_until="commit")
    page.wait_for_url("**/chapters/index.html")
    assert page.title().startswith("Attention in the Limit")
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_quiet_self_contained_and_fits(site, browser, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    assert len(pages()) >= 7
    problems = []
    for name in pages():
        page = context.new_page()
        seen = []
        page.on("console", lambda m, s=seen: m.type == "error" and s.append(m.text))
        page.on("pageerror", lambda error, s=seen: s.append(str(error)))
        page.on("requestfailed", lambda request, s=seen: s.append(request.url))
        page.on(
            "request",
            lambda r, s=seen: (
                s.append(f"foreign: {r.url}")
                if not r.url.startswith((site, "data:", "blob:"))
                else None
            ),
        )
        page.goto(site + name, wait_until="networkidle")
        page.evaluate("window.MathJax?.startup?.promise")
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wide > 0:
            seen.append(f"scrolls {wide} px sideways")
        problems += [f"{name}: {problem}" for problem in seen]
        page.close()
    context.close()
    assert problems == []


def test_chapter_shows_its_verdicts_mathematics_and_figure(site, browser):
    page = browser.new_page()
    page.goto(f"{site}chapters/2-softmax-expansion.html", wait_until="networkidle")
    assert page.locator(".verdict").count() >= 5
    assert page.locator("mjx-container").count() > 20
    assert page.locator(".book-figure svg").first.is_visible()
    for link in page.locator(".verdict a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    page.close()


def test_figure_ink_follows_the_theme(site, browser):
    inks = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{site}chapters/2-softmax-expansion.html")
        inks.append(
            page.evaluate(
                "[getComputedStyle(document.querySelector('.book-figure svg')).color,"
                " getComputedStyle(document.body).color]"
            )
        )
        context.close()
    assert inks[0][0] == inks[0][1] and inks[1][0] == inks[1][1]
    assert inks[0] != inks[1]


def test_pages_travel_compressed(site):
    request = urllib.request.Request(
        f"{site}chapters/index.html", headers={"Accept-Encoding": "gzip"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert b"<html" in gzip.decompress(answer.read())


def test_full_port_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "tools.serve", "--port", str(port)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 and result.stderr.startswith(
        f"error: port {port} is taken"
    )


def test_explorer_answers_arrow_keys_and_mouse(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site}chapters/2-softmax-expansion.html", wait_until="networkidle")
    explorer = page.locator(".book-explorer").first
    slider, value = explorer.locator("input").first, explorer.locator("output").first
    drawing, seen = explorer.locator("[role=img]"), set()
    slider.focus()
    for key in ("Home", "ArrowRight", "End"):
        slider.press(key)
        seen.add((value.inner_text(), drawing.inner_html()))
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.add((value.inner_text(), drawing.inner_html()))
    assert len({text for text, _ in seen}) == len({svg for _, svg in seen}) == 4
    assert box["height"] >= 44  # touch size
    page.close()


def test_explorer_shows_its_first_frame_without_scripts(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}chapters/2-softmax-expansion.html")
    assert page.locator(".book-explorer svg").first.is_visible()
    assert not page.locator(".explorer-controls").first.is_visible()
    context.close()
