"""The record of the mutants of claims, and the claims that have none yet."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools.command import PipelineError, replace, today
from tools.mutants.sites import Mutant, Text

RECORD = Path("chapters/reference/claims-mutants.json")
REASONS = Path("tools/mutants/claims.toml")
#: Characters of a change that is shown with what stands around it, to tell its place.
SHORTEST, LONGEST = 16, 60

Row = dict[str, Any]


def read(root: Path) -> list[Row]:
    """The rows of the record; none where there is no record."""
    path = root / RECORD
    rows: list[Row] = (
        json.loads(path.read_text("utf-8"))["claims"] if path.exists() else []
    )
    return rows


def write(rows: list[Row], root: Path) -> None:
    content = {"date": today(), "claims": rows}
    replace(root / RECORD, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def row(
    page: str, said: Row, turned: tuple[Mutant, Row] | None, source: bytes | None
) -> Row:
    """One claim, the mutant, in the source of its statement, and what it read then."""
    start = {"page": page, "id": said["id"], "claim": said["claim"]}
    if turned is None or source is None:
        return start | {"mutant": None, "red": None}
    mutant, verdict = turned
    was, to = change(mutant, source)
    return start | {
        "mutant": {
            "key": mutant.key, "file": mutant.file,
            "function": mutant.unit.scope or None, "was": was, "to": to,
        },
        "red": {name: verdict[name] for name in ("word", "measured", "numbers")},
    }  # fmt: skip


def change(mutant: Mutant, source: bytes) -> tuple[str, str]:
    """The expression around a change, as it stood and as it stands now."""
    around = [
        (mutant.start, mutant.end),
        *sorted(_spans(source), key=lambda s: s[1] - s[0]),
    ]
    shown = mutant.was, mutant.to
    for start, end in around:
        if start <= mutant.start and mutant.end <= end:
            before = source[start : mutant.start].decode()
            after = source[mutant.end : end].decode()
            pair = [
                " ".join(f"{before}{own}{after}".split())
                for own in (mutant.was, mutant.to)
            ]
            if max(map(len, pair)) > LONGEST:
                break
            shown = pair[0], pair[1]
            if len(pair[0]) >= SHORTEST:
                break
    return " ".join(shown[0].split()), " ".join(shown[1].split())


def _spans(source: bytes) -> Iterator[tuple[int, int]]:
    """Places of the expressions of a source, and of what is added in place."""
    text = Text(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr | ast.AugAssign):
            yield text.span(node)


def reasons(rows: Iterable[Row], root: Path) -> dict[str, str]:
    """Reasons of claims without a mutant, by id; each must be one of the book's."""
    path = root / REASONS
    try:
        entries: dict[str, str] = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{REASONS}: {error}") from None
    by_id = {each["id"]: each for each in rows}
    for key, reason in entries.items():
        if key not in by_id:
            raise PipelineError(f"{REASONS}: there is no claim {key} any more")
        if not isinstance(reason, str) or not reason.strip():
            raise PipelineError(f"{REASONS}: {key} needs a sentence, got {reason!r}")
        if by_id[key]["mutant"]:
            raise PipelineError(f"{REASONS}: {key} has a mutant, and needs no reason")
    return entries


def told(rows: list[Row], known: dict[str, str]) -> str:
    """Count the claims that have a mutant, and list each that has none."""
    lines = []
    for each in rows:
        if each["mutant"] is None:
            reason = known.get(each["id"], "no mutant was found")
            lines.append(f"{each['page']} {each['id']}: {each['claim']}: {reason}")
    with_one = sum(each["mutant"] is not None for each in rows)
    return "\n".join(
        [
            *lines,
            f"mutants: {with_one} of {len(rows)} claims have one that turns them red",
        ]
    )
