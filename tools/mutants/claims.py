"""For each claim of the pages a mutant that turns its verdict red.

Lines of ``lib`` that lead to a claim are those that a run of its cells executes. A
mutant counts where the verdict itself is given, with a number, and is another one; not
where the code raises or hangs before. A claim that the cells compute by themselves has
a mutant of these, but never of what it asks for.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tools.command import PipelineError
from tools.mutants import claims_record as record
from tools.mutants.campaign import FOLDER, Crew, kill
from tools.mutants.claims_record import Row
from tools.mutants.pages import Book, Part, named, parts
from tools.mutants.rerun import PRELOADED, Job, work
from tools.mutants.sites import Mutant, differs, files, mutants
from tools.texts import texts
from tools.verdicts import page_name

JOURNAL = FOLDER / "claims.jsonl"
#: What reads and judges numbers, and is no part of what is claimed.
JUDGES = {"lib/claims.py", "lib/core/checks.py"}
#: Kinds of changes that seldom do nothing but raise.
TELLING = {"operator", "sign", "function", "dropped"}

Outcome = dict[str, Any]


class Journal:
    """Outcomes of runs, a line each; the last line may have been cut."""

    def __init__(self, root: Path, books: Iterable[Book]):
        self.path = root / JOURNAL
        self.made_from = {book.name: book.made_from for book in books}
        self.kept: dict[tuple[str, str], Outcome] = {}
        self.lock = Lock()
        for line in self._lines():
            try:
                page, key, made_from, outcome = json.loads(line)
            except ValueError:
                continue
            if self.made_from.get(page) == made_from:
                self.kept[page, key] = outcome

    def _lines(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []

    def add(self, page: str, key: str, outcome: Outcome) -> None:
        row = json.dumps([page, key, self.made_from[page], outcome], ensure_ascii=False)
        with self.lock, self.path.open("a", encoding="utf-8") as file:
            self.kept[page, key] = outcome
            file.write(f"\n{row}\n")  # a line that was cut ends here


class Most(NamedTuple):
    """Most that is tried for the claims of a part, and what is tried in any case."""

    tries: int
    seconds: float  # of the processor
    first: tuple[str, ...] = ()  # keys of mutants, or their places: lib/toy.py:6

    def begins(self, mutant: Mutant) -> bool:
        return not {*names_of(mutant)}.isdisjoint(self.first)


class Search:
    """Runs of parts of pages, each in a process of its own and each made once."""

    def __init__(self, root: Path, books: list[Book], jobs: int):
        self.root, self.books = root, books
        self.crew, self.journal = Crew(jobs), Journal(root, books)
        # Nothing of a run depends on how many cores there are, nor on the time.
        os.environ |= {
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
        }  # fmt: skip
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(PRELOADED)
        self.made, self.seconds = 0, 0.0

    @cached_property
    def of_lib(self) -> dict[str, list[Mutant]]:
        """Mutants by the file of ``lib`` that they change."""
        paths = {
            path.relative_to(self.root).as_posix(): path for path in files(self.root)
        }
        return {
            name: mutants(path, self.root)
            for name, path in paths.items()
            if name not in JUDGES
        }

    def outcome(
        self, book: Book, key: str, pieces: Iterable[int],
        mutant: Mutant | None = None, **options: Any,
    ) -> Outcome:  # fmt: skip
        """Outcome of a run; from the journal, where it was made before."""
        known = self.journal.kept.get((book.name, key))
        if known is not None:
            return known
        job = Job(
            self.root.resolve(), book.path.parent.resolve(),
            book.sources(pieces, mutant), self._applied(book, mutant), **options,
        )  # fmt: skip
        result = self._run(job)
        # What fails unchanged is set right and run again.
        if not self.crew.stopped and (mutant or not result["raised"]):
            self.journal.add(book.name, key, result)
        return result

    def _applied(self, book: Book, mutant: Mutant | None) -> tuple[str, bytes] | None:
        if mutant is None or mutant in book.mutants:
            return None
        return mutant.file, mutant.applied(book.source(mutant))

    def _run(self, job: Job) -> Outcome:
        """The verdicts of a job, and how it ended: what it does not say, killed it."""
        ours, theirs = self.processes.Pipe(duplex=False)
        process = self.processes.Process(target=work, args=(theirs, job), daemon=True)
        process.start()
        theirs.close()
        assert process.pid is not None
        self.crew.running.add(process.pid)
        # By the clock there is no saying how busy the machine is: a long patience.
        end = time.monotonic() + 600 + 20 * (job.seconds or 600)
        verdicts: list[Any] = []
        result: Outcome = {"raised": "hangs or crashes", "seconds": job.seconds or 0.0}
        try:
            while not self.crew.stopped and time.monotonic() < end:
                if ours.poll(1):
                    kind, *said = ours.recv()
                    if kind == "verdict":
                        verdicts.append(said)
                    else:
                        result = said[0]
        except EOFError:
            pass
        finally:
            kill(process.pid)
            process.kill()  # which may not have begun
            process.join()
            self.crew.running.discard(process.pid)
            process.close()
            ours.close()
        self.made, self.seconds = self.made + 1, self.seconds + result["seconds"]
        return result | {"verdicts": verdicts}

    # -- One page ------------------------------------------------------------------

    def original(self, book: Book) -> Outcome:
        """The whole page as it is, with what each piece needs of the others."""
        everything = range(len(book.pieces))
        result = self.outcome(book, "page", everything, watch=True)
        if result["raised"]:
            raise PipelineError(f"{book.name}, unchanged: {result['raised']}")
        return result

    def part(self, book: Book, part: Part) -> tuple[Part, dict[str, list[int]]]:
        """A part that gives alone what the page gives, and its lines of ``lib``."""
        wanted = {
            said["id"]: said["numbers"]
            for _, said in self.original(book)["verdicts"]
            if said["id"] in part.claims
        }
        everything = tuple(range(len(book.pieces)))
        for each in (part, Part(everything, part.claims, part.seconds)):
            alone = self.outcome(book, f"part {each.key()}", each.pieces, lines=True)
            seen = {said["id"]: said["numbers"] for _, said in alone["verdicts"]}
            if all(seen.get(claim) == told for claim, told in wanted.items()):
                seconds = max(each.seconds, alone["seconds"])
                return Part(each.pieces, part.claims, seconds), alone["lines"]
        if self.crew.stopped:
            return part, {}
        raise PipelineError(f"{book.name} gives other numbers each time it is run")

    def search(
        self, book: Book, part: Part, known: dict[str, str], most: Most
    ) -> dict[str, tuple[Mutant, Outcome]]:
        """A mutant and the red verdict for as many claims of a part as have one.

        First what ``most`` begins with, then ``known``, the mutants that turned them
        red before. A verdict that is merely inconclusive is kept for a claim that no
        mutant refutes.
        """
        part, lines = self.part(book, part)
        every = self.candidates(book, part, lines)
        turned: dict[str, tuple[Mutant, Outcome]] = {}
        weak: dict[str, tuple[Mutant, Outcome]] = {}
        before = [each for each in every if most.begins(each)]
        before += [m for m in every if m.key in known.values() and not most.begins(m)]
        of_lib, of_cells = (
            [m for m in every if m not in before and (m in book.mutants) is own]
            for own in (False, True)
        )
        # Of ``lib`` first; what the cells compute by themselves follows soon.
        few = most.tries // 2
        new = [*of_lib[:few], *of_cells[: most.tries], *of_lib[few : most.tries]]
        spent, plain = 0.0, book.sources(part.pieces, None)
        for each in [*before, *new]:
            if turned.keys() == {*part.claims} or self.crew.stopped:
                break
            if spent > most.seconds and each not in before:
                break
            if each in book.mutants and book.sources(part.pieces, each) == plain:
                continue
            if not differs(each, book.source(each)):
                continue
            outcome = self.outcome(
                book, f"{each.key} {part.key()}", part.pieces, each,
                seconds=5 + 3 * part.seconds,
            )  # fmt: skip
            spent += outcome["seconds"]
            for claim, said in red(outcome).items():
                if claim in part.claims:
                    kept = turned if said["word"] != "INCONCLUSIVE" else weak
                    kept.setdefault(claim, (each, said))
        return weak | turned

    def candidates(
        self, book: Book, part: Part, lines: dict[str, list[int]]
    ) -> list[Mutant]:
        """Mutants that a part executes, the most promising first."""
        sources = [book.pieces[n].source for n in part.pieces]
        names = named(sources)
        cells = {book.pieces[n].cell for n in part.pieces}
        places: dict[Any, int] = {}
        ranked: list[tuple[Any, Mutant]] = []

        def rank(mutant: Mutant, tier: int) -> None:
            statement = mutant.file, mutant.unit.start, mutant.kind in TELLING
            number = places[statement] = places.get(statement, -1) + 1
            dull = 0 if mutant.kind in TELLING else 2
            ranked.append(((tier + number + dull, tier, mutant.key), mutant))

        for file, of_file in self.of_lib.items():
            seen = {*lines.get(file, ())}
            for each in sorted(of_file, key=lambda mutant: mutant.key):
                if _executed(each, seen):
                    rank(each, _tier(each, names))
        nearest = sorted(cells, reverse=True)
        for each, cell in book.mutants.items():
            if cell in cells:
                rank(each, nearest.index(cell))
        return [mutant for _, mutant in sorted(ranked, key=lambda pair: pair[0])]


def names_of(mutant: Mutant) -> tuple[str, str]:
    """Names by which a mutant is asked for: its key, and the place that it shares."""
    return mutant.key, f"{mutant.file}:{mutant.line}"


def red(outcome: Outcome) -> dict[str, Outcome]:
    """Verdicts by claim that were given, with a number, and are not as stated."""
    return {
        said["id"]: said
        for _, said in outcome["verdicts"]
        if not said["passed"] and isfinite(said["measured"])
    }


def _executed(mutant: Mutant, lines: set[int]) -> bool:
    """Say whether a run executes its statement, or the function whose default it is."""
    unit = mutant.unit
    first, last = unit.lines if unit.function or not unit.body else unit.body
    return any(first <= line <= last for line in lines)


def _tier(mutant: Mutant, names: dict[str, set[str]]) -> int:
    """0 within a function that the cells name, 1 in its package, 2 elsewhere."""
    tiers = [2]
    for package, functions in names.items():
        if mutant.file == f"{package}.py" or mutant.file.startswith(f"{package}/"):
            tiers.append(0 if mutant.unit.scope.partition(".")[0] in functions else 1)
    return min(tiers)


# -- All of them -------------------------------------------------------------------


def run(
    books: list[Book], root: Path, jobs: int, most: Most,
    only: Collection[str] | None = None,
) -> list[Row]:  # fmt: skip
    """The record of some pages and, as it was, of the others; written as it grows.

    With ``only`` a search is made for these claims of the pages alone.
    """
    search, rows = Search(root, books, jobs), record.read(root)
    _known_names(most.first, search)
    order = [page_name(path, root) for path in texts(root)]
    for _ in search.crew.each(search.original, books, "pages"):
        pass
    for book in books:
        own = {each["id"]: each for each in rows if each["page"] == book.name}
        others = [e for e in rows if e["page"] in order and e["page"] != book.name]
        for some in _rows(search, book, own, most, only):
            rows = sorted(others + some, key=lambda each: order.index(each["page"]))
            record.write(rows, root)
    print(f"mutants: {search.made} runs were made, of {search.seconds:.0f} s together")
    return rows


def _known_names(names: Iterable[str], search: Search) -> None:
    """Refuse what is asked for first, and is the name of no mutant."""
    every = [each for book in search.books for each in book.mutants]
    every += [each for of_file in search.of_lib.values() for each in of_file]
    known = {name for each in every for name in names_of(each)} if names else set()
    for name in names:
        if name not in known:
            raise PipelineError(f"{name} is neither the key nor the place of a mutant")


def _rows(
    search: Search, book: Book, rows: dict[str, Row], most: Most,
    only: Collection[str] | None,
) -> Iterator[list[Row]]:  # fmt: skip
    """The rows of a page after each of its parts; till then a claim has its old one."""
    original = search.original(book)
    said = {verdict["id"]: verdict for _, verdict in original["verdicts"]}
    wrong = [each["claim"] for each in said.values() if not each["passed"]]
    if wrong:
        raise PipelineError(f"{book.name}, unchanged: {wrong[0]!r} is not as stated")
    places = {
        verdict["id"]: piece
        for piece, verdict in original["verdicts"]
        if only is None or verdict["id"] in only
    }
    known = {key: row["mutant"]["key"] for key, row in rows.items() if row["mutant"]}
    rows = {
        key: rows.get(key) or record.row(book.name, each, None, None)
        for key, each in said.items()
    }

    def work(part: Part) -> dict[str, tuple[Mutant, Outcome]]:
        own = {key: known[key] for key in part.claims if key in known}
        return search.search(book, part, own, most)

    chosen = parts(original["steps"], places)
    for part, some in search.crew.each(work, chosen, book.path.stem):
        for key in part.claims:
            previous = some.get(key)
            source = book.source(previous[0]) if previous else None
            rows[key] = record.row(book.name, said[key], previous, source)
        yield [*rows.values()]
