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
        (tmp_path / serve.HTML).mkdir(parents=True)
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
