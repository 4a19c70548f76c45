"""No notebook needs a file that a reader who has only the notebook does not have."""

import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from tools.alone import profile
from tools.command import ROOT
from tools.texts import SETS, texts

FOREIGN = [
    "from pathlib import Path; Path('../README.md').read_text()",
    "open('index.md')",
    "import numpy as np; np.loadtxt('../tools/site/static/logo.svg')",
    "import sys; sys.path.append('..'); import tools.launch",
    "open('beside-the-notebook.txt', 'w')",
]
OWN = """
import tempfile
from lib import figures
from lib.data import DataUnavailable, fashion_mnist
figures.drawing("transformer-block")
try:
    fashion_mnist()
except DataUnavailable:
    pass
with tempfile.TemporaryFile("w+") as file:
    file.write("1")
print("all of them")
"""


def run(source, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(profile(tmp_path / "ipython", ROOT)))
    notebook = new_notebook(cells=[new_code_cell(source)])
    resources = {"metadata": {"path": str(ROOT / "chapters")}}
    NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    return [output.text for output in notebook.cells[0].outputs]


@pytest.mark.parametrize("source", FOREIGN)
def test_a_file_of_the_book_is_refused(source, tmp_path, monkeypatch):
    with pytest.raises(CellExecutionError) as error:
        run(source, tmp_path, monkeypatch)
    assert error.value.ename == "PermissionError"
    assert error.value.evalue.startswith("a reader who has only this notebook has no")
    assert not (ROOT / "chapters" / "beside-the-notebook.txt").exists()


def test_the_package_images_and_other_folders_are_open(tmp_path, monkeypatch):
    assert run(OWN, tmp_path, monkeypatch) == ["all of them\n"]


# The watch is that of the conftest beside pyproject.toml, for all folders below.
@pytest.mark.parametrize("option", ["--nbval", "--nbval-lax"])
def test_nbval_runs_every_notebook_under_the_watch(option):
    (ROOT / "_build").mkdir(exist_ok=True)
    planted = new_notebook(
        cells=[new_code_cell("open('../../README.md')")],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    command = [sys.executable, "-m", "pytest", "-q", option, "--nbval-current-env"]
    with tempfile.TemporaryDirectory(prefix="planted-", dir=ROOT / "_build") as folder:
        nbformat.write(planted, Path(folder) / "planted.ipynb")
        result = subprocess.run(
            [*command, folder], cwd=ROOT, capture_output=True, text=True
        )
    assert "a reader who has only this notebook has no README.md" in result.stdout
    assert "1 failed" in result.stdout


def test_nbval_is_given_every_notebook():
    """The folders that `make test` hands to nbval hold all texts, and no other does."""
    line = next(
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if "$(NBVAL) --nbval-current-env" in line
    )
    folders = line.split()[-2:]
    assert folders == ["chapters", SETS.as_posix()]
    for path in [*texts(), *texts(ROOT, SETS)]:
        assert path.relative_to(ROOT).as_posix().startswith(tuple(folders))
