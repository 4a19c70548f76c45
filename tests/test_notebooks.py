"""The committed notebooks are what their texts say, executed; the pipeline is safe."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import nbformat
import pytest
from waits import LIMIT, until

from tools import notebooks
from tools.alone import ALIKE
from tools.command import ROOT, PipelineError, exclusive, replace, run_main
from tools.digests import CODE, KEY, digests, meaning, stale
from tools.texts import SETUP, read_text, texts

PAIRS = texts()
VERDICT = re.compile(r"^(HOLDS|REFUTED): ")
NUMBER = re.compile(r"'?[-−]?\d[\d.e+-]*'?")


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
    sections.pop("What we saw", None)  # the exhibit once more
    assert sections or text.stem == "index"  # which has an exhibit alone
    for title, outputs in sections.items():
        assert any(VERDICT.match(text) for text in outputs), f"no verdict in {title!r}"


def test_nothing_volatile_is_stored(text):
    notebook = load(text)
    assert set(notebook.metadata) == {"kernelspec", "language_info", KEY}
    for cell in notebook.cells:
        assert "execution" not in cell.metadata
        for output in cell.get("outputs", []):
            assert output.output_type != "error" and output.get("name") != "stderr"
            # In the letters of a picture an address can stand by chance.
            shown = re.sub(r"[A-Za-z0-9+/]{200,}", "", json.dumps(output))
            assert not re.search(r"0x[0-9a-f]{8,}", shown), "an address"


def test_a_folded_cell_shows_what_it_was_made_to_show(text):
    """Not what its last line happens to return; a number has a line for itself."""
    for cell in load(text).cells:
        if cell.cell_type == "code" and "idea" not in cell.metadata.get("tags", []):
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    plain = output.data["text/plain"]
                    assert "text/html" in output.data or NUMBER.fullmatch(plain), plain


def test_cells_are_short_and_prose_interrupts_them(text):
    run = 0
    for cell in (cell for cell in read_text(text).cells if cell.id != SETUP):
        run = run + 1 if cell.cell_type == "code" else 0
        assert run <= 3 and (run == 0 or len(cell.source.splitlines()) <= 14)


def test_no_two_pages_draw_from_one_key():
    pages = {}
    for path in PAIRS:
        for key in set(re.findall(r"\bgenerator\((\d+)", path.read_text("utf-8"))):
            pages.setdefault(key, []).append(path.stem)
    assert {key: shared for key, shared in pages.items() if len(shared) > 1} == {}


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
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["numpy>=2"]\n')
    (tmp_path / "requirements.lock").write_text("numpy==2.0 \\\n --hash=a\n")
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


PROCESSOR = """
import os
from numpy._core import _multiarray_umath as core
wide = [x for x in core.__cpu_dispatch__ if "512" in x or x == "X86_V4"]   # choices
kernel = os.environ["OPENBLAS_CORETYPE"], os.environ["OPENBLAS_NUM_THREADS"]
print(*kernel, any(map(core.__cpu_features__.get, wide)))
"""


def test_kernels_calculate_alike_on_every_processor(book, monkeypatch):
    """Those that store outputs, and those of nbval that compare them."""
    for name in ALIKE:
        monkeypatch.delenv(name, raising=False)
    path = write(book, PROCESSOR)
    notebooks.main([], book)
    made = path.with_suffix(".ipynb")
    *_, cell = nbformat.read(made, 4).cells
    assert [output.text for output in cell.outputs] == ["Haswell 1 False\n"]
    line = ["-m", "pytest", "-q", "-p", "conftest", "--nbval", "--nbval-current-env"]
    compared = subprocess.run(
        [sys.executable, *line, made], cwd=ROOT, capture_output=True, text=True
    )
    assert compared.returncode == 0, compared.stdout
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Sandybridge")  # a user's own settings stay
    compared = subprocess.run(
        [sys.executable, *line, made], cwd=ROOT, capture_output=True, text=True
    )
    assert "Sandybridge 1 False" in compared.stdout


def edit(book, name, old, new):
    """Replace a piece of a file; it must be there."""
    content = (book / name).read_text()
    assert old in content
    (book / name).write_text(content.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lib/core/checks.py", "raise ValueError", "raise TypeError"),
        (
            "lib/core/checks.py",
            "def require_count",
            "def  other():\n pass\ndef require_count",
        ),
        ("requirements.lock", "2.0", "2.1"),
    ],
)
def test_what_changes_a_meaning_is_noticed_through_imports(book, name, old, new):
    path = write(book, "from lib import attention")
    notebooks.main([], book)
    assert stale(path, book) == []
    edit(book, name, old, new)
    assert stale(path, book) == [name]


def test_what_changes_no_meaning_is_not(book):
    path = write(book, "from lib import attention")
    notebooks.main([], book)
    edit(book, "lib/core/checks.py", '"""', '"""New words: ')
    edit(book, "lib/attention.py", "\n\n\n", "\n\n# A comment.\n\n\n")
    edit(book, "lib/attention.py", "def softmax(", "def softmax(\n    ")
    edit(book, "lib/data.py", "import", "import random\nimport")  # is not imported
    edit(book, "requirements.lock", "numpy==", "sphinx==1.0\nnumpy==")
    edit(book, "requirements.lock", "hash=a", "hash=b")
    assert stale(path, book) == []


def test_meaning_has_all_but_docstrings_places_and_comments():
    def same(one, two):
        return repr(meaning(ast.parse(one))) == repr(meaning(ast.parse(two)))

    assert same('def f():\n  "a"\n  return 1', 'def f(): # c\n\n  "b"; return (1)')
    assert same('"a"\nx = 1', "x = 1") and same(
        'class A:\n  "a"\n  x = 1', "class A: x=1"
    )
    pairs = ["x = 1", "x = 1.0", "x = True", "x = '1'", "x = -1", "x += 1", "y = 1"]
    pairs += ["f(1)", "f(*[1])", "f(a=1)", "f()", "x: int = 1", "x = None", "x"]
    pairs += ["def f(x): return x", "def f(*, x): return x", "def f(x=None): return x"]
    pairs += ["def f():\n  x = 1\n  'a'", "def f(): x = 1", "{**a}", "{None: a}"]
    for one, two in combinations(pairs, 2):
        assert not same(one, two), (one, two)


def test_new_prose_is_taken_over_and_nothing_executed(book, capsys):
    path = write(book, "import time; print(time.time_ns())")
    notebooks.main([], book)
    target = path.with_suffix(".ipynb")
    before = nbformat.read(target, 4)
    facts = (book / notebooks.FACTS).read_bytes()
    edit(book, "chapters/one.md", "# Title", "# Another title\n\nMore prose.")
    assert stale(path, book) == ["chapters/one.md"]
    notebooks.main([], book)
    assert "has new prose; its outputs stand" in capsys.readouterr().out
    after = nbformat.read(target, 4)
    assert stale(path, book) == []
    assert after.cells[-1] == before.cells[-1] and after.cells[-1].outputs
    assert "Another title" in after.cells[0].source
    assert (book / notebooks.FACTS).read_bytes() == facts
    edit(book, "chapters/one.md", "print(", "print(1, ")
    assert stale(path, book) == ["chapters/one.md", CODE]
    notebooks.main([], book)
    assert nbformat.read(target, 4).cells[-1] != after.cells[-1]


def test_only_the_notebooks_named_are_made(book):
    one, two = write(book, "1"), write(book, "2", name="two")
    notebooks.main(["two"], book)
    assert not one.with_suffix(".ipynb").exists() and stale(two, book) == []
    notebooks.main(["chapters/one.ipynb"], book)
    assert stale(one, book) == []
    with pytest.raises(
        PipelineError, match="'three' is no notebook; there are: one, t"
    ):
        notebooks.main(["three"], book)


def test_a_second_run_refuses(book):
    path = write(book, "1")
    said = pytest.raises(PipelineError, match="another make notebooks is running")
    with exclusive(book / "chapters", "make notebooks"), said:
        notebooks.main([], book)
    assert not path.with_suffix(".ipynb").exists()
    notebooks.main([], book)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os; os._exit(1)", r"cell 1 \(import os; os._exit\(1\)\) ended Python"),
        ("while True:\n    pass", r"cell 1 \(while True:\) did not end within 2 s"),
    ],
)
def test_a_notebook_that_does_not_end_is_one_sentence(book, monkeypatch, source, said):
    write(book, source)
    monkeypatch.setattr(notebooks, "SECONDS", 2)
    with pytest.raises(PipelineError, match=rf"one.md: code {said}"):
        notebooks.main([], book)
    assert leftovers(book) == []


def test_full_disk_leaves_the_old_file():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this system")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "one"
        target.write_text("old")
        target.with_name("one.part").symlink_to(full)
        with pytest.raises(PipelineError, match="was not written .No space left"):
            replace(target, "new")
        assert target.read_text() == "old" and len(list(Path(folder).iterdir())) == 1


@pytest.mark.parametrize(
    ("source", "reached", "spared"),
    [
        (
            "from lib.sphere import cosines\nfrom lib.heat.steps import softmax_step",
            {"sphere/cosines", "heat/steps", "sinkhorn/kernel"},
            {"gram/chain", "sphere/flow"},
        ),
        ("from lib import heat\nheat.quadrature", {"heat/nodes"}, {"heat/flows"}),
        ("from lib import heat as h\nh.quadrature", {"heat/nodes"}, {"heat/flows"}),
        ("from lib import heat\nprint(heat)", {"heat/flows", "heat/nodes"}, set()),
        ("from lib import heat", {"heat/__init__", "heat/flows"}, set()),
        ("import lib.heat\nlib.heat.quadrature", {"heat/flows", "heat/nodes"}, set()),
        ("from lib.heat import quadrature", {"heat/nodes"}, {"heat/flows"}),
        (
            "from lib import exhibits\nexhibits.globe",
            {"exhibits/globe"},
            {"gram/chain"},
        ),
        (
            "from lib import gram\ngram.layers.LinearLayer",
            {"gram/layers"},
            {"sde/limits"},
        ),
        ("from lib import heat\ngetattr(heat, 'bridge_flow')", {"heat/flows"}, set()),
        ("from lib import heat\nheat.no_such", {"heat/flows", "heat/nodes"}, set()),
    ],
)
def test_staleness_follows_names_through_packages(book, source, reached, spared):
    files = digests(write(book, source), book).keys()
    assert {f"lib/{name}.py" for name in reached} <= files
    assert not {f"lib/{name}.py" for name in spared} & files


CALLED = """
import importlib, pathlib, pkgutil, sys
seen, root = set(), pathlib.Path({root!r})
def note(frame, event, argument):
    seen.add(frame.f_code.co_filename)
import lib
for module in pkgutil.walk_packages(lib.__path__, "lib."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)   # what imports run is no call
sys.setprofile(note)
{source}
sys.setprofile(None)
inside = [pathlib.Path(name) for name in seen if name.startswith(str(root / "lib"))]
print(*[path.relative_to(root).as_posix() for path in inside])
"""


@pytest.mark.parametrize(
    "source",
    [
        "from lib import heat, sinkhorn\n"
        "law = heat.GaussianMixture([0], [1], [1])\n"
        "x, w = heat.quadrature(law, 0.5)\n"
        "heat.bridge_flow(x, 0.5, 1, weights=w), heat.leading_error(law, 0.5, 1.0)",
        "import numpy as np\nfrom lib import exhibits, sphere\n"
        "exhibits.globe(np.eye(3), beta=4.0)._repr_mimebundle_()",
        "from lib import gram, sde\nfrom lib.claims import generator\n"
        "layer = gram.layers.LinearLayer(4)\n"
        "gram.simulate([[1.0]], layer, 2, paths=2, rng=generator(1))\n"
        "sde.explosion_probability(1.0, 0.5, 1.0)",
    ],
)
def test_what_runs_is_among_the_digests(book, source):
    path = write(book, source)
    run = subprocess.run(
        [sys.executable, "-c", CALLED.format(root=str(ROOT), source=source)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    ran = {name for name in run.stdout.split() if not name.endswith("__init__.py")}
    assert ran and ran <= digests(path, book).keys()


def test_text_edited_while_it_runs(book):
    path = write(book, "open('one.md', 'a').write('edited')")
    with pytest.raises(PipelineError, match="one.md.*edited while"):
        notebooks.main([], book)
    assert leftovers(book) == [] and path.exists()


def test_failing_cell_is_named_and_nothing_written(book):
    path = write(book, "x = 1")
    path.write_text(path.read_text() + CELL % "1 / 0")
    said = r"code cell 2 \(1 / 0\) failed with ZeroDivisionError: division by zero$"
    with pytest.raises(PipelineError, match=f"one.md: {said}"):
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
        book, "import pathlib, time; pathlib.Path('go').touch(); time.sleep(9999)"
    )
    path.with_suffix(".ipynb").write_text("{}")
    code = (
        "from pathlib import Path; from tools.notebooks import execute;"
        f"execute(Path({str(path)!r}), Path({str(book)!r}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    assert until((path.parent / "go").exists, lambda: process.poll() is not None)
    process.send_signal(2)
    assert process.wait(LIMIT) != 0
    assert path.with_suffix(".ipynb").read_text() == "{}"
    assert leftovers(book) == ["one.ipynb"]


def test_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace(target, "new \ud800")
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
    assert stale(path, book) == ["chapters/one.md", CODE]


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
