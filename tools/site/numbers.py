"""Numbers of statements on the pages of further checks.

Sphinx numbers the statements of all pages without a number of their own in one row, so
that "Proposition 10" of such a page would look like the tenth of a chapter. Here those
of chapter 4's page are M4.1, M4.2, and so on.
"""

from __future__ import annotations

import re
from typing import Any

FURTHER = re.compile(r"(?:.*/)?more-checks-(\d+)")
KIND = "theorem"  # the counter that all statements share


def as_sphinx_counts(app: Any, env: Any, *_: Any) -> list[str]:
    """Sphinx compares its new numbers with its own of the last build."""
    for page, own in getattr(env, "limit_counted", {}).items():
        if page in env.toc_fignumbers:
            env.toc_fignumbers[page][KIND] = own
    return []


def number_further_checks(app: Any, env: Any) -> list[str]:
    env.limit_counted = {}
    for page, kinds in env.toc_fignumbers.items():
        if (match := FURTHER.fullmatch(page)) and KIND in kinds:
            env.limit_counted[page] = kinds[KIND]
            order = sorted(kinds[KIND], key=kinds[KIND].__getitem__)
            kinds[KIND] = {
                name: (f"M{match[1]}", place) for place, name in enumerate(order, 1)
            }
    return []


def setup(app: Any) -> None:
    app.connect("env-get-outdated", as_sphinx_counts)
    # After Sphinx has numbered what the pages have.
    app.connect("env-get-updated", number_further_checks, priority=900)
