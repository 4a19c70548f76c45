"""What a notebook was made from, by meaning: whether it is still what it says.

Digests of its code cells, of the syntax of the modules that these use (docstrings and
comments are none of it), of the files that the modules read, and of the versions of the
packages.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
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
    pending = imports("\n".join(code), root)
    found: dict[str, str] = {}
    while pending:
        file = pending.pop()
        name = file.relative_to(root).as_posix()
        if name in found:
            continue
        if file.suffix == ".py":
            found[name], names = _understood(file.read_bytes())
            # What its code reads lies beside it.
            pending += [p for p in file.parent.iterdir() if p.suffix in READ]
            pending += _files(names, root)
        else:
            found[name] = sha(file.read_bytes())
    found[path.relative_to(root).as_posix()] = sha(path.read_bytes())
    found["requirements.lock"] = sha(repr(versions(root)).encode())
    found[CODE] = sha(repr(code).encode())
    found[SETUP] = sha(setup_cell().encode())
    return dict(sorted(found.items()))


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
    """Digest of the meaning of a module, and the names that it imports."""
    tree = ast.parse(module)
    return sha(repr(meaning(tree)).encode()), _names(tree)


def imports(source: str | bytes, root: Path = ROOT) -> list[Path]:
    """Files of ``lib`` that a piece of Python imports, and of the packages around."""
    return _files(_names(ast.parse(source)), root)


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
