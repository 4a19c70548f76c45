"""make check finds what an edit reaches, runs it, and is red when something is."""

import shutil
import subprocess
import sys

import pytest

from tools import check
from tools.command import ROOT, PipelineError
from tools.texts import texts

CHAPTER = next(path for path in texts() if path.name.startswith("3-"))
NAME = CHAPTER.relative_to(ROOT).as_posix()


def commit(folder):
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["add", "-A"], [*who, "commit", "-qm", "as it is"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A repository with what the planning reads, committed twice."""
    folder = tmp_path_factory.mktemp("original")
    for name in ("chapters", "coursework", "lib", "tests", "tools"):
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "requirements.lock", "_toc.yml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit(folder)
    (folder / "README.md").write_text("other")
    commit(folder)
    return folder


@pytest.fixture
def root(original):
    yield original
    for words in (["checkout", "-q", "."], ["clean", "-fdq"]):
        subprocess.run(["git", *words], cwd=original, check=True)


def edit(root, name, old, new):
    text = (root / name).read_text("utf-8")
    assert old in text, name
    (root / name).write_text(text.replace(old, new, 1), "utf-8")


def planned(root):
    return check.of_changes(*check.changed(root), root)


def names(paths):
    return {path.stem for path in paths}


def test_a_clean_tree_is_compared_with_the_commit_before(root):
    assert check.changed(root) == ("HEAD~1", ["README.md"])
    assert planned(root) == check.Plan(tests={"tests/test_project.py"})
    edit(root, "README.md", "other", "another")
    (root / "new.txt").touch()
    assert check.changed(root) == ("HEAD", ["README.md", "new.txt"])
    assert planned(root).left == {"new.txt"}


def test_prose_asks_for_its_page_and_executes_nothing(root):
    edit(root, NAME, "\n## ", "\nMore words.\n\n## ")
    plan = planned(root)
    assert names(plan.pages) == {CHAPTER.stem} and not plan.notebooks
    assert not plan.tests and not plan.left


def test_code_of_a_page_asks_for_its_notebook(root):
    edit(root, NAME, "from lib ", "x = 1\nfrom lib ")
    plan = planned(root)
    assert names(plan.pages) == names(plan.notebooks) == {CHAPTER.stem}


def test_a_docstring_executes_nothing(root):
    edit(root, "lib/heat/flows.py", '"""', '"""New words. ')
    plan = planned(root)
    assert not plan.pages and not plan.notebooks and not plan.packages
    assert "tests/lib/test_structure.py" in plan.tests
    assert "tests/lib/test_heat_flows.py" not in plan.tests


def test_code_of_a_module_asks_for_what_depends_on_it(root):
    edit(root, "lib/sinkhorn/kernel.py", "\n\n\n", "\n\n\nx = 1\n\n\n")
    plan = planned(root)
    assert CHAPTER.stem in names(plan.notebooks) & names(plan.pages)
    assert "1-softmax-expansion" not in names(plan.notebooks)
    wanted = ("sinkhorn_kernel", "sinkhorn_transport", "heat_steps")
    assert {f"tests/lib/test_{name}.py" for name in wanted} <= plan.tests
    assert "tests/lib/test_attention.py" not in plan.tests
    assert plan.packages == {"sinkhorn"}
    assert plan.python == {"lib/sinkhorn/kernel.py"}


def test_a_change_of_the_pipeline_asks_for_its_tests(root):
    edit(root, "tools/reseed.py", "\n\n\n", "\n\n\nx = 1\n\n\n")
    assert "tests/test_reseed.py" in planned(root).tests
    edit(root, "_toc.yml", "root:", "root: ")
    assert {"tests/test_site.py", "tests/test_serve.py"} <= planned(root).tests
    edit(root, "tests/test_head.py", '"""', '"""New: ')
    assert "tests/test_head.py" in planned(root).tests


def test_a_page_is_found_by_number_and_name(root):
    assert check.page("3") == check.page(CHAPTER.stem) == CHAPTER
    assert check.page("chapters/reference/notation.md").stem == "notation"
    assert check.page("more-checks-3").stem == "more-checks-3"
    with pytest.raises(PipelineError, match="'33' is no page; there are: .*notation"):
        check.page("33")


def test_a_page_brings_the_tests_of_its_packages():
    plan = check.of_page(CHAPTER)
    assert plan.notebooks == plan.pages == {CHAPTER}
    assert {"heat", "sinkhorn"} <= plan.packages
    assert "tests/lib/test_heat_flows.py" in plan.tests
    page = check.page("notation")
    assert check.of_page(page) == check.Plan(pages={page})


def test_files_that_are_named_exist():
    for name in check.OF_PAGES:
        assert (ROOT / "tests" / f"test_{name}.py").is_file(), name
    for pattern, tests in check.TESTED_BY.items():
        assert [*ROOT.glob(pattern)], pattern
        for name in tests:
            assert (ROOT / "tests" / f"test_{name}.py").is_file(), name


def test_a_job_says_how_it_went(capsys):
    good, bad = ([sys.executable, "-c", f"print('words'); exit({n})"] for n in (0, 1))
    assert check.run("this", [good, good])
    assert "words" not in (said := capsys.readouterr().out)
    assert "check: this: passed" in said
    assert not check.run("that", [good, bad, good])
    said = capsys.readouterr().out
    assert said.count("words") == 1 and said.endswith("check: that FAILED\n")


@pytest.mark.parametrize("red", [None, "tests", "site", "notebook"])
def test_anything_red_makes_the_check_red(red, monkeypatch, tmp_path):
    (tmp_path / "chapters").mkdir()
    asked = []

    def run(label, commands, root):
        asked.append(label)
        return not label.startswith(red or "?")

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "make", lambda text, root: None)
    monkeypatch.setattr(check, "only_prose", lambda text, root: True)
    monkeypatch.setattr(check, "texts", lambda root: [CHAPTER])
    plan = check.of_page(CHAPTER)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.check(plan, "--nbval", tmp_path) == (red is None)
    kinds = {label.split()[0].rstrip(",") for label in asked}
    assert kinds == {"tests", "refusals", "notebook", "site"}


def test_what_was_just_executed_is_not_executed_again(monkeypatch, tmp_path):
    (tmp_path / "chapters").mkdir()
    asked, made = [], []
    monkeypatch.setattr(check, "run", lambda label, *_: asked.append(label) or True)
    monkeypatch.setattr(check, "make", lambda text, root: made.append(text))
    monkeypatch.setattr(check, "only_prose", lambda text, root: False)
    monkeypatch.setattr(check, "texts", lambda root: [CHAPTER])
    plan = check.Plan(pages={CHAPTER}, notebooks={CHAPTER})
    assert check.check(plan, "--nbval", tmp_path) and made == [CHAPTER]
    assert asked == [f"site, {CHAPTER.stem}"]
