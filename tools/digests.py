"""Digests of what a notebook was made from, by meaning: is it still what it says?

Digests of its code cells, of the syntax of the modules that these use (docstrings and
comments are none of it), of the files that the modules read, and of the versions of the
packages. A package whose ``__init__`` only passes names on is used as far as its names
are: ``from lib import heat`` and ``heat.quadrature`` need the module of that function.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from tools.command import ROOT, PipelineError
from tools.launch import setup_cell
from tools.texts import SETUP, read_text

KEY = "attention_limit"  # notebook metadata: digests of all it was made from
CODE = "code cells"  # name of theirs among the digests
READ = {".mplstyle", ".svg", ".png"}  # files of lib that its modules read
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.M)


def digests(path: Path, root: Path = ROOT) -> dict[str, str]:
    """Digests of the text, of its code, and of all that the code depends on.

    These are the ``lib`` modules it imports, by their meaning, the style of the
    figures, and the locked versions of the packages. The first cell is not of the text,
    and has a digest of its own.
    """
    cells = [c for c in read_text(path).cells if c.cell_type == "code"]
    code = [cell.source for cell in cells if cell.id != SETUP]
    pending = _needed(_used(ast.parse("\n".join(code))), root)
    known: dict[str, str] = {}
    while pending:
        file = pending.pop()
        name = file.relative_to(root).as_posix()
        if name in known:
            continue
        if file.suffix == ".py":
            known[name], names = _understood(file.read_bytes())
            # What its code reads lies beside it.
            pending += [p for p in file.parent.iterdir() if p.suffix in READ]
            pending += _needed(names, root)
        else:
            known[name] = sha(file.read_bytes())
    known[path.relative_to(root).as_posix()] = sha(path.read_bytes())
    known["requirements.lock"] = sha(repr(versions(root)).encode())
    known[CODE] = sha(repr(code).encode())
    known[SETUP] = sha(setup_cell().encode())
    return dict(sorted(known.items()))


def meaning(node: Any) -> Any:
    """A syntax tree as nested tuples, without places, docstrings and what is empty.

    Versions of Python differ in the empty fields that a node has.
    """
    if isinstance(node, list):
        return [meaning(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
        ast.get_docstring(node, clean=False) is not None
    ):
        fields["body"] = fields["body"][1:]
    kept = {name: meaning(value) for name, value in fields.items()}
    return type(node).__name__, [
        each for each in kept.items() if each[1] is not None and each[1] != []
    ]


def versions(root: Path = ROOT) -> list[tuple[str, str]]:
    """The locked versions of the packages that ``lib`` and its notebooks need."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.match(r"[\w.-]+", each)[0].lower() for each in project["dependencies"]}
    pins = PIN.findall((root / "requirements.lock").read_text("utf-8"))
    return sorted(pin for pin in pins if pin[0].lower() in needed)


@cache
def _understood(module: bytes) -> tuple[str, frozenset[str]]:
    """Digest of the meaning of a module, and the names that it uses."""
    tree = ast.parse(module)
    return sha(repr(meaning(tree)).encode()), _used(tree)


def imports(source: str | bytes, root: Path = ROOT) -> list[Path]:
    """Files of ``lib`` that a piece of Python imports, and of the packages around."""
    return _files(_names(ast.parse(source)), root)


def _used(tree: ast.AST) -> frozenset[str]:
    """Imported names with what is taken from each; all of it, where that is unsaid."""
    local = {}  # the name in this code of each that it imports
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                local[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    used = {name for name in _names(tree) if name not in local.values()}
    taken: set[ast.Name] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name)) if name in local:
                used.add(f"{local[name]}.{node.attr}")
                taken.add(node.value)
    whole = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node not in taken
    }
    whole |= local.keys() - {node.id for node in taken}  # imported, and no more
    return frozenset(used | {local[name] + ".*" for name in whole & local.keys()})


def _needed(names: Iterable[str], root: Path) -> list[Path]:
    """Files of ``lib`` that define these names."""
    files: set[Path] = set()
    for name in names:
        files |= _defining(tuple(name.split(".")), root)
    return sorted(files)


def _defining(parts: tuple[str, ...], root: Path) -> set[Path]:
    """Files that a dotted name leads to, along packages that only pass names on."""
    if parts[0] != "lib":
        return set()
    files: set[Path] = set()
    for end in range(1, len(parts) + 1):
        folder = root.joinpath(*parts[:end])
        if (module := folder.with_suffix(".py")).is_file():
            return files | {module}
        if not (init := folder / "__init__.py").is_file():
            return files
        passed = _passed_on(init.read_bytes())
        if passed is None:
            files.add(init)  # its code runs
            continue
        following = parts[end] if end < len(parts) else "*"
        target = tuple(passed.get(following, "").split("."))
        # A module of the package, perhaps with a function of its name, is on the way.
        if following in passed and target[: end + 1] != (*parts[:end], following):
            return files | _defining(target, root)
        inner = folder / following
        if not (inner.is_dir() or inner.with_suffix(".py").is_file()):
            files.add(init)
            return files.union(
                *(_defining((*name.split("."), "*"), root) for name in passed.values())
            )
    return files


@cache
def _passed_on(init: bytes) -> dict[str, str] | None:
    """Names that a package imports, or None if it does anything else."""
    passed = {}
    for node in ast.parse(init).body:
        if isinstance(node, ast.ImportFrom):
            passed |= {
                a.asname or a.name: f"{node.module}.{a.name}" for a in node.names
            }
        elif not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            or isinstance(node, ast.Assign)
            and ast.unparse(node.targets) == "__all__"
        ):
            return None
    passed.pop("annotations", None)
    return passed


def _names(tree: ast.AST) -> frozenset[str]:
    names = {"lib"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise PipelineError(f"line {node.lineno} of lib imports relatively")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def _files(names: frozenset[str], root: Path) -> list[Path]:
    files = set()
    for parts in (name.split(".") for name in names):
        for end in range(1, len(parts) + 1 if parts[0] == "lib" else 0):
            path = root.joinpath(*parts[:end])
            files |= {path.with_suffix(".py"), path / "__init__.py"}
    return sorted(file for file in files if file.is_file())


def stale(path: Path, root: Path = ROOT) -> list[str]:
    """The files that changed since the notebook of this text was made."""
    target = path.with_suffix(".ipynb")
    if not target.exists():
        return [target.relative_to(root).as_posix()]
    stored = nbformat.read(target, 4).metadata.get(KEY, {})
    fresh = digests(path, root)
    return sorted(k for k in stored.keys() | fresh if stored.get(k) != fresh.get(k))


def sha(content: bytes) -> str:
    """Digest of what is compared byte by byte."""
    return hashlib.sha256(content).hexdigest()
