"""The record of a campaign, and the reasons why mutants are equivalent."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.command import PipelineError
from tools.mutants.campaign import Outcome
from tools.mutants.sites import Mutant
from tools.mutants.tests import OTHER, OWN, PACKAGE, whose

RECORD = Path("chapters/reference/mutants.json")
REASONS = Path("tools/mutants/equivalent.toml")


def reasons(every: Iterable[Mutant], root: Path) -> dict[str, str]:
    """Reasons of equivalent mutants, by key; each must be one that there is."""
    try:
        entries = tomllib.loads((root / REASONS).read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{REASONS}: {error}") from None
    known = {mutant.key for mutant in every}
    for key, reason in entries.items():
        if key not in known:
            raise PipelineError(f"{REASONS}: there is no mutant {key} any more")
        if not isinstance(reason, str) or not reason.strip():
            raise PipelineError(f"{REASONS}: {key} needs a sentence, got {reason!r}")
    return entries


def row(mutant: Mutant, outcome: Outcome, reason: str | None, root: Path) -> Outcome:
    """One line of the record."""
    test = outcome["test"]
    lines = (root / mutant.file).read_text("utf-8").splitlines()
    return {
        "key": mutant.key,
        "file": mutant.file,
        "line": mutant.line,
        "code": lines[mutant.line - 1].strip(),
        "was": " ".join(mutant.was.split()),
        "to": " ".join(mutant.to.split()),
        "kind": mutant.kind,
        "by": whose(test.partition("::")[0], mutant.file) if test else None,
        **outcome,
        "reason": reason,
    }


def summary(rows: list[Outcome]) -> dict[str, int]:
    """Numbers of those noticed, by whose tests, and of what became of the others."""
    by = Counter(each["by"] for each in rows if each["how"])
    alive = [each for each in rows if not each["how"]]
    equivalent = sum(each["reason"] is not None for each in alive)
    return {
        "mutants": len(rows),
        "noticed": len(rows) - len(alive),
        "by the module's own tests": by[OWN],
        "by its package's": by[PACKAGE],
        "by other tests of lib": by[OTHER],
        "before any test": by[None],
        "hang": sum(each["how"] == "hangs" for each in rows),
        "equivalent": equivalent,
        "alive": len(alive) - equivalent,
    }


def told(rows: list[Outcome]) -> str:
    """The summary in words, and each mutant that is alive."""
    counts = summary(rows)
    lines = [f"mutants: {name}: {count}" for name, count in counts.items()]
    wrong = counts["mutants"] - counts["equivalent"]
    if wrong:
        share = counts["noticed"] / wrong
        lines.append(f"mutants: noticed of those not equivalent: {share:.1%}")
    for each in rows:
        if each["how"] is None and each["reason"] is None:
            tests = f"{each['tests'] - each['not_run']} of {each['tests']} tests run"
            lines.append(
                f"alive {each['key']}: {each['file']}:{each['line']} ({tests})\n"
                f"    {each['code']}\n    {each['was']}  →  {each['to']}"
            )
        elif each["how"] and each["reason"]:
            lines.append(
                f"error: {each['key']} is said to be equivalent, and {each['test']}"
                " notices it"
            )
    return "\n".join(lines)
