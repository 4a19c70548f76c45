"""How long a test waits for what should happen at all: one generous limit for all.

No test depends on the clock. Each waits for a condition, and ends as soon as it is
true; the limit only ends a test of what will never happen.
"""

from tools.command import LIMIT, until

__all__ = ["LIMIT", "MILLISECONDS", "arrived", "frames", "patient", "until"]
MILLISECONDS = 1000 * LIMIT  # as Playwright counts


def frames(page, count=3):
    """After so many frames of a page, by which it has done what it does in its next."""
    page.evaluate(
        "async (count) => {"
        " while (count--) await new Promise(requestAnimationFrame); }",
        count,
    )


def arrived(page):
    """When a page is all there: before, what is far below the window has no text."""
    page.wait_for_selector("html:not([data-arriving])", state="attached")


def patient(browser):
    """Let every page of a browser wait as long as the tests do."""
    for name in ("new_context", "new_page"):
        setattr(browser, name, _patiently(getattr(browser, name)))
    return browser


def _patiently(make):
    def made(**options):
        opened = make(**options)
        opened.set_default_timeout(MILLISECONDS)
        return opened

    return made
