"""Run every claim again under fresh seeds, without the figures.

    python -m tools.reseed 20

A claim that holds under one seed may hold by luck. Each offset of the book's
generators gives new draws; only the cells that a claim depends on are executed.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tools.notebooks import ROOT, PipelineError, replace, run_main, texts, today
from tools.verdicts import code_of, page_name

RESULTS = Path("chapters/reference/reseed.json")


def claim_cells(cells: list[str]) -> list[str]:
    """The cells that call ``verify``, and those they depend on, in order."""
    kept: list[str] = []
    needed: set[str] = set()
    for cell in reversed(cells):
        tree = ast.parse(cell)
        defined, used = set(_defined(tree)), set(_used(tree))
        if "verify" in used or defined & needed:
            kept.append(cell)
            needed |= used
    return kept[::-1]


def _defined(tree: ast.AST) -> Iterator[str]:
    """Names that a cell binds, or whose content it changes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Subscript | ast.Attribute):
            owner = node.value
            if isinstance(node.ctx, ast.Store) and isinstance(owner, ast.Name):
                yield owner.id


def _used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def outcomes(path: Path, offset: int) -> list[dict[str, Any]]:
    """Every verdict of one notebook under one offset, failures included.

    Runs in a process of its own: it sets the offset and replaces ``verify`` by one
    that records and goes on.
    """
    from lib import claims

    os.environ[claims.SEED_OFFSET] = str(offset)
    os.chdir(path.parent)
    verify, found = claims.verify, []

    def record(*args: Any, **kwargs: Any) -> claims.Verdict:
        try:
            verdict = verify(*args, **kwargs)
        except claims.ClaimFailed as failure:
            verdict = failure.verdict
        found.append(
            {
                "page": page_name(path),
                "id": verdict.anchor,
                "claim": verdict.claim,
                "word": verdict.word,
                "passed": verdict.passed,
                "measured": verdict.measured,
                "numbers": verdict.numbers(),
            }
        )
        return verdict

    claims.verify = record
    try:
        namespace: dict[str, Any] = {}
        with redirect_stdout(io.StringIO()):
            for cell in claim_cells(code_of(path)):
                exec(compile(cell, path.stem, "exec"), namespace)
    except Exception as error:
        raise PipelineError(
            f"{page_name(path)}, offset {offset}: {type(error).__name__}: {error}"
        ) from error
    finally:
        claims.verify = verify
    return found


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each claim how often it came out as stated, and what was measured."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        grouped.setdefault((run["page"], run["id"]), []).append(run)
    return [
        {
            "page": page,
            "id": key,
            "claim": each[0]["claim"],
            "passed": sum(run["passed"] for run in each),
            "runs": len(each),
            "words": dict(Counter(run["word"] for run in each)),
            "least": min(run["measured"] for run in each),
            "largest": max(run["measured"] for run in each),
        }
        for (page, key), each in grouped.items()
    ]


def _chosen(
    page: str | None, offsets: list[int], root: Path
) -> tuple[list[Path], list[dict[str, Any]]]:
    """Texts to run, and the recorded claims of the pages that are not run."""
    paths = list(texts(root))
    if page is None:
        return paths, []
    chosen = [path for path in paths if path.stem == page]
    if not chosen:
        names = ", ".join(path.stem for path in paths)
        raise PipelineError(f"--page must be one of {names}, got {page}")
    record = json.loads((root / RESULTS).read_text("utf-8"))
    if record["offsets"] != offsets:
        raise PipelineError(f"the record has the offsets {record['offsets']}")
    others = [row for row in record["claims"] if Path(row["page"]).name != page]
    return chosen, others


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    from tqdm import tqdm

    parser = argparse.ArgumentParser(prog="tools.reseed", description=__doc__)
    parser.add_argument("offsets", type=int, help="how many, at least 1")
    parser.add_argument("--page", help="only this one; the others keep their record")
    asked = parser.parse_args(argv)
    count = asked.offsets
    if count < 1:
        raise PipelineError(f"offsets must be at least 1, got {count}")
    paths, kept = _chosen(asked.page, [1, count], root)
    # One process a task: nothing that a run leaves behind reaches the next one.
    with ProcessPoolExecutor(max_tasks_per_child=1) as pool:
        tasks = [
            pool.submit(outcomes, path, offset)
            for path in paths
            for offset in range(1, count + 1)
        ]
        for task in tqdm(as_completed(tasks), total=len(tasks), desc="reseed"):
            task.result()  # stop at the first error
    claims = kept + summary([run for task in tasks for run in task.result()])
    claims.sort(key=lambda row: row["page"])
    result = {"date": today(), "offsets": [1, count], "claims": claims}
    replace(root / RESULTS, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    failing = [row for row in claims if row["passed"] < row["runs"]]
    for row in failing:
        print(f"reseed: {row['passed']} of {row['runs']}: {row['claim']}")
    print(f"reseed: {len(claims)} claims, {count} offsets, {len(failing)} failing")
    return 1 if failing else 0


if __name__ == "__main__":
    run_main(main)
