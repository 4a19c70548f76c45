"""The browser of the tests, the printed book and the benchmarks, and a cold visit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.command import PipelineError

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


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
    visitor = browser.new_context(**context)
    page = visitor.new_page()
    session = visitor.new_cdp_session(page)
    session.send("Network.enable")
    if network:
        session.send("Network.emulateNetworkConditions", network)
    sizes: list[int] = []
    session.on(
        "Network.loadingFinished", lambda e: sizes.append(e["encodedDataLength"])
    )
    page.goto(address, wait_until="networkidle")
    seconds = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
    )
    visitor.close()
    return seconds, sum(sizes)
