"""Draw mutants of the numerics of ``lib``, and see which tests notice them.

    python -m tools.mutants 300 --seed 1
    python -m tools.mutants --claims --page 1-softmax-expansion
    python -m tools.mutants --claims --claim verdict-3225705a --first 09285a74b506

Each is one small change of one statement. Of the tests that execute this statement all
are run, fastest first, the module's own before others, until one fails. What none
notices is equivalent, and says why in tools/mutants/equivalent.toml, or needs a test.
With --claims the pages are asked: each of their claims gets one that turns it red.
"""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path

from tools.command import ROOT, PipelineError, exclusive, replace, run_main, today
from tools.mutants import claims, claims_record
from tools.mutants.campaign import FOLDER, run
from tools.mutants.pages import Book
from tools.mutants.record import RECORD, reasons, row, summary, told
from tools.mutants.sites import files, mutants, sample
from tools.texts import texts


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="tools.mutants", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", help="how many, at least 1")
    parser.add_argument(
        "--claims", action="store_true", help="one for each claim of the pages"
    )
    parser.add_argument("--page", help="with --claims: only this one")
    parser.add_argument(
        "--claim", action="append", default=[], metavar="ID",
        help="with --claims: only this one of the record, and each other that is named",
    )  # fmt: skip
    parser.add_argument(
        "--first", action="append", default=[], metavar="MUTANT",
        help="with --claims: tried before others, by its key or its place, file:line",
    )  # fmt: skip
    parser.add_argument(
        "--tries", type=int, default=40, help="with --claims: mutants tried, at most"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="at once")
    parser.add_argument(
        "--seconds", type=float, default=600.0,
        help="of the processor, that the tests of one mutant take on the original",
    )  # fmt: skip
    asked = parser.parse_args(argv)
    of_claims_alone = asked.page or asked.claim or asked.first
    if asked.claims != (asked.count is None) or of_claims_alone and not asked.claims:
        parser.error("say how many mutants, or --claims, perhaps of one --page")
    names = ["tries" if asked.claims else "count", "jobs", "seconds"]
    for name in names:
        if not getattr(asked, name) >= 1:
            raise PipelineError(
                f"{name} must be at least 1, got {getattr(asked, name)}"
            )
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    with exclusive(root / FOLDER, "make mutants"):
        if asked.claims:
            return of_claims(asked, root)
        every = [each for path in files(root) for each in mutants(path, root)]
        known = reasons(every, root)
        chosen = sample(every, asked.count, asked.seed, root)
        outcomes, _ = run(chosen, root, asked.jobs, asked.seconds)
        rows = [row(m, outcomes[m.key], known.get(m.key), root) for m in chosen]
        content = {
            "date": today(), "seed": asked.seed, "seconds": asked.seconds,
            "of": len(every), "summary": summary(rows), "mutants": rows,
        }  # fmt: skip
        replace(root / RECORD, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(told(rows))
    contradicted = any(each["how"] and each["reason"] for each in rows)
    return 1 if summary(rows)["alive"] or contradicted else 0


def of_claims(asked: argparse.Namespace, root: Path) -> int:
    """A mutant for each claim: 1 if one has none, and no reason is given."""
    paths = [path for path in texts(root) if asked.page in (None, path.stem)]
    if not paths:
        names = ", ".join(path.stem for path in texts(root))
        raise PipelineError(f"--page must be one of {names}, got {asked.page}")
    books = [Book(path, root) for path in paths]
    if asked.claim:
        pages = {row["id"]: row["page"] for row in claims_record.read(root)}
        for key in asked.claim:
            if key not in pages:
                raise PipelineError(f"{claims_record.RECORD} has no claim {key}")
        theirs = {pages[key] for key in asked.claim}
        books = [book for book in books if book.name in theirs]
    most = claims.Most(asked.tries, asked.seconds, tuple(asked.first))
    rows = claims.run(books, root, asked.jobs, most, asked.claim or None)
    known = claims_record.reasons(rows, root)
    print(claims_record.told(rows, known))
    return int(any(not r["mutant"] and r["id"] not in known for r in rows))


if __name__ == "__main__":
    # Killed, it ends as when it is interrupted: with what it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run_main(main, "the mutants that were judged are kept, and the next call goes on")
