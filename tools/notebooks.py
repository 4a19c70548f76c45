"""Text to executed notebook, one way.

A chapter is a pair: ``name.md``, the text people edit (MyST, read by jupytext), and
``name.ipynb``, generated from it, executed and normalized, committed with outputs.
The notebook carries the digests of all it was made from, by meaning: of its code cells,
of the syntax of the modules they use without docstrings and comments, of the versions
of the packages. New prose is taken over and nothing is executed for it.

    python -m tools.notebooks            execute what is stale
    python -m tools.notebooks more-checks-2 chapters/index.ipynb     only these
    python -m tools.notebooks --import chapters/2-softmax-expansion.ipynb
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import platform
import re
import resource
import tomllib
from collections import Counter
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell

from tools.command import ROOT, PipelineError, exclusive, replace, run_main
from tools.launch import setup_cell

BOOK, SETS = Path("chapters"), Path("coursework/source")
FACTS = Path("chapters/reference/execution.json")
READ = {".mplstyle", ".svg"}  # files of lib that its modules read
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = "\nkernelspec:"
KEY = "attention_limit"  # notebook metadata: digests of all it was made from
SETUP = "first-cell"  # id, and name among the digests, of the cell no text has
CODE = "code cells"  # name of theirs among the digests
SECONDS = 600  # that one cell may take
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.M)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def texts(root: Path = ROOT, top: Path = BOOK) -> list[Path]:
    """The texts that are notebooks: those whose front matter names a kernel."""
    every = sorted((root / top).rglob("*.md"))
    found = [p for p in every if KERNEL in p.read_text("utf-8").split("\n---\n")[0]]
    for one, two in combinations(found, 2):
        if one.stem == two.stem:
            both = f"{one.relative_to(root)}, {two.relative_to(root)}"
            raise PipelineError(f"two notebooks are named {one.stem!r}: {both}")
    return found


def read_text(path: Path) -> nbformat.NotebookNode:
    """The notebook a text describes: no outputs, ids derived from the content.

    Before its first code stands a cell that pages and texts do not have. It says what
    to do where the notebook is opened without the package.
    """
    notebook = jupytext.read(path, fmt="md:myst")
    notebook.metadata = nbformat.from_dict(METADATA)
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        key = _sha(f"{cell.cell_type}\n{cell.source}".encode())[:8]
        cell.id = f"{key}-{seen[key]}"
        seen[key] += 1
    code = (n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    if (first := next(code, None)) is not None:
        tags = {"tags": ["remove-cell"]}
        setup = new_code_cell(setup_cell(), id=SETUP, metadata=tags)
        notebook.cells.insert(first, setup)
    return notebook


def digests(path: Path, root: Path = ROOT) -> dict[str, str]:
    """Digests of the text, of its code, and of all that the code depends on.

    These are the ``lib`` modules it imports, by their meaning, the style of the
    figures, and the locked versions of the packages. The first cell is not of the text,
    and has a digest of its own.
    """
    cells = [c for c in read_text(path).cells if c.cell_type == "code"]
    code = [cell.source for cell in cells if cell.id != SETUP]
    pending = _imports("\n".join(code), root)
    found: dict[str, str] = {}
    while pending:
        file = pending.pop()
        name = file.relative_to(root).as_posix()
        if name in found:
            continue
        if file.suffix == ".py":
            tree = ast.parse(file.read_bytes())
            found[name] = _sha(repr(meaning(tree)).encode())
            # What its code reads lies beside it.
            pending += [p for p in file.parent.iterdir() if p.suffix in READ]
            pending += _imports(tree, root)
        else:
            found[name] = _sha(file.read_bytes())
    found[path.relative_to(root).as_posix()] = _sha(path.read_bytes())
    found["requirements.lock"] = _sha(repr(versions(root)).encode())
    found[CODE] = _sha(repr(code).encode())
    found[SETUP] = _sha(setup_cell().encode())
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


def _imports(source: str | ast.AST, root: Path) -> list[Path]:
    """Files of ``lib`` that a piece of Python imports."""
    names = {"lib.__init__"}
    tree = ast.parse(source) if isinstance(source, str) else source
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
    parts = (name.split(".") for name in names if name.startswith("lib."))
    paths = [root.joinpath(*part) for part in parts]
    files = [f for p in paths for f in (p.with_suffix(".py"), p / "__init__.py")]
    return [file for file in files if file.is_file()]


def stale(path: Path, root: Path = ROOT) -> list[str]:
    """The files that changed since the notebook of this text was made."""
    target = path.with_suffix(".ipynb")
    if not target.exists():
        return [target.relative_to(root).as_posix()]
    stored = nbformat.read(target, 4).metadata.get(KEY, {})
    fresh = digests(path, root)
    return sorted(k for k in stored.keys() | fresh if stored.get(k) != fresh.get(k))


def execute(path: Path, root: Path = ROOT) -> dict[str, object]:
    """Make the notebook of one text; return the facts of the run."""
    name, before = path.relative_to(root), digests(path, root)
    notebook, begun = read_text(path), [0]
    start = _children_seconds()
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", record_timing=False,
        store_widget_state=False, coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=lambda cell, cell_index: begun.append(cell_index),
    )  # fmt: skip
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        where = _place(notebook.cells[: begun[-1] + 1])
        raise PipelineError(f"{name}: {where} {_reason(error)}") from None
    if digests(path, root) != before:
        raise PipelineError(
            f"{name}: it or what it imports was edited while it was being executed;"
            " nothing was written, run make notebooks again"
        )
    for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
        output.get("data", {}).pop(WIDGET, None)  # names a model by a random id
    _write(notebook, path, before)
    return {
        "cpu_seconds": round(_children_seconds() - start, 1),
        "date": today(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "matplotlib")},
    }


def _place(cells: list[nbformat.NotebookNode]) -> str:
    """The last of some cells, by its number among those of the text and its line."""
    number = sum(c.cell_type == "code" and c.id != SETUP for c in cells)
    line = (cells[-1].source.strip() or "(empty)").splitlines()[0]
    return f"code cell {number} ({line})"


def _reason(error: Exception) -> str:
    if isinstance(error, CellExecutionError):
        return f"failed with {error.ename}: {error.evalue}"
    if isinstance(error, CellTimeoutError):
        return f"did not end within {SECONDS} s"
    return "ended Python itself, perhaps for want of memory"


def refresh(path: Path, root: Path = ROOT) -> None:
    """Take over new prose, and leave the outputs of the code, which is the same."""
    notebook, stored = read_text(path), nbformat.read(path.with_suffix(".ipynb"), 4)
    pairs = zip(
        *([c for c in n.cells if c.cell_type == "code"] for n in (notebook, stored)),
        strict=True,
    )
    for cell, old in pairs:
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    _write(notebook, path, digests(path, root))


def _write(notebook: nbformat.NotebookNode, path: Path, made_from: object) -> None:
    """The notebook beside its text. Execution adds what a kernel reports of itself."""
    notebook.metadata = nbformat.from_dict({**METADATA, KEY: made_from})
    replace(path.with_suffix(".ipynb"), nbformat.writes(notebook) + "\n")


def today() -> str:
    """The date, for the records of a run."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _children_seconds() -> float:
    """CPU seconds of the kernels that have ended."""
    import resource  # the rest of this file runs on any system

    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def import_notebook(notebook: Path, root: Path = ROOT) -> None:
    """Bring cells edited in JupyterLab back into the text, unless that changed too."""
    notebook = notebook.resolve()
    path = notebook.with_suffix(".md")
    if path not in [*texts(root), *texts(root, SETS)]:
        raise PipelineError(f"{notebook}: there is no text beside it")
    edited = nbformat.read(notebook, 4)
    name = path.relative_to(root).as_posix()
    stored = edited.metadata.get(KEY, {}).get(name)
    if stored != _sha(path.read_bytes()):
        raise PipelineError(
            f"{name} changed since the notebook was made: keep one of the two edits,"
            " run make notebooks, and make the other one again"
        )
    replace(path, as_text(edited, path))


def as_text(notebook: nbformat.NotebookNode, path: Path) -> str:
    """The cells of a notebook as a text, under the front matter that ``path`` has."""
    front = path.read_text("utf-8").split("\n---\n")[0]
    notebook.metadata = jupytext.read(path, fmt="md:myst").metadata
    notebook.cells = [cell for cell in notebook.cells if cell.get("id") != SETUP]
    cells = jupytext.writes(notebook, fmt="md:myst").split("\n---\n", 1)[1]
    return f"{front}\n---\n{cells}"


def chosen(names: list[str], root: Path = ROOT) -> list[Path]:
    """The texts with these names or addresses, all without any."""
    every = [*texts(root), *texts(root, SETS)]
    known = {path.stem: path for path in every}
    for name in names:
        if Path(name).stem not in known:
            raise PipelineError(
                f"{name!r} is no notebook; there are: {', '.join(known)}"
            )
    return [known[Path(name).stem] for name in names] or every


def main(argv: list[str] | None = None, root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(prog="tools.notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these notebooks")
    parser.add_argument("--import", dest="notebook", type=Path)
    asked = parser.parse_args(argv)
    with exclusive(root / BOOK, "make notebooks"):
        if asked.notebook:
            return import_notebook(asked.notebook, root)
        for path in chosen(asked.names, root):
            make(path, root)
    return None


def make(path: Path, root: Path = ROOT) -> None:
    """Bring one notebook up to date, and say what was done for it."""
    changed = stale(path, root)
    if not changed:
        print(f"notebooks: {path.stem} is fresh")
    elif set(changed) <= {path.relative_to(root).as_posix(), SETUP}:
        refresh(path, root)
        print(f"notebooks: {path.stem} has new prose; its outputs stand")
    else:
        print(f"notebooks: executing {path.stem} ({', '.join(changed)} changed)")
        fact = execute(path, root)
        facts = root / FACTS
        known = json.loads(facts.read_text()) if facts.exists() else {}
        known[path.stem] = fact
        replace(facts, json.dumps(known, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    run_main(main, "no notebook was left half-written")
