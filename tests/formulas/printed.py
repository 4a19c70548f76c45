"""Displayed formulas of the statements, and the tests that recompute each of them.

A test takes the formula as the page prints it, so that a formula which changes has no
test until somebody looks at both again::

    @formula("prop-drift", r"a = b + c .")
    def test_drift(rng): ...
"""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from tools.texts import texts

STATEMENT = re.compile(
    r"^(`{3,})\{prf:(?!proof)\w+\}[^\n]*\n:label: (\S+)\n(.*?)^\1\s*$", re.M | re.S
)
DISPLAY = re.compile(r"\$\$(.*?)\$\$", re.S)


class Formula(NamedTuple):
    label: str
    tex: str  # as it is printed, with one blank for every run of white space


#: The tests of each formula.
RECOMPUTED: dict[Formula, list[Callable]] = {}


def plain(tex: str) -> str:
    return " ".join(tex.split())


def formula(label: str, tex: str):
    """Mark a test that recomputes this displayed formula of the statement."""

    def marked(test):
        RECOMPUTED.setdefault(Formula(label, plain(tex)), []).append(test)
        return test

    return marked


@cache
def printed() -> tuple[Formula, ...]:
    """All displayed formulas of all statements of the book, in order."""
    return tuple(
        Formula(label, plain(tex))
        for path in texts()
        for _, label, body in STATEMENT.findall(path.read_text("utf-8"))
        for tex in DISPLAY.findall(body)
    )
