"""Run every claim again under fresh seeds, without the figures.

    python -m tools.reseed 20

A claim that holds under one seed may hold by luck. Each offset of the book's
generators gives new draws; only the cells that a claim depends on are executed. What
was run is kept: a command that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import io
import json
import os
import signal
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stdout
from multiprocessing import active_children
from pathlib import Path
from typing import Any, NamedTuple

from lib.claims import SEED_OFFSET, Verdict
from tools.command import ROOT, PipelineError, exclusive, replace, run_main, today
from tools.digests import digests
from tools.texts import texts
from tools.verdicts import Row, code_of, page_name, page_rows, recorded

RESULTS = Path("chapters/reference/reseed.json")
#: Runs of a command that has not ended yet, a line each.
JOURNAL = Path("_build/reseed.jsonl")
_WORDS = ("alt", "caption")  # arguments of a picture that are prose


def claim_cells(cells: list[str], wanted: Collection[int] | None = None) -> list[str]:
    """The cells that call ``verify``, and those they depend on, in order.

    Of the former only those whose numbers are ``wanted``, where it is given.
    """
    kept: list[str] = []
    needed: set[str] = set()
    for number, cell in reversed([*enumerate(cells)]):
        tree = ast.parse(cell)
        defined, used = set(_defined(tree)), set(_used(tree))
        checks = "verify" in used and (wanted is None or number in wanted)
        if checks or defined & needed:
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
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            # A method that is called for what it does, as in "errors.append(...)".
            owner = getattr(node.value.func, "value", None)
            if isinstance(owner, ast.Name):
                yield owner.id


def _used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def check_of(cells: list[str], number: int) -> str:
    """Digest of what the cell with this number does, and those that it depends on.

    Neither comments and imports are part of it, nor what claims are called, nor what
    else is claimed on the way, nor what pictures say in words.
    """
    lines = []
    for cell in claim_cells(cells, {number}):
        tree = ast.parse(cell)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                node.keywords = [k for k in node.keywords if k.arg not in _WORDS]
        for statement in tree.body:
            call = getattr(statement, "value", None)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "verify":
                if cell != cells[number]:
                    continue
                del call.args[:1]  # what it is called
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            lines.append(ast.unparse(statement))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def outcomes(
    path: Path, offset: int, ids: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """Every verdict of one notebook under one offset, failures included.

    Only those with the ``ids``, where these are given, with the number of the cell of
    each. Runs in a process of its own: it sets the offset and replaces ``verify``.
    """
    from joblib import parallel_config

    os.environ[SEED_OFFSET] = str(offset)
    os.chdir(path.parent)
    outcomes_of_page: list[dict[str, Any]] = []
    chosen = claim_cells(code_of(path), None if ids is None else {*ids.values()})

    def keep(verdict: Verdict) -> None:
        if ids is not None and verdict.anchor not in ids:
            return
        outcomes_of_page.append(
            {
                "page": page_name(path),
                "offset": offset,
                "id": verdict.anchor,
                "claim": verdict.claim,
                "word": verdict.word,
                "passed": verdict.passed,
                "measured": verdict.measured,
                "numbers": verdict.numbers(),
            }
        )

    namespace: dict[str, Any] = {}
    try:
        # Runs already share the cores out, and a pool of workers that a run left behind
        # would keep its process alive for the five minutes that they wait for work.
        with (
            parallel_config("sequential"),
            redirect_stdout(io.StringIO()),
            recorded(keep),
        ):
            for cell in chosen:
                exec(compile(cell, path.stem, "exec"), namespace)
    except Exception as error:
        raise PipelineError(
            f"{page_name(path)}, offset {offset}: {type(error).__name__}: {error}"
        ) from error
    return outcomes_of_page


def summary(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
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


class Rate(NamedTuple):
    """Counts of claims, of their runs, and of runs in which the verdict was wrong."""

    claims: int
    runs: int
    wrong: int

    @property
    def bound(self) -> float:
        """Upper bound of the rate at 95 % by Clopper and Pearson, one-sided."""
        from scipy.stats import beta

        if self.wrong == self.runs:
            return 1.0
        return float(beta.ppf(0.95, self.wrong + 1, self.runs - self.wrong))


def counts_of_runs(claims: Iterable[dict[str, Any]]) -> dict[int, int]:
    """Numbers of claims by their number of runs, most runs first."""
    return dict(sorted(Counter(row["runs"] for row in claims).items(), reverse=True))


def rates(
    claims: Iterable[dict[str, Any]], refuted: Collection[tuple[str, str]]
) -> tuple[Rate, Rate]:
    """False alarms about true claims, and false variants that passed as true.

    The latter have page and id in ``refuted``. Only claims count whose number is
    another one under another seed: the others cannot fail by luck. An inconclusive
    verdict on a true claim is an alarm; on a false one it is no miss, since it fails.
    """
    true, false = [], []
    for row in claims:
        if row["least"] < row["largest"]:
            (false if (row["page"], row["id"]) in refuted else true).append(row)
    alarms = sum(row["runs"] - row["passed"] for row in true)
    misses = sum(row["words"].get("FAILS", 0) for row in false)
    return _rate(true, alarms), _rate(false, misses)


def _rate(rows: list[dict[str, Any]], wrong: int) -> Rate:
    return Rate(len(rows), sum(row["runs"] for row in rows), wrong)


def _recorded(root: Path) -> list[dict[str, Any]]:
    claims: list[dict[str, Any]] = json.loads((root / RESULTS).read_text())["claims"]
    return claims


def _chosen(page: str | None, root: Path) -> tuple[list[Path], list[dict[str, Any]]]:
    """Texts to run, and the recorded claims of the pages that are not run."""
    paths = list(texts(root))
    if page is None:
        return paths, []
    chosen = [path for path in paths if path.stem == page]
    if not chosen:
        names = ", ".join(path.stem for path in paths)
        raise PipelineError(f"--page must be one of {names}, got {page}")
    return chosen, [row for row in _recorded(root) if Path(row["page"]).name != page]


def together(had: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """One row of the record for the runs of a claim in two of them."""
    return {
        **more,
        "passed": had["passed"] + more["passed"],
        "runs": had["runs"] + more["runs"],
        "words": dict(Counter(had["words"]) + Counter(more["words"])),
        "least": min(had["least"], more["least"]),
        "largest": max(had["largest"], more["largest"]),
    }


def finished(journal: Path, current: dict[str, str]) -> dict[tuple[str, int], Any]:
    """Runs in the journal, by page and offset, of pages that are what they were.

    The last line may have been cut; its run is then made again.
    """
    runs = {}
    for line in journal.read_text("utf-8").splitlines() if journal.exists() else []:
        try:
            page, offset, made_from, outcome = json.loads(line)
        except ValueError:
            continue
        if current.get(page) == made_from:
            runs[page, offset] = outcome
    return runs


def made_from(path: Path, root: Path, ids: Collection[str] | None = None) -> str:
    """Digest of all that the claims of a page depend on, which its prose is not."""
    sources = digests(path, root)
    del sources[path.relative_to(root).as_posix()]
    asked = "" if ids is None else repr(sorted(ids))
    return hashlib.sha256((repr(sources) + asked).encode()).hexdigest()


def _deaf() -> None:
    """Leave an interruption to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_all(
    offsets: Mapping[Path, Iterable[int]],
    root: Path,
    asked: Mapping[Path, Mapping[str, int]],
) -> list[Any]:
    """Outcomes of each page under its offsets; what the journal has is not run.

    ``asked`` has the ids of the claims of a page that are asked for, with their cells;
    of a page that it lacks it is all.
    """
    from tqdm import tqdm

    journal = root / JOURNAL
    current = {path.stem: made_from(path, root, asked.get(path)) for path in offsets}
    journal.parent.mkdir(exist_ok=True)
    kept = finished(journal, current)
    wanted = [(path, offset) for path in offsets for offset in offsets[path]]
    todo = [each for each in wanted if (each[0].stem, each[1]) not in kept]
    if len(todo) < len(wanted):
        print(f"reseed: {len(wanted) - len(todo)} of {len(wanted)} runs were kept")
    # One process a task: nothing that a run leaves behind reaches the next one.
    with (
        ProcessPoolExecutor(max_tasks_per_child=1, initializer=_deaf) as pool,
        journal.open("a", encoding="utf-8") as file,
    ):
        file.write("\n")  # after a line that was cut
        tasks = {
            pool.submit(outcomes, *each, asked.get(each[0])): each for each in todo
        }
        failure: BaseException | None = None
        try:
            for task in tqdm(as_completed(tasks), total=len(tasks), desc="reseed"):
                path, offset = tasks[task]
                if task.cancelled():
                    continue
                if error := task.exception():
                    failure = failure or error
                    for each in tasks:
                        each.cancel()
                    continue
                kept[path.stem, offset] = task.result()
                row = [path.stem, offset, current[path.stem], task.result()]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
        except KeyboardInterrupt:
            # A pool that is shut down starts no process for what it has queued, and
            # waits for it for ever; one whose processes are gone is at its end.
            for child in active_children():
                child.kill()
            raise
    if failure:
        raise failure
    return [run for path, offset in wanted for run in kept[path.stem, offset]]


def _current(
    paths: list[Path], root: Path
) -> tuple[list[tuple[Path, Row]], dict[tuple[str, str], str]]:
    """The claims of the pages, and the digest of the check of each."""
    claims, checks = [], {}
    for path in paths:
        cells = code_of(path)
        for row in page_rows(path, root):
            claims.append((path, row))
            checks[row.page, row.id] = check_of(cells, row.cell)
    return claims, checks


def _completed(
    claims: list[tuple[Path, Row]],
    checks: Mapping[tuple[str, str], str],
    count: int,
    root: Path,
) -> list[dict[str, Any]]:
    """The record of the claims, with the runs that they have not had yet.

    Of a claim whose check has changed no run counts.
    """
    rows = {
        (row["page"], row["id"]): row
        for row in _recorded(root)
        if checks.get((row["page"], row["id"])) == row["check"]
    }
    had = Counter({key: row["runs"] for key, row in rows.items()})
    lacking: dict[Path, dict[str, int]] = {}  # cells by id
    first: dict[Path, int] = {}  # offset that one of them lacks
    for path, row in claims:
        if had[row.page, row.id] < count:
            lacking.setdefault(path, {})[row.id] = row.cell
            first[path] = min(first.get(path, count), had[row.page, row.id] + 1)
    offsets = {path: range(first[path], count + 1) for path in first}
    runs = run_all(offsets, root, lacking)
    for more in summary(r for r in runs if r["offset"] > had[r["page"], r["id"]]):
        key = more["page"], more["id"]
        rows[key] = together(rows[key], more) if key in rows else more
    return [rows[row.page, row.id] for _, row in claims]


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="tools.reseed", description=__doc__)
    parser.add_argument("offsets", type=int, help="how many, at least 1")
    parser.add_argument("--page", help="only this one; the others keep their record")
    parser.add_argument(
        "--new", action="store_true", help="only runs that the record lacks"
    )
    options = parser.parse_args(argv)
    count = options.offsets
    if count < 1:
        raise PipelineError(f"offsets must be at least 1, got {count}")
    with exclusive(root / RESULTS.parent, "make reseed"):
        paths, others = _chosen(options.page, root)
        current, checks = _current(paths, root)
        if options.new:
            rows = _completed(current, checks, count, root)
        else:
            whole = dict.fromkeys(paths, range(1, count + 1))
            rows = summary(run_all(whole, root, {}))
        for row in rows:
            row["check"] = checks.get((row["page"], row["id"]), "")
        claims = sorted(others + rows, key=lambda row: row["page"])
        result = {"date": today(), "claims": claims}
        replace(root / RESULTS, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        (root / JOURNAL).unlink()
    failing = [row for row in claims if row["passed"] < row["runs"]]
    for row in failing:
        print(f"reseed: {row['passed']} of {row['runs']}: {row['claim']}")
    print(f"reseed: {len(claims)} claims, {len(failing)} failing")
    return 1 if failing else 0


if __name__ == "__main__":
    run_main(main, "the runs that had ended are kept, and the next call goes on")
