"""Text to executed notebook, one way.

A chapter is a pair: ``name.md``, the text people edit (MyST, read by jupytext), and
``name.ipynb``, generated from it, executed and normalized, committed with outputs and
with the digests of all that it was made from. New prose is taken over and nothing is
executed for it.

    python -m tools.notebooks            execute what is stale
    python -m tools.notebooks more-checks-1 chapters/index.ipynb     only these
    python -m tools.notebooks --import chapters/1-softmax-expansion.ipynb
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools.alone import ALIKE
from tools.command import (
    ROOT,
    PipelineError,
    children_seconds,
    exclusive,
    replace,
    run_main,
    today,
)
from tools.digests import KEY, digests, sha, stale
from tools.texts import BOOK, METADATA, SETS, SETUP, read_text, texts

FACTS = Path("chapters/reference/execution.json")
WIDGET = "application/vnd.jupyter.widget-view+json"
SECONDS = 600  # that one cell may take


def execute(path: Path, root: Path = ROOT) -> dict[str, object]:
    """Make the notebook of one text; return the facts of the run."""
    name, before = path.relative_to(root), digests(path, root)
    notebook, begun = read_text(path), [0]
    start = children_seconds()
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", record_timing=False,
        store_widget_state=False, coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=lambda cell, cell_index: begun.append(cell_index),
    )  # fmt: skip
    try:
        client.execute(env=ALIKE | os.environ)
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
        "cpu_seconds": round(children_seconds() - start, 1),
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


def import_notebook(notebook: Path, root: Path = ROOT) -> None:
    """Bring cells edited in JupyterLab back into the text, unless that changed too."""
    notebook = notebook.resolve()
    path = notebook.with_suffix(".md")
    if path not in [*texts(root), *texts(root, SETS)]:
        raise PipelineError(f"{notebook}: there is no text beside it")
    edited = nbformat.read(notebook, 4)
    name = path.relative_to(root).as_posix()
    stored = edited.metadata.get(KEY, {}).get(name)
    if stored != sha(path.read_bytes()):
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
