"""Tests that can notice a mutant: those that execute its line, fastest first."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.digests import imports, meaning, sha, versions
from tools.mutants.sites import Mutant, files

TESTS = Path("tests/lib")
OWN, PACKAGE, OTHER = "own", "package", "lib"


@dataclass(frozen=True)
class Candidate:
    """A test, what it costs, and the lines of ``lib`` that it executes."""

    name: str
    seconds: float
    lines: dict[str, frozenset[int]]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]

    def limit(self) -> float:
        """Seconds of the processor after which it is said to hang."""
        return 10 + 5 * self.seconds

    def runs(self, file: str, first: int, last: int) -> bool:
        """Tell whether it executes one of the lines from the first to the last."""
        return any(first <= line <= last for line in self.lines.get(file, ()))


def test_files(root: Path) -> list[Path]:
    return sorted((root / TESTS).glob("test_*.py"))


def traced_from(test: Path, root: Path) -> str:
    """Digest of what the lines of a file of tests depend on."""
    parts = [path.read_bytes() for path in [*files(root), test]]
    return sha(b"\0".join(parts) + repr(versions(root)).encode())[:16]


def library(root: Path) -> str:
    """Digest of what ``lib`` computes, with the packages it computes with."""
    trees = [_meaning(path.read_bytes()) for path in files(root)]
    return sha(repr([trees, versions(root)]).encode())[:16]


@cache
def _meaning(source: bytes) -> str:
    return sha(repr(meaning(ast.parse(source))).encode())


@cache
def made_of(source: bytes, name: str) -> str:
    """Digest of a file of tests without the other tests, for the name of one."""
    function = name.split("::")[1].partition("[")[0]
    kept = [
        node
        for node in ast.parse(source).body
        if not isinstance(node, ast.FunctionDef)
        or not node.name.startswith("test_")
        or node.name == function
    ]
    return sha(repr(meaning(kept)).encode())


class Traced:
    """All tests, and the lines that run at import."""

    def __init__(self, paths: Iterable[Path], root: Path):
        self.tests: list[Candidate] = []
        self.at_import: dict[str, set[int]] = {}
        for path in paths:
            trace = json.loads(path.read_text("utf-8"))
            for file, lines in trace["import"].items():
                self.at_import.setdefault(file, set()).update(lines)
            self.tests += [_test(*each) for each in trace["tests"].items()]
        self.imports = {
            path.relative_to(root).as_posix(): [
                each.relative_to(root).as_posix()
                for each in imports(path.read_bytes(), root)
            ]
            for path in files(root)
        }

    def noticing(self, mutant: Mutant) -> list[Candidate]:
        """Tests that execute the line of a mutant, in the order to run them in.

        What runs at import is executed by none alone: for the defaults of a function
        these are the tests that call it, else those of its module and of the modules
        that import it.
        """
        unit, file = mutant.unit, mutant.file
        places = {file: unit.lines}
        if unit.function is None and unit.body:
            places = {file: unit.body}
        elif unit.function is None or self._at_import(file, *unit.lines):
            users = [name for name, used in self.imports.items() if file in used]
            places = dict.fromkeys([file, *users], (1, 10**6))
        candidates = [
            test
            for test in self.tests
            if any(test.runs(name, *lines) for name, lines in places.items())
        ]
        return sorted(candidates, key=lambda t: (_rank(t.file, mutant.file), t.seconds))

    def _at_import(self, file: str, first: int, last: int) -> bool:
        return any(first <= line <= last for line in self.at_import.get(file, ()))


def _test(name: str, trace: dict[str, Any]) -> Candidate:
    lines = {file: frozenset(each) for file, each in trace["lines"].items()}
    return Candidate(name, trace["seconds"], lines)


def whose(test_file: str, file: str) -> str:
    """Tell whose a test file is: of a file of ``lib``, of its package, or another's."""
    parts = Path(file).with_suffix("").parts[1:]
    stem = Path(test_file).stem
    if stem == "test_" + "_".join(parts):
        return OWN
    return PACKAGE if f"{stem}_".startswith(f"test_{parts[0]}_") else OTHER


def _rank(test_file: str, file: str) -> int:
    return [OWN, PACKAGE, OTHER].index(whose(test_file, file))
