"""Ways to run a page elsewhere: a downloaded notebook, Binder and Colab."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from tools import launch, wheel
from tools.command import ROOT, PipelineError
from tools.serve import HTML
from tools.texts import METADATA, SETUP, read_text, texts

SITE = ROOT / HTML
PAGES = [text.relative_to(ROOT).with_suffix("") for text in texts()]
CONF = """
extensions = ["myst_nb"]
nb_execution_mode = "off"
html_theme = "sphinx_book_theme"
html_theme_options = {options!r}

def setup(app):
    import sys
    sys.path.append({root!r})
    from tools.launch import open_plain
    app.connect("html-page-context", open_plain, priority=502)
"""


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
    target = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel.build(tmp_path_factory.mktemp("wheel"))).extractall(target)
    return target


# That every notebook runs so, from its first cell to its last, is checked in two parts:
# tests/test_alone.py sees that none reads a file of the book, while all are executed,
# and `make ways` executes all of them alone, with the installed package and no more.
def test_download_runs_in_an_empty_folder(installed, tmp_path, monkeypatch):
    notebook = read_text(ROOT / "chapters/reference/more-checks-1.md")
    assert any(cell.id == SETUP for cell in notebook.cells)
    ask = "import lib, os\nprint(lib.__file__, os.listdir())"
    draw = 'from lib import figures\nfigures.drawing("transformer-block")'
    notebook.cells += [new_code_cell(ask), new_code_cell(draw)]
    monkeypatch.setenv("PYTHONPATH", str(installed))
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    said = notebook.cells[-2].outputs[0].text
    assert said.strip() == f"{installed / 'lib' / '__init__.py'} []"
    assert "<svg" in notebook.cells[-1].outputs[0].data["text/html"]


def test_first_cell_is_short_silent_and_of_no_text():
    for text in texts():
        cells = [c for c in read_text(text).cells if c.cell_type == "code"]
        assert cells[0].id == SETUP and cells[0].metadata.tags == ["remove-cell"]
        assert len(cells[0].source.splitlines()) <= 20
        assert "find_spec" not in text.read_text("utf-8")
    exec(cells[0].source, {})


ADDRESSES = {
    "PyPI": ("https://pypi.org/project/limits/", "limits"),
    "Homepage": ("https://x.org/book", "https://x.org/book/a_b-1.0-py3-none-any.whl"),
    "Repository": ("https://github.com/o/n", "git+https://github.com/o/n"),
}


def pyproject(*urls):
    lines = [f"{url} = {ADDRESSES[url][0]!r}" for url in urls]
    head = ["[project]", "name = 'a-b'", "version = '1.0'", "[project.urls]"]
    return "\n".join([*head, *lines])


def test_missing_package_is_explained_by_what_can_be_done_now(tmp_path):
    """Without site-packages there is no lib, and the cell needs nothing else."""
    start = "ImportError: this notebook needs the package of the book: "
    said = refusal(launch.setup_cell(pyproject()), tmp_path)
    assert said.startswith(f"{start}put the file a_b-*.whl, which the page 'Running")
    assert said.endswith(" cell, where PATH is the folder of the book")
    (tmp_path / "a_b-1.0-py3-none-any.whl").touch()
    said = refusal(launch.setup_cell(pyproject()), tmp_path)
    assert said == f"{start}run %pip install a_b-1.0-py3-none-any.whl in a cell"


def test_a_published_package_is_named_the_best_place_first(tmp_path):
    names = list(ADDRESSES)
    for number, name in enumerate(names):
        cell = launch.setup_cell(pyproject(*reversed(names[number:])))
        said = refusal(cell, tmp_path)
        assert said.endswith(f": run %pip install {ADDRESSES[name][1]} in a cell")


def test_a_clone_around_the_notebook_is_enough(tmp_path):
    """Without site-packages: the cell finds the package, and what it needs does not."""
    shutil.copytree(ROOT / "lib", tmp_path / "lib")
    folder = tmp_path / "chapters" / "reference"
    folder.mkdir(parents=True)
    cell = launch.setup_cell() + "\nprint(package.origin)"
    result = run_bare(cell, folder)
    assert result.stdout.strip() == str(tmp_path / "lib" / "__init__.py")


def test_without_the_package_a_kernel_shows_one_sentence(tmp_path, monkeypatch):
    """The error is an error; what JupyterLab prints of it is its sentence."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    hidden = "import sys\nsys.meta_path.clear(); sys.path_importer_cache.clear()"
    cells = [hidden, launch.setup_cell().replace("import sys\n", "", 1)]
    (output,) = outputs_of_last(cells, tmp_path)
    assert output.ename == "ImportError"
    assert output.traceback == [f"ImportError: {output.evalue}"]


def test_a_failed_claim_in_a_kernel_is_one_sentence(tmp_path):
    call = 'verify("one is two", measured=1, expected=2, tolerance=0.1)'
    (output,) = outputs_of_last(["from lib.claims import verify", call], tmp_path)
    assert output.ename == "ClaimFailed"
    assert output.traceback == [f"ClaimFailed: {output.evalue}"]
    assert output.evalue.startswith("FAILS: one is two: measured 1")


def test_missing_images_in_a_kernel_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LIMIT_DATA", str(tmp_path))
    (output,) = outputs_of_last(
        ["from lib import data", "data.fashion_mnist()"], tmp_path
    )
    assert output.ename == "DataUnavailable" and str(tmp_path) in output.evalue
    assert output.traceback == [f"DataUnavailable: {output.evalue}"]


def outputs_of_last(cells, folder):
    """Outputs of the last cell, which fails for nbclient, as it does for nbval."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    client = NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    with pytest.raises(CellExecutionError):
        client.execute()
    return notebook.cells[-1].outputs


@pytest.mark.parametrize("other", ["lib.py", "lib/__init__.py", "lib/notes.txt"])
def test_another_lib_is_named(other, tmp_path):
    path = tmp_path / other
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    said = refusal(launch.setup_cell(), tmp_path)
    named = path if path.suffix == ".py" else path.parent
    assert (
        said
        == f"ImportError: another lib hides the package of the book: rename {named}"
    )


def refusal(cell, folder):
    """Last line of the error that a cell raises in a folder, without site-packages."""
    result = run_bare(cell, folder)
    assert result.returncode == 1
    return (
        result.stderr.strip()
        .splitlines()[-1]
        .replace("rename lib", f"rename {folder}/lib")
    )


def run_bare(cell, folder):
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-S", "-c", cell]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


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
    (tmp_path / "conf.py").write_text(CONF.format(options=options, root=str(ROOT)))
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
    colab = f"{launch.COLAB}/github/owner/name/blob/notebooks/"
    for page in some:
        html = (tmp_path / "html" / f"{page}.html").read_text("utf-8")
        soup = BeautifulSoup(html, "html.parser")
        links = [a["href"] for a in soup.select(".dropdown-launch-buttons a")]
        assert links == [f"{binder}{page}.ipynb", f"{colab}{page}.ipynb"]
    # The others are named alike; Binder installs from the last two.
    needed = {*(f"{page}.ipynb" for page in PAGES), "requirements.txt", "runtime.txt"}
    assert needed <= set(tracked)


def opened(*urls, offered=launch.COLAB, kernel=True):
    """The links to Colab of a page, of which the theme has made these."""
    app = SimpleNamespace(
        config=SimpleNamespace(
            html_theme_options={"launch_buttons": {"colab_url": offered}}
        ),
        env=SimpleNamespace(metadata={"a": {"kernelspec": {}} if kernel else {}}),
    )
    buttons = [{"url": url} for url in urls]
    context = {"header_buttons": [{"label": "x"}, {"buttons": buttons}]}
    launch.open_plain(app, "a", "", context, None)
    return [button["url"] for button in buttons]


def test_the_button_for_colab_is_led_or_the_build_stops():
    here, there = (f"{launch.COLAB}/x/blob/{x}/a" for x in ("main", "notebooks"))
    assert opened("y", here) == ["y", there]
    assert opened(here, offered="") == opened(here, kernel=False) == [here]
    for urls in ([], [here, here], ["y"], [here.replace("main", "trunk")]):
        with pytest.raises(PipelineError, match="^a: its one button for Colab should"):
            opened(*urls)


def test_deployment_puts_plain_notebooks_where_colab_looks(tmp_path):
    """The commands of the workflow, run against a repository that stands for GitHub."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = jobs["notebooks"]["steps"][-1]["run"]
    env = {**os.environ, "RUNNER_TEMP": str(tmp_path), "GITHUB_SHA": "0123abc"}
    with tarfile.open(tmp_path / "artifact.tar", "w") as archive:
        archive.add(SITE, ".", filter=sources_only)

    def run(*command, cwd=tmp_path):
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("git", "init", "--quiet", "--bare", "there")
    run("git", "clone", "--quiet", "there", "here")
    (tmp_path / "here/MyST.md").touch()
    me = ("-c", "user.name=x", "-c", "user.email=x@y.z")
    run("git", "add", ".", cwd=tmp_path / "here")
    run("git", *me, "commit", "-qm", "x", cwd=tmp_path / "here")
    run("git", "branch", "-M", "main", cwd=tmp_path / "here")
    for _ in range(2):  # the second deployment replaces the first one
        run("bash", "-e", "-c", commands, cwd=tmp_path / "here")
        run("git", "switch", "--quiet", "main", cwd=tmp_path / "here")
        run("git", "branch", "-D", "notebooks", cwd=tmp_path / "here")
    listed = run("git", "--git-dir=there", "ls-tree", "-r", "--name-only", "notebooks")
    names = listed.split("\n")
    assert "MyST.md" not in names and {f"{page}.ipynb" for page in PAGES} <= {*names}
    text = run("git", "--git-dir=there", "show", f"notebooks:{PAGES[0]}.ipynb")
    assert text == (SITE / "_sources" / f"{PAGES[0]}.ipynb").read_text("utf-8")
    assert run("git", "--git-dir=there", "rev-list", "--count", "notebooks") == "1\n"


def sources_only(member):
    kept = member.name == "." or member.name.startswith("./_sources")
    return member if kept else None
