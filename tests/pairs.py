"""A small page: a text, and its notebook with the same cells."""

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tools.texts import METADATA

FRONT = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# Test
"""


def write_pair(path, cells):
    """The pair of a text at ``path``, whose folder is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fences = "".join(f"\n```{{code-cell}}\n{cell}\n```\n" for cell in cells)
    path.write_text(FRONT + fences, "utf-8")
    notebook = new_notebook(
        cells=[new_code_cell(cell) for cell in cells], metadata=METADATA
    )
    nbformat.write(notebook, path.with_suffix(".ipynb"))
    return path
