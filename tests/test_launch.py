"""Ways to run a page elsewhere: JupyterLab, a downloaded notebook, Binder and Colab."""

import os
import re
import subprocess
import sys
import time
import zipfile

import nbformat
import pytest
from bs4 import BeautifulSoup
from flit_core import buildapi
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from lib.data import DataUnavailable, fashion_mnist
from tools import lab, launch
from tools.notebooks import METADATA, ROOT, SETUP, read_text, texts
from tools.serve import HTML

SITE = ROOT / HTML
PAGES = [text.relative_to(ROOT).with_suffix("") for text in texts()]
CONF = """
extensions = ["myst_nb"]
nb_execution_mode = "off"
html_theme = "sphinx_book_theme"
html_theme_options = {options!r}
"""


# make lab CHAPTER=...


def test_chapters_go_by_number_name_and_part_of_a_name():
    for asked in ("3", "sinkhorn", "3-Sinkhorn-to-heat-flow"):
        assert lab.chapter(asked).stem == "3-sinkhorn-to-heat-flow"
    assert lab.chapter("index").stem == "index"
    assert lab.command([])[1:] == ["lab"]
    assert lab.command(["--no-browser"])[1:] == ["lab", "--no-browser"]
    name = "reference/more-checks-2.ipynb"
    assert lab.command(["checks-2", "--x"])[1:] == ["lab", name, "--x"]


@pytest.mark.parametrize(("asked", "what"), [("9", "no chapter"), ("checks", "no one")])
def test_unknown_chapter_is_one_sentence_with_those_that_exist(asked, what):
    command = [sys.executable, "-m", "tools.lab", asked]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 1 and found.stderr.count("\n") == 1
    assert found.stderr.startswith(f"error: '{asked}' is {what}")
    assert all(page.name in found.stderr for page in PAGES)


def test_lab_opens_the_chapter_asked_for(tmp_path):
    opened, script, log = (tmp_path / name for name in ("opened", "script", "log"))
    # JupyterLab gives the browser a page that leads to the address.
    script.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {opened}\n')
    script.chmod(0o700)
    places = {f"JUPYTER_{x}_DIR": str(tmp_path) for x in ("CONFIG", "DATA", "RUNTIME")}
    env = os.environ | places | {"BROWSER": f"{script} %s"}
    command = [sys.executable, "-m", "tools.lab", "3", "--allow-root"]
    command += ["--ServerApp.port=0", "--LabApp.extension_manager=readonly"]
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
    try:
        for _ in range(600):
            if opened.exists() and (text := opened.read_text()):
                break
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        address = re.search(r"http://[^\"]+", text).group()
        assert "/lab/tree/3-sinkhorn-to-heat-flow.ipynb?token=" in address
    finally:
        server.terminate()
        server.wait(30)


# A notebook that is downloaded.


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_page_with_code_offers_its_notebook(page):
    soup = BeautifulSoup((SITE / f"{page}.html").read_text("utf-8"), "html.parser")
    (link,) = soup.select("a.btn-download-source-button")
    target = (SITE / page.parent / link["href"]).resolve()
    assert target == SITE / "_sources" / f"{page}.ipynb"
    kept, given = nbformat.read(ROOT / f"{page}.ipynb", 4), nbformat.read(target, 4)
    for notebook in (kept, given):  # of the text, see test_plain.py
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = ""
    assert given.cells == kept.cells
    assert given.metadata == METADATA


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what ``pip install`` of the package puts there, and no more."""
    folder = tmp_path_factory.mktemp("wheel")
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        name = buildapi.build_wheel(str(folder))
    finally:
        os.chdir(here)
    target = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(folder / name).extractall(target)
    return target


@pytest.mark.parametrize(
    ("page", "cells"),
    [("chapters/reference/more-checks-2", None), ("chapters/2-softmax-expansion", 12)],
)
def test_download_runs_in_an_empty_folder(
    page, cells, installed, tmp_path, monkeypatch
):
    notebook = read_text(ROOT / f"{page}.md")
    notebook.cells = notebook.cells[:cells]
    assert any(cell.id == SETUP for cell in notebook.cells)
    if cells:
        try:
            fashion_mnist()
        except DataUnavailable as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        assert any(
            "needs-images" in cell.metadata.get("tags", ()) for cell in notebook.cells
        )
    ask = "import lib, os\nprint(lib.__file__, os.listdir())"
    notebook.cells.append(new_code_cell(ask))
    monkeypatch.setenv("PYTHONPATH", str(installed))
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    said = notebook.cells[-1].outputs[0].text
    assert said.strip() == f"{installed / 'lib' / '__init__.py'} []"


def test_first_cell_is_short_silent_and_of_no_text():
    for text in texts():
        cells = [c for c in read_text(text).cells if c.cell_type == "code"]
        assert cells[0].id == SETUP and cells[0].metadata.tags == ["remove-cell"]
        assert len(cells[0].source.splitlines()) <= 8
        assert "find_spec" not in text.read_text("utf-8")
    exec(cells[0].source, {})


@pytest.mark.parametrize("name", [None, "owner/name"])
def test_missing_package_is_explained(name, tmp_path):
    """Without site-packages there is no lib, and the cell needs nothing else."""
    said = refusal(launch.setup_cell(name), tmp_path)
    assert said.startswith("ImportError: this notebook needs the package of the book")
    assert ("git+https://github.com/owner/name" in said) == (name is not None)
    assert ("clone" in said) == (name is None)


@pytest.mark.parametrize("other", ["lib.py", "lib/__init__.py", "lib/notes.txt"])
def test_another_lib_is_named(other, tmp_path):
    path = tmp_path / other
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    said = refusal(launch.setup_cell(None), tmp_path)
    named = path if path.suffix == ".py" else path.parent
    assert (
        said
        == f"ImportError: another lib hides the package of the book: rename {named}"
    )


def refusal(cell, folder):
    """Last line of the error that a cell raises in a folder, without site-packages."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-S", "-c", cell]
    found = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert found.returncode == 1
    return (
        found.stderr.strip()
        .splitlines()[-1]
        .replace("rename lib", f"rename {folder}/lib")
    )


# Binder and Colab, once the address of the repository is known.


def test_repository_is_that_of_pyproject_or_none():
    start = "[project]\nname = 'x'\n"
    assert launch.repository(start) is None
    assert launch.repository(f"{start}[project.urls]\n") is None
    for written in ("o/n", "o/n.git", "o/n/"):
        address = f"https://github.com/{written}"
        assert launch.repository(f"{start}urls = {{Repository = '{address}'}}") == "o/n"
    for wrong in ("https://example.org/o/n", "https://github.com/o", ""):
        with pytest.raises(ValueError, match=f"Repository.*{re.escape(repr(wrong))}"):
            launch.repository(f"{start}urls = {{Repository = '{wrong}'}}")


def test_nothing_leads_to_binder_or_colab_while_there_is_no_repository():
    assert launch.theme_options(None) == {}
    if launch.repository() is None:
        for page in PAGES:
            for path in (SITE / f"{page}.html", SITE / f"{page}.live.html"):
                html = path.read_text("utf-8")
                assert "mybinder" not in html and "colab" not in html


def test_launch_buttons_lead_to_files_of_the_repository(tmp_path):
    options = launch.theme_options("owner/name")
    (tmp_path / "conf.py").write_text(CONF.format(options=options))
    some = [PAGES[0], PAGES[-1]]  # a chapter and a page of reference
    listed = "\n".join(["# Contents", "", "```{toctree}", *map(str, some), "```"])
    (tmp_path / "index.md").write_text(listed)
    for page in some:
        empty = nbformat.v4.new_notebook(metadata=METADATA)
        empty.cells.append(nbformat.v4.new_markdown_cell("# Title"))
        path = tmp_path / f"{page}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(empty, path)
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", ".", "html"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    binder = f"{launch.BINDER}/v2/gh/owner/name/main?urlpath=lab/tree/"
    colab = f"{launch.COLAB}/github/owner/name/blob/main/"
    for page in some:
        html = (tmp_path / "html" / f"{page}.html").read_text("utf-8")
        soup = BeautifulSoup(html, "html.parser")
        links = [a["href"] for a in soup.select(".dropdown-launch-buttons a")]
        assert links == [f"{binder}{page}.ipynb", f"{colab}{page}.ipynb"]
    # The others are named alike; Binder installs from the last two.
    needed = {*(f"{page}.ipynb" for page in PAGES), "requirements.txt", "runtime.txt"}
    assert needed <= set(tracked)
