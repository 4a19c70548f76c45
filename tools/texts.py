"""The texts of the book, and the notebooks that they describe."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import combinations
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell

from tools.command import ROOT, PipelineError
from tools.launch import setup_cell

BOOK, SETS = Path("chapters"), Path("coursework/source")
KERNEL = "\nkernelspec:"
SETUP = "first-cell"  # id, and name among the digests, of the cell no text has
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def texts(root: Path = ROOT, top: Path = BOOK) -> list[Path]:
    """The texts that are notebooks: those whose front matter names a kernel."""
    every = sorted((root / top).rglob("*.md"))
    kept = [p for p in every if KERNEL in p.read_text("utf-8").split("\n---\n")[0]]
    for one, two in combinations(kept, 2):
        if one.stem == two.stem:
            both = f"{one.relative_to(root)}, {two.relative_to(root)}"
            raise PipelineError(f"two notebooks are named {one.stem!r}: {both}")
    return kept


def read_text(path: Path) -> nbformat.NotebookNode:
    """The notebook a text describes: no outputs, ids derived from the content.

    Before its first code stands a cell that pages and texts do not have. It says what
    to do where the notebook is opened without the package.
    """
    notebook = jupytext.read(path, fmt="md:myst")
    notebook.metadata = nbformat.from_dict(METADATA)
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        key = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[
            :8
        ]
        cell.id = f"{key}-{seen[key]}"
        seen[key] += 1
    code = (n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    if (first := next(code, None)) is not None:
        tags = {"tags": ["remove-cell"]}
        setup = new_code_cell(setup_cell(), id=SETUP, metadata=tags)
        notebook.cells.insert(first, setup)
    return notebook
