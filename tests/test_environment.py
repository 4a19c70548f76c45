"""An environment is made whole, by one process, or made anew."""

import subprocess
import sys

import pytest
from waits import LIMIT, until

from tools import environment, serve
from tools.command import ROOT, PipelineError


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """A project, and the steps that are taken; nothing is installed."""
    (tmp_path / "requirements.lock").write_text("numpy==2.0\n")
    taken = []

    def run(step, command):
        taken.append(step)
        (tmp_path / ".venv").mkdir(exist_ok=True)
        (tmp_path / ".venv" / f"made-{len(taken)}").touch()

    monkeypatch.setattr(environment, "ROOT", str(tmp_path))
    monkeypatch.setattr(environment, "run", run)
    return taken


def test_a_fresh_environment_is_left_alone(steps, tmp_path):
    environment.main()
    assert len(steps) == 4
    environment.main()
    assert len(steps) == 4
    (tmp_path / "requirements.lock").write_text("numpy==2.1\n")
    environment.main()
    assert len(steps) == 8 and not (tmp_path / ".venv" / "made-1").exists()


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_what_was_interrupted_is_made_anew(step, steps, tmp_path, monkeypatch):
    going = environment.run

    def run(name, command):
        going(name, command)
        if len(steps) == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(environment, "run", run)
    with pytest.raises(KeyboardInterrupt):
        environment.main()
    monkeypatch.setattr(environment, "run", going)
    environment.main()
    assert len(steps) == step + 4
    assert not (tmp_path / ".venv" / "made-1").exists()  # nothing of the first is left


def test_of_two_at_once_one_waits_and_finds_it_made(steps, tmp_path):
    import fcntl

    code = (
        "from tools import environment as e\n"
        f"e.ROOT = {str(tmp_path)!r}\n"
        "e.run = lambda *_: exit('made twice')\n"
        "e.main()"
    )
    with (tmp_path / "requirements.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        log = tmp_path / "log"
        with log.open("w") as out:
            other = subprocess.Popen(
                [sys.executable, "-u", "-c", code], cwd=ROOT, stdout=out, stderr=out
            )
        gone = lambda: other.poll() is not None  # noqa: E731
        assert until(lambda: "waiting for it" in log.read_text(), gone)
        stamp = tmp_path / ".venv" / ".installed-from"
        stamp.parent.mkdir()
        stamp.write_text(environment.fingerprint("requirements.lock"))
    assert other.wait(LIMIT) == 0, log.read_text()


def test_an_interruption_is_one_sentence(tmp_path, monkeypatch):
    code = (
        "import runpy, sys, shutil\n"
        f"sys.argv = ['x', {str(tmp_path / 'venv')!r}, 'requirements.lock']\n"
        "def stop(*a, **k): raise KeyboardInterrupt\n"
        "shutil.rmtree = stop\n"
        "runpy.run_path('tools/environment.py', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    said = "error: interrupted; make creates the environment anew\n"
    assert done.returncode == 1 and done.stderr == said


def test_an_interrupted_build_of_the_site_fails_in_one_sentence(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(serve, "build", interrupted)
    monkeypatch.setattr(sys, "argv", ["tools.serve", "--build-only"])
    with pytest.raises(PipelineError, match="interrupted; the site is then built anew"):
        serve.main()
