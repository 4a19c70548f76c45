"""The browser of the tests, the printed book and the benchmarks, and a timed visit."""

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
# How often an exhibit draws in each of some seconds, as the frames count them, once one
# of its sliders is at its upper end, which is a value that is known.
DRAWN = """async ([label, value, seconds]) => {
  const figure = document.querySelector(".exhibit-moves");
  const canvas = figure.querySelector(".exhibit-stage canvas");
  const named = [...figure.querySelectorAll("label")];
  const { htmlFor } = named.find((each) => each.textContent === label);
  const slider = document.getElementById(htmlFor);
  slider.value = slider.max;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const said = slider.nextElementSibling.textContent;
  if (said !== String(value)) throw Error(`${label} are at most ${said}, not ${value}`);
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  let drawn = 0;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    if (this.canvas === canvas) drawn++;
    return clear.apply(this, box);
  };
  const frame = () => new Promise(requestAnimationFrame);
  const counts = [];
  let from = await frame();
  for (drawn = 0; counts.length < seconds; ) {
    const now = await frame();
    if (now < from + 1000) continue;
    counts.push((1000 * drawn) / (now - from));
    [from, drawn] = [now, 0];
  }
  CanvasRenderingContext2D.prototype.clearRect = clear;
  return counts;
}"""


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


def frames(
    browser: Any, address: str, most: tuple[str, int], seconds: int, **context: Any
) -> tuple[list[float], float]:
    """Frames that a page's exhibit draws in each of some seconds, and their cost.

    ``most`` is the label of a slider, and the value at its upper end, where it is put.
    The cost of a frame is in milliseconds of script, and does not depend on how often
    a browser shows one.
    """
    with visitor(browser, None, **context) as (page, session):
        page.goto(address, wait_until="load")
        page.locator(".exhibit-plays").first.wait_for()
        session.send("Performance.enable")
        before = scripted(session)
        counts = page.evaluate(DRAWN, [*most, seconds])
        return counts, 1000 * (scripted(session) - before) / sum(counts)


def scripted(session: Any) -> float:
    """Seconds that a page has spent in scripts."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "ScriptDuration")


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
