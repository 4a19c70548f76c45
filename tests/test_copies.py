"""The command that opens copies of the notebooks in JupyterLab."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from waits import LIMIT, until

from tools import lab
from tools.command import ROOT, PipelineError


@pytest.fixture
def book(tmp_path):
    """A small book of two notebooks."""
    for name in ("1-one", "reference/more"):
        path = tmp_path / "chapters" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True, parents=True)
        write(path, "x = 1")
    return tmp_path


def write(path, source, outputs=()):
    cell = new_code_cell(source, outputs=[*outputs], id="one")
    nbformat.write(new_notebook(cells=[cell]), path)


def copy(book, name="1-one"):
    return book / lab.COPIES / f"{name}.ipynb"


def source(path):
    return nbformat.read(path, 4).cells[0].source


def test_copies_are_made_and_the_book_is_left_alone(book):
    before = (book / "chapters/1-one.ipynb").read_bytes()
    assert lab.refresh(book) == []
    for name in ("1-one", "reference/more"):
        assert copy(book, name).read_bytes() == before
    write(copy(book), "x = 2")
    assert lab.refresh(book) == []
    assert (book / "chapters/1-one.ipynb").read_bytes() == before
    assert source(copy(book)) == "x = 2", "an edit was lost"


def test_a_copy_that_was_only_run_follows_the_book(book):
    lab.refresh(book)
    result = new_output("stream", text="1\n")
    write(copy(book), "x = 1", [result])
    lab.refresh(book)
    assert "1\\n" in copy(book).read_text(), "results were lost for nothing"
    write(book / "chapters/1-one.ipynb", "x = 3")
    assert lab.refresh(book) == []
    assert source(copy(book)) == "x = 3"


def test_new_results_of_the_same_cells_do_not_replace_a_copy(book):
    lab.refresh(book)
    write(copy(book), "x = 1", [new_output("stream", text="mine\n")])
    write(book / "chapters/1-one.ipynb", "x = 1", [new_output("stream", text="new\n")])
    lab.refresh(book)
    assert "mine" in copy(book).read_text()


def test_an_edited_copy_is_kept_and_named_when_the_book_moves_on(book):
    lab.refresh(book)
    write(copy(book), "x = 2")
    write(book / "chapters/1-one.ipynb", "x = 3")
    for _ in range(2):
        assert lab.refresh(book) == ["1-one.ipynb"]
        assert source(copy(book)) == "x = 2"
    copy(book).unlink()
    assert lab.refresh(book) == [] and source(copy(book)) == "x = 3"
    assert lab.refresh(book) == []


def test_an_edit_that_the_book_took_over_is_a_copy_again(book):
    lab.refresh(book)
    write(copy(book), "x = 2")
    write(book / "chapters/1-one.ipynb", "x = 2")
    assert lab.refresh(book) == []
    write(book / "chapters/1-one.ipynb", "x = 3")
    assert lab.refresh(book) == [] and source(copy(book)) == "x = 3"


@pytest.mark.parametrize("record", ["", "[", None])
def test_without_its_record_no_copy_is_overwritten(book, record):
    lab.refresh(book)
    path = book / lab.COPIES / lab.RECORD
    path.write_text(record) if record is not None else path.unlink()
    write(copy(book), "x = 2")
    copy(book, "reference/more").write_text("no notebook any more")
    assert lab.refresh(book) == ["1-one.ipynb", "reference/more.ipynb"]
    assert source(copy(book)) == "x = 2"
    assert copy(book, "reference/more").read_text() == "no notebook any more"


def test_a_folder_that_cannot_be_written_is_one_sentence(book):
    (book / lab.COPIES).write_text("a file where the folder should be")
    with pytest.raises(PipelineError, match="could not be written into .*--edit$"):
        lab.refresh(book)


def test_chapters_go_by_number_name_and_part_of_a_name():
    for asked in ("3", "sinkhorn", "3-Sinkhorn-to-heat-flow"):
        assert lab.chapter(asked).stem == "3-sinkhorn-to-heat-flow"
    assert lab.chapter("index").stem == "index"


def test_the_line_that_starts_jupyterlab(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    start = [sys.executable, "-m", "jupyterlab"]
    assert lab.command([]) == (ROOT / "notebooks", start)
    assert lab.command(["--no-browser"])[1] == [*start, "--no-browser"]
    name = "reference/more-checks-1.ipynb"
    line = [*start, name, "--x"]
    assert lab.command(["checks-1", "--x"]) == (ROOT / "notebooks", line)
    assert lab.command(["checks-1", "--edit", "--x"]) == (ROOT / "chapters", line)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert lab.command([])[1] == [*start, "--allow-root"]


@pytest.mark.parametrize(("asked", "what"), [("9", "no chapter"), ("checks", "no one")])
def test_unknown_chapter_is_one_sentence_with_those_that_exist(asked, what):
    command = [sys.executable, "-m", "tools.lab", asked]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"error: '{asked}' is {what}")
    assert all(path.stem in result.stderr for path in lab.notebooks())


def test_without_jupyterlab_it_says_what_to_install():
    """No site-packages: this command needs nothing but JupyterLab."""
    command = [sys.executable, "-S", "-m", "tools.lab"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert 'pip install ".[lab]"' in result.stderr


@pytest.mark.parametrize("edit", [[], ["--edit"]], ids=["copies", "edit"])
def test_lab_opens_the_chapter_asked_for(edit, tmp_path):
    """As the user who runs the tests, root where that is root."""
    opened, script, log = (tmp_path / name for name in ("opened", "script", "log"))
    # JupyterLab gives the browser a page that leads to the address.
    script.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {opened}\n')
    script.chmod(0o700)
    runtime = tmp_path / "runtime"
    places = {f"JUPYTER_{x}_DIR": str(tmp_path) for x in ("CONFIG", "DATA")}
    places["JUPYTER_RUNTIME_DIR"] = str(runtime)
    env = os.environ | places | {"BROWSER": f"{script} %s"}
    command = [sys.executable, "-m", "tools.lab", "3", *edit]
    command += ["--ServerApp.port=0", "--LabApp.extension_manager=readonly"]
    with log.open("w") as out:
        started = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
    server = None
    try:
        text = wait(lambda: opened.exists() and opened.read_text(), started, log)
        address = re.search(r"http://[^\"]+", text).group()
        assert "/lab/tree/3-sinkhorn-to-heat-flow.ipynb?token=" in address
        (written,) = runtime.glob("jpserver-*.json")
        server = json.loads(written.read_text())
        folder = "chapters" if edit else lab.COPIES
        assert server["root_dir"] == str(ROOT / folder)
    finally:
        if server is not None:
            os.kill(server["pid"], 15)
        else:
            started.terminate()
        started.wait(LIMIT)


def wait(condition, process, log):
    answer = until(condition, lambda: process.poll() is not None)
    assert answer, log.read_text()
    return answer
