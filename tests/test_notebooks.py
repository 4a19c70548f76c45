"""The committed notebooks are what their texts say, executed; the pipeline is safe."""

import json
import re
import shutil
import subprocess
import sys
import time

import nbformat
import pytest

from tools import notebooks
from tools.notebooks import (
    ROOT,
    SETUP,
    PipelineError,
    read_text,
    run_main,
    stale,
    texts,
)

PAIRS = texts()
VERDICT = re.compile(r"^(HOLDS|REFUTED): ")


def load(text):
    return nbformat.read(text.with_suffix(".ipynb"), 4)


@pytest.fixture(params=PAIRS, ids=lambda path: path.stem)
def text(request):
    return request.param


# What strict nbval would pass in silence, or should never reach a reader.


def test_there_are_notebooks_and_each_has_its_text():
    assert PAIRS
    stored = {path.with_suffix(".md") for path in (ROOT / "chapters").rglob("*.ipynb")}
    assert {p for p in stored if ".ipynb_checkpoints" not in p.parts} == set(PAIRS)


def test_notebook_is_fresh(text):
    assert stale(text) == [], "run make notebooks and commit the notebook with its text"


def test_inputs_are_those_of_the_text(text):
    def inputs(notebook):
        return [(c.id, c.cell_type, c.source, c.metadata) for c in notebook.cells]

    assert inputs(load(text)) == inputs(read_text(text))


def test_every_code_cell_was_executed_in_order(text):
    code = [c for c in load(text).cells if c.cell_type == "code"]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))


def test_every_section_with_code_shows_a_verdict(text):
    sections, title = {}, "set-up"
    for cell in load(text).cells:
        if cell.cell_type == "markdown":
            heads = re.findall(r"^## (.+)", cell.source, flags=re.M)
            title = heads[-1] if heads else title
            continue
        texts = [o.get("data", {}).get("text/plain", "") for o in cell.outputs]
        sections.setdefault(title, []).extend(texts)
    sections.pop("set-up", None)
    assert sections
    for title, outputs in sections.items():
        assert any(VERDICT.match(text) for text in outputs), f"no verdict in {title!r}"


def test_nothing_volatile_is_stored(text):
    notebook = load(text)
    assert set(notebook.metadata) == {"kernelspec", "language_info", notebooks.KEY}
    for cell in notebook.cells:
        assert "execution" not in cell.metadata
        for output in cell.get("outputs", []):
            assert output.output_type != "error" and output.get("name") != "stderr"
            assert not re.search(r"0x[0-9a-f]{8,}", json.dumps(output)), "an address"


def test_cells_are_short_and_prose_interrupts_them(text):
    run = 0
    for cell in (cell for cell in read_text(text).cells if cell.id != SETUP):
        run = run + 1 if cell.cell_type == "code" else 0
        assert run <= 3 and (run == 0 or len(cell.source.splitlines()) <= 14)


# The pipeline on a small book of its own.

HEAD = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
CELL = "```{code-cell} ipython3\n%s\n```\n"


@pytest.fixture
def book(tmp_path):
    (tmp_path / "chapters" / "reference").mkdir(parents=True)
    shutil.copytree(
        ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "requirements.lock").write_text("")
    return tmp_path


def write(book, source, name="one", folder="chapters"):
    path = book / folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}# Title\n\n{CELL % source}")
    return path


def leftovers(book):
    return sorted(p.name for p in book.rglob("*") if p.suffix in (".part", ".ipynb"))


def test_execution_is_reproducible_and_then_fresh(book, capsys):
    path = write(book, "print(6 * 7)")
    notebooks.main([], book)
    first = path.with_suffix(".ipynb").read_bytes()
    notebooks.main([], book)
    assert "one is fresh" in capsys.readouterr().out
    path.with_suffix(".ipynb").unlink()
    notebooks.main([], book)
    assert path.with_suffix(".ipynb").read_bytes() == first
    facts = json.loads((book / notebooks.FACTS).read_text())
    assert facts["one"]["cpu_seconds"] > 0


def test_staleness_follows_content_through_imports(book):
    path = write(book, "from lib import attention")
    notebooks.main([], book)
    assert stale(path, book) == []
    followed = ("lib/core/checks.py", "lib/core/__init__.py")
    for name in (*followed, "requirements.lock", "chapters/one.md"):
        (book / name).write_text((book / name).read_text() + "\n")
        assert name in stale(path, book)
    (book / "lib/data.py").write_text("# not imported\n")
    assert "lib/data.py" not in stale(path, book)


def test_staleness_follows_packages(book):
    source = "from lib.sphere import cosines\nfrom lib.heat.steps import softmax_step"
    files = notebooks.digests(write(book, source), book)
    reached = ("sphere/__init__", "sphere/cosines", "sphere/field", "sinkhorn/kernel")
    assert {f"lib/{name}.py" for name in reached} <= files.keys()
    assert "lib/gram/chain.py" not in files


def test_text_edited_while_it_runs(book):
    path = write(book, "open('one.md', 'a').write('edited')")
    with pytest.raises(PipelineError, match="one.md.*edited while"):
        notebooks.main([], book)
    assert leftovers(book) == [] and path.exists()


def test_failing_cell_is_named_and_nothing_written(book):
    write(book, "1 / 0")
    with pytest.raises(
        PipelineError,
        match="one.md: a cell failed with ZeroDivisionError: division by zero$",
    ):
        notebooks.main([], book)
    assert leftovers(book) == []


def test_two_notebooks_with_one_name(book):
    write(book, "1"), write(book, "2", folder="chapters/reference")
    with pytest.raises(PipelineError, match="two notebooks are named 'one'.*reference"):
        notebooks.main([], book)


def test_commands_end_in_one_sentence():
    def failing():
        raise PipelineError("one.md is wrong")

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit, match="^error: one.md is wrong$"):
        run_main(failing)
    with pytest.raises(PipelineError):
        run_main(failing, foreseen=OSError)
    with pytest.raises(SystemExit, match="^error: interrupted; all was kept$"):
        run_main(interrupted, "all was kept")
    with pytest.raises(KeyboardInterrupt):
        run_main(interrupted)
    with pytest.raises(SystemExit) as ended:
        run_main(lambda: 1)
    assert ended.value.code == 1


def test_interrupted_run_leaves_the_old_notebook(book):
    path = write(
        book, "import pathlib, time; pathlib.Path('go').touch(); time.sleep(60)"
    )
    path.with_suffix(".ipynb").write_text("{}")
    code = (
        "from pathlib import Path; from tools.notebooks import execute;"
        f"execute(Path({str(path)!r}), Path({str(book)!r}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    for _ in range(600):
        if (path.parent / "go").exists():
            break
        time.sleep(0.1)
    process.send_signal(2)
    assert process.wait(timeout=60) != 0
    assert path.with_suffix(".ipynb").read_text() == "{}"
    assert leftovers(book) == ["one.ipynb"]


def test_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        notebooks.replace(target, "new \ud800")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_import_brings_edits_back(book):
    path = write(book, "x = 1")
    notebooks.main([], book)
    target = path.with_suffix(".ipynb")
    edited = nbformat.read(target, 4)
    edited.cells[-1].source = "x = 2"
    nbformat.write(edited, target)
    notebooks.main(["--import", str(target)], book)
    assert path.read_text() == f"{HEAD}# Title\n\n{CELL % 'x = 2'}"
    assert stale(path, book) == ["chapters/one.md"]


def test_import_refuses_when_the_text_changed_too(book):
    path = write(book, "x = 1")
    notebooks.main([], book)
    path.write_text(path.read_text() + "more\n")
    with pytest.raises(PipelineError, match="chapters/one.md changed"):
        notebooks.main(["--import", str(path.with_suffix(".ipynb"))], book)
    with pytest.raises(PipelineError, match="no text beside it"):
        notebooks.main(["--import", str(book / "chapters/other.ipynb")], book)


def test_texts_survive_the_round_trip(text):
    """What make import writes for an unedited notebook is the text as it stands."""
    assert notebooks.as_text(load(text), text) == text.read_text("utf-8")
