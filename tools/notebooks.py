"""Text to executed notebook, one way.

A chapter is a pair: ``name.md``, the text people edit (MyST, read by jupytext), and
``name.ipynb``, generated from it, executed and normalized, committed with outputs.
The notebook carries the digests of all it was made from, so that staleness is a
matter of content and never of file times.

    python -m tools.notebooks            execute what is stale
    python -m tools.notebooks --import chapters/2-softmax-expansion.ipynb
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import os
import platform
import resource
import sys
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell

from tools.launch import ROOT, repository, setup_cell

BOOK, SETS = Path("chapters"), Path("coursework/source")
FACTS = Path("chapters/reference/execution.json")
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = "\nkernelspec:"
KEY = "attention_limit"  # notebook metadata: {path: sha256} of all it was made from
SETUP = "first-cell"  # id, and name among the digests, of the cell no text has
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


class PipelineError(RuntimeError):
    """What is wrong, naming the file."""


def run_main(
    main: Callable[[], object],
    kept: str | None = None,
    foreseen: type[Exception] = PipelineError,
) -> None:
    """Call ``main``; exit with one sentence after an error that was ``foreseen``.

    So too after an interruption, where ``kept`` says what that has left intact.
    """
    try:
        sys.exit(main())
    except foreseen as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        if kept is None:
            raise
        sys.exit(f"error: interrupted; {kept}")


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
        setup = new_code_cell(setup_cell(repository()), id=SETUP, metadata=tags)
        notebook.cells.insert(first, setup)
    return notebook


def digests(path: Path, root: Path = ROOT) -> dict[str, str]:
    """sha256 of the text, of each ``lib`` module it imports, of style and lock.

    The first cell is not of the text, and has a digest of its own.
    """
    code = [c.source for c in read_text(path).cells if c.cell_type == "code"]
    pending = [path, root / "requirements.lock", *_imports("\n".join(code), root)]
    found: dict[str, str] = {}
    while pending:
        file = pending.pop()
        name, content = file.relative_to(root).as_posix(), file.read_bytes()
        if name in found:
            continue
        found[name] = _sha(content)
        if file.suffix == ".py":
            pending += _imports(content.decode(), root)
        if file.stem == "figures":
            pending += (root / "lib").rglob("*.mplstyle")
    found[SETUP] = _sha(setup_cell(repository()).encode())
    return dict(sorted(found.items()))


def _imports(source: str, root: Path) -> list[Path]:
    """Files of ``lib`` that a piece of Python imports, with those of their packages."""
    names = {"lib.__init__"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
    parts = [name.split(".") for name in sorted(names) if name.startswith("lib.")]
    paths = [root.joinpath(*p[:k]) for p in parts for k in range(2, len(p) + 1)]
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
    notebook = read_text(path)
    start = _children_seconds()
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False,
        store_widget_state=False, coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    try:
        client.execute()
    except CellExecutionError as error:
        raise PipelineError(
            f"{name}: a cell failed with {error.ename}: {error.evalue}"
        ) from None
    if digests(path, root) != before:
        raise PipelineError(
            f"{name}: it or what it imports was edited while it was being executed;"
            " nothing was written, run make notebooks again"
        )
    for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
        output.get("data", {}).pop(WIDGET, None)  # names a model by a random id
    # Execution adds what the kernel reports of itself (its Python version).
    notebook.metadata = nbformat.from_dict({**METADATA, KEY: before})
    replace(path.with_suffix(".ipynb"), nbformat.writes(notebook) + "\n")
    return {
        "cpu_seconds": round(_children_seconds() - start, 1),
        "date": today(),
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "matplotlib")},
    }


def today() -> str:
    """The date, for the records of a run."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _children_seconds() -> float:
    """CPU seconds of the kernels that have ended."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def replace(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


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


def main(argv: list[str] | None = None, root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(prog="tools.notebooks", description=__doc__)
    parser.add_argument("--import", dest="notebook", type=Path)
    if notebook := parser.parse_args(argv).notebook:
        return import_notebook(notebook, root)
    facts = root / FACTS
    for path in [*texts(root), *texts(root, SETS)]:
        if not (changed := stale(path, root)):
            print(f"notebooks: {path.stem} is fresh")
            continue
        print(f"notebooks: executing {path.stem} ({', '.join(changed)} changed)")
        fact = execute(path, root)
        known = json.loads(facts.read_text()) if facts.exists() else {}
        known[path.stem] = fact
        replace(facts, json.dumps(known, indent=2, sort_keys=True) + "\n")
    return None


if __name__ == "__main__":
    run_main(main, "no notebook was left half-written")
