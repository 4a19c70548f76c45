"""How long a test waits for what should happen at all: one generous limit for all.

No test depends on the clock. Each waits for a condition, and ends as soon as it is
true; the limit only ends a test of what will never happen.
"""

import time

LIMIT = 240  # seconds, for what needs a few on an idle machine
MILLISECONDS = 1000 * LIMIT  # as Playwright counts


def until(condition, stopped=lambda: False):
    """The value of a condition once it is true; else its last, at the limit.

    What can no longer come true because something has ``stopped`` is not waited for.
    """
    end = time.monotonic() + LIMIT
    while True:
        over = stopped() or time.monotonic() > end
        if (found := condition()) or over:
            return found
        time.sleep(0.1)


def frames(page, count=3):
    """After so many frames of a page, by which it has done what it does in its next."""
    page.evaluate(
        "async (count) => {"
        " while (count--) await new Promise(requestAnimationFrame); }",
        count,
    )


def patient(browser):
    """Let every page of a browser wait as long as the tests do."""
    for name in ("new_context", "new_page"):
        setattr(browser, name, _patiently(getattr(browser, name)))
    return browser


def _patiently(make):
    def made(**options):
        found = make(**options)
        found.set_default_timeout(MILLISECONDS)
        return found

    return made
