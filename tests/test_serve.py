"""The site is built once, alone, and nothing else that lies beside it is touched."""

import subprocess

import pytest

from tools import serve
from tools.command import PipelineError, exclusive


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose build succeeds as long as there is a file named good."""
    (tmp_path / "_config.yml").write_text("title: x")
    (tmp_path / "good").touch()

    def run(command, **options):
        (tmp_path / serve.HTML).mkdir(parents=True, exist_ok=True)
        code = 0 if (tmp_path / "good").exists() else 1
        return subprocess.CompletedProcess(command, code, stdout="")

    monkeypatch.setattr(serve.subprocess, "run", run)
    return tmp_path


def test_a_build_leaves_what_it_did_not_make(project):
    grades = project / "_build" / "course" / "gradebook.db"
    grades.parent.mkdir(parents=True)
    grades.write_text("marks")
    old = project / serve.HTML / "old.html"
    old.parent.mkdir()
    old.touch()
    serve.build(project)
    assert grades.read_text() == "marks" and not old.exists()
    old.touch()
    serve.build(project)
    assert old.exists()  # nothing changed: nothing was built


def test_a_build_that_failed_is_begun_anew(project):
    serve.build(project)
    (project / "good").unlink()
    (project / "_config.yml").write_text("title: y")
    with pytest.raises(PipelineError, match="the site did not build"):
        serve.build(project)
    # Back to the sources of the build that was good: its pages are gone all the same.
    (project / "_config.yml").write_text("title: x")
    with pytest.raises(PipelineError, match="the site did not build"):
        serve.build(project)


def test_a_second_build_refuses(project):
    with (
        exclusive(project, "build of the site"),
        pytest.raises(PipelineError, match="another build of the site is running"),
    ):
        serve.build(project)


def test_a_page_that_is_edited_is_built_upon_the_others(project, capsys):
    page, code = project / "chapters" / "1-x.md", project / "tools" / "x.py"
    for path in (page, code):
        path.parent.mkdir()
        path.write_text("one")
    serve.build(project)
    kept = project / serve.HTML / "kept.html"

    def stays(path, content):
        kept.touch()
        path.write_text(content)
        serve.build(project)
        return kept.exists()

    assert stays(page, "two") and "reach: chapters/1-x.md" in capsys.readouterr().out
    assert not stays(code, "two")  # all pages may be other ones
    assert not stays(page.with_name("2-y.md"), "new") and stays(page, "three")
    (project / serve.HTML / serve.LITE).mkdir()
    assert not stays(page, "four")  # Python in the browser was made for the site before


def test_a_build_that_is_interrupted_is_begun_anew(project, monkeypatch):
    page, run = project / "chapters" / "1-x.md", serve.subprocess.run
    page.parent.mkdir()
    page.write_text("one")
    serve.build(project)
    half = project / serve.HTML / "half-written.html"

    def interrupted(command, **options):
        half.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(serve.subprocess, "run", interrupted)
    page.write_text("two")
    with pytest.raises(KeyboardInterrupt):
        serve.build(project)
    page.write_text("one")  # even back to what was built before
    monkeypatch.setattr(serve.subprocess, "run", run)
    serve.build(project)
    assert not half.exists()


def test_what_changed_is_read_from_the_stamp():
    before = "1  chapters/a.md\n2  _config.yml\n3  lib/x.py\n"
    assert serve.edited(before, before) == []
    assert serve.edited(before, before.replace("1", "9")) == ["chapters/a.md"]
    assert serve.edited(before, before.replace("3", "9")) == ["lib/x.py"]
    assert serve.edited(before, before.replace("2", "9")) is None
    assert serve.edited(before, before + "4  chapters/b.md\n") is None
    assert serve.edited(before + "4  chapters/b.md\n", before) is None
    assert serve.edited("", before) is None and serve.edited("digest", before) is None
