"""The browser of the tests, the printed book and the benchmarks, and a cold visit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.command import PipelineError

# The first has no windows to draw: it opens a page in a third of the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# When the frame is drawn that follows the one in which an exhibit comes to life.
WATCH = """
new MutationObserver((_, watch) => {
  if (!document.querySelector(".exhibit-moves")) return;
  watch.disconnect();
  requestAnimationFrame(() => requestAnimationFrame((now) => { window.moved = now; }));
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["class"] });
"""


def browser_path() -> str | None:
    """The first browser found on this machine, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def required_browser(purpose: str) -> str:
    """The same, where there must be one; ``purpose`` says what for."""
    if path := browser_path():
        return path
    raise PipelineError(f"no browser found: install Chromium to {purpose}")


@contextmanager
def launched(path: str) -> Iterator[Any]:
    """The browser at ``path``, without a window, speaking to nobody by itself."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


def cold_visit(
    browser: Any, address: str, network: dict[str, Any] | None = None, **context: Any
) -> tuple[float, int]:
    """Seconds to the first contentful paint, and bytes on the wire with headers.

    The cache is empty. ``network`` holds the conditions that DevTools emulates.
    """
    with visitor(browser, network, **context) as (page, session):
        sizes: list[int] = []
        session.on(
            "Network.loadingFinished", lambda e: sizes.append(e["encodedDataLength"])
        )
        page.goto(address, wait_until="networkidle")
        seconds = page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
        )
        return seconds, sum(sizes)


def first_movement(
    browser: Any,
    address: str,
    network: dict[str, Any] | None = None,
    slowed: float = 1,
    **context: Any,
) -> float | None:
    """Seconds to the first frame of a page's exhibit; None where there is none.

    The cache is empty, and the processor as many times slower as ``slowed`` says.
    """
    with visitor(browser, network, **context) as (page, session):
        session.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
        page.add_init_script(WATCH)
        page.goto(address, wait_until="domcontentloaded")
        if not page.locator(".book-exhibit").count():
            return None
        return page.wait_for_function("() => window.moved").json_value() / 1000


@contextmanager
def visitor(
    browser: Any, network: dict[str, Any] | None, **context: Any
) -> Iterator[tuple[Any, Any]]:
    """A page whose cache is empty, and the session that watches it."""
    with browser.new_context(**context) as fresh:
        page = fresh.new_page()
        session = fresh.new_cdp_session(page)
        session.send("Network.enable")
        if network:
            session.send("Network.emulateNetworkConditions", network)
        yield page, session
