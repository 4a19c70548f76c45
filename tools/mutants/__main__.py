"""Draw mutants of the numerics of ``lib``, and see which tests notice them.

    python -m tools.mutants 300 --seed 1

Each is one small change of one statement. Of the tests that execute this statement all
are run, fastest first, the module's own before others, until one fails. What none
notices is equivalent, and says why in tools/mutants/equivalent.toml, or needs a test.
"""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path

from tools.command import ROOT, PipelineError, exclusive, replace, run_main
from tools.mutants.campaign import FOLDER, run
from tools.mutants.record import RECORD, reasons, row, summary, told
from tools.mutants.sites import files, mutants, sample
from tools.notebooks import today


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="tools.mutants", description=__doc__)
    parser.add_argument("count", type=int, help="how many, at least 1")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="at once")
    parser.add_argument(
        "--seconds", type=float, default=600.0,
        help="of the processor, that the tests of one mutant take on the original",
    )  # fmt: skip
    asked = parser.parse_args(argv)
    for name in ("count", "jobs", "seconds"):
        if not getattr(asked, name) >= 1:
            raise PipelineError(
                f"{name} must be at least 1, got {getattr(asked, name)}"
            )
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    with exclusive(root / FOLDER, "make mutants"):
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


if __name__ == "__main__":
    # Killed, it ends as when it is interrupted: with what it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run_main(main, "the mutants that were judged are kept, and the next call goes on")
