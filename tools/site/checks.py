"""Verdicts on a page: a chip of a few words, and what it unfolds to.

The chip has a mark, a few words and the number. Below it stand the claim, what was
predicted and measured, how far the two are apart and how far they may be. Numbers are
printed with the digits that mean something. Under a statement, one line counts its
checks and unfolds to them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from tools.command import PipelineError
from tools.verdicts import Row

# What lib.claims prints of a comparison.
NUMBERS = re.compile(
    r"measured (?P<measured>\S+)(?: \(to (?P<zero>\S+)\))?"
    r"(?: at \[(?P<entry>[\d, ]+)\])?"
    r"(?: ± (?P<stderr>\S+) \(s\.e\.\))?; "
    r"(?:expected (?P<expected>\S+), tolerance (?P<tolerance>\S+)"
    r"|(?P<side>at least|at most) (?P<bound>\S+))"
    r"(?: \(worst of (?P<entries>\d+) entries\))?"
)
ROUNDING = re.compile("under 10⁻")
WORDS, LETTERS = 5, 40  # of a chip, whichever is reached first
# What a claim may start with that is not what it claims: at most a few words.
CONDITION = re.compile(
    r"(?:as printed|corrected|observed|consistency|stability|[\wβ]+ first|together): "
    r"|(?:at|in|from|for|with|after|by|on|near|of|inside|outside)(?: [^,:( ]+){1,6}, "
)
# Words that a cut leaves without what they belong to.
DANGLING = {
    *("a", "an", "and", "as", "at", "by", "for", "from", "has", "have", "in", "is"),
    *("its", "no", "not", "of", "on", "or", "than", "that", "the", "their", "to"),
    *("until", "up", "when", "where", "which", "with", "within", "without", "are"),
}
UP = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Numbers:
    """The numbers of a verdict, in the digits that mean something.

    ``off`` is the distance of measurement and prediction, None for a bound, which has
    no tolerance either.
    """

    predicted: str
    measured: str
    off: str | None
    allowed: str | None
    worst: str | None


def numbers_of(row: Row) -> Numbers:
    """Read what a verdict printed; raises PipelineError where it prints otherwise."""
    if not (match := NUMBERS.fullmatch(row.numbers)):
        raise PipelineError(
            f"{row.page}: the numbers of the verdict {row.claim!r} are not in the form"
            f" that pages know: {row.numbers!r}"
        )
    part = match.groupdict()
    worst = f"the worst of {part['entries']}" if part["entries"] else None
    value, last = number(part["measured"]), _last_place(part["measured"])
    stderr = number(part["stderr"]) if part["stderr"] else None
    if part["side"]:
        bound = number(part["bound"])
        unit = _power(stderr) if stderr else _unit_beside(value, bound)
        predicted = f"{part['side']} {pretty(float(f'{bound:.4g}'))}"
        off = allowed = None
    else:
        expected, tolerance = number(part["expected"]), number(part["tolerance"])
        unit = _power(stderr) if stderr else _power(tolerance) / 10
        # Six digits of a prediction are printed.
        known = max(unit, last, _power(expected) / 1e5)
        predicted = min(pretty(expected), pretty(expected, known), key=len)
        apart, allowed = abs(value - expected), pretty(tolerance)
        if row.word == "HOLDS" and (apart < known or known > tolerance):
            off = f"under {pretty(min(tolerance, known))}"
        else:
            digits = max(known, _power(apart) / 10)
            off = min(pretty(apart, digits), pretty(float(f"{apart:.2g}")), key=len)
    if part["zero"] and not stderr:
        measured = f"under {pretty(number(part['zero']))}"
    elif stderr and _power(stderr) >= last / 2:
        unit = max(unit, last if not part["zero"] else 0)
        measured = f"{pretty(value, unit)} ± {pretty(stderr, _power(stderr))}"
    else:
        measured = pretty(value, max(unit, last, _power(value) / 1e4))
        measured = min(measured, pretty(value), key=len)
    return Numbers(predicted, measured, off, allowed, worst)


def number(text: str) -> float:
    """A number as a verdict prints it, with a minus sign and not a hyphen."""
    return float(text.replace("−", "-").replace("∞", "inf"))


def pretty(value: float, unit: float = 0.0) -> str:
    """A number for readers: to a multiple of ``unit``, with powers of ten.

    Without a unit, or with one below its third digit, it keeps what it has, up to six.
    """
    if not math.isfinite(value):
        return str(value).replace("inf", "∞").replace("-", "−")
    if value and (abs(value) >= 1e5 or abs(value) < 1e-4):
        power = math.floor(math.log10(abs(value)) + 1e-9)
        places = 2 if not unit else max(0, min(3, power - round(math.log10(unit))))
        head = f"{value / 10**power:.{places}f}"
        head = head.rstrip("0").rstrip(".") if not unit else head
        tail = f"10{str(power).translate(UP)}"
        text = f"{head}·{tail}" if head.lstrip("-") != "1" else head[:-1] + tail
    elif unit:
        text = f"{value:.{max(0, min(6, -math.floor(math.log10(unit) + 1e-9)))}f}"
    else:
        text = f"{value:.6g}"
    return text.replace("-", "−")


def _power(value: float) -> float:
    """The power of ten of the first digit of a number."""
    return float(10 ** math.floor(math.log10(abs(value)) + 1e-9)) if value else 1.0


def _last_place(text: str) -> float:
    """Value of one in the last digit of a printed number."""
    head, _, power = text.replace("−", "-").lower().partition("e")
    return float(10.0 ** (int(power or 0) - len(head.partition(".")[2])))


def _unit_beside(value: float, bound: float) -> float:
    """Three digits, or as many as show on which side of a bound a number lies."""
    unit = _power(value) / 100
    while unit > 1e-6 and round(value / unit) == round(bound / unit) and value != bound:
        unit /= 10
    return unit


def few_words(claim: str) -> str:
    """The first words of a claim that stand for it, without a condition before them."""
    start = CONDITION.match(claim)
    words = claim[start.end() if start else 0 :].split()
    kept: list[str] = []
    for word in words:
        real = sum(each[:1].isalpha() and len(each) > 2 for each in [*kept, word])
        if kept and (real > WORDS or len(" ".join([*kept, word])) > LETTERS):
            break
        kept.append(word)
    if len(kept) == len(words):
        return " ".join(kept)
    while len(kept) > 1 and kept[-1].strip(",;:").lower() in DANGLING:
        kept.pop()
    return " ".join(kept).rstrip(",;:") + " …"


def mathematics(text: str) -> str:
    """A claim as HTML, where n^−½ and s_i have their indices in their places."""
    html = escape(text)
    html = re.sub(r"\^\(([^()]+)\)", r"<sup>\1</sup>", html)
    html = re.sub(r"(?<=\w)\^([−-]?[\w½/]+)", r"<sup>\1</sup>", html)
    return re.sub(r"\b([A-Za-zα-ωΑ-Ω])_(\w{1,3})\b", r"\1<sub>\2</sub>", html)


def item(row: Row, statement: str | None) -> str:
    """Details that a chip unfolds to for one verdict; ``statement`` is an address."""
    holds, numbers = row.word == "HOLDS", numbers_of(row)
    claim = mathematics(row.claim)
    if statement:
        claim = f'<a class="reference internal" href="{escape(statement)}">{claim}</a>'
    said = "Holds" if holds else "A tempting mistake, rejected"
    lines = [
        ("prediction" if holds else "it would predict", numbers.predicted),
        ("measured", " ".join(filter(None, [numbers.measured, _of(numbers.worst)]))),
        ("apart by", numbers.off),
        ("allowed", numbers.allowed),
    ]
    terms = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in lines if value
    )
    kind = "holds" if holds else "rejected"
    # Where words of its own say that all is as predicted, a bare 0 or 1 adds nothing,
    # and an error of rounding neither.
    exact = numbers.measured == numbers.predicted or ROUNDING.match(numbers.measured)
    bare = row.chip and exact and numbers.predicted in ("0", "1")
    return (
        f'<div class="verdict verdict-{kind}" id="{row.id}" data-claim="{_data(row)}"'
        f' data-number="{"" if bare else escape(numbers.measured)}">'
        f'<p class="verdict-claim"><b>{said}:</b> {claim}</p><dl>{terms}</dl></div>'
    )


def _of(worst: str | None) -> str | None:
    return f"({worst})" if worst else None


def _data(row: Row) -> str:
    return escape(row.chip or few_words(row.claim))


MARKS = {"holds": "✓", "rejected": "✗"}


def mark(kind: str, heard: str = "") -> str:
    """The mark of a check; who hears the page needs it where no word says the same."""
    classes = f"check-mark check-mark-{kind}"
    role = f'role="img" aria-label="{heard}"' if heard else 'aria-hidden="true"'
    return f'<span class="{classes}" {role}>{MARKS[kind]}</span>'


def chip(parts: Sequence[tuple[str, str, str]]) -> str:
    """The line of a chip for verdicts given by their kind, words and number.

    The first that holds stands there in full, and for all; below it are the others. A
    number may be missing, where the words say all.
    """
    kind, words, value = min(parts, key=lambda part: part[0] != "holds")
    holds = kind == "holds"
    words, number = mathematics(words), f"<b>{escape(value)}</b>"
    if holds:
        said = f"{mark(kind, 'holds:')} {words}" + (f": {number}" if value else "")
    else:
        said = f"{mark(kind)} rejected: {words}" + (f" ({number})" if value else "")
    return said + (f" · {len(parts) - 1} more" if parts[1:] else "")


def beside(numbers: Numbers, kind: str) -> str:
    """Measurement and prediction of a verdict, in words."""
    says = "predicted" if kind == "holds" else "it would be"
    return f"{numbers.measured}, {says} {numbers.predicted}"


def statement_line(rows: Iterable[Row], addresses: Iterable[str]) -> str:
    """Line under a statement: the number of its checks, with their list."""
    rows = list(rows)
    holding = sum(row.word == "HOLDS" for row in rows)
    rejected = len(rows) - holding
    said = []
    if holding:
        said.append(
            f"{mark('holds')} {holding} check{' holds' if holding == 1 else 's hold'}"
        )
    if rejected:
        verb = "variant is" if rejected == 1 else "variants are"
        said.append(f"{mark('rejected')} {rejected} false {verb} rejected")
    lines = []
    for row, address in zip(rows, addresses, strict=True):
        kind = "holds" if row.word == "HOLDS" else "rejected"
        what = mathematics(row.claim)
        told = what if kind == "holds" else f"A tempting mistake: {what}"
        lines.append(
            f'<li>{mark(kind)} <a class="reference internal" href="{escape(address)}">'
            f"{told}</a> <span>{escape(beside(numbers_of(row), kind))}</span></li>"
        )
    return (
        f'<details class="statement-checks"><summary>{"; ".join(said)}</summary>'
        f"<ul>{''.join(lines)}</ul></details>"
    )
