"""Every recipe of CONTRIBUTING.md, followed to the letter in a fresh clone.

A block that names a file goes into that file; a block of commands is run line by line,
and each must succeed, unless its comment says that it fails, and with which words.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

import pytest
from waits import LIMIT, until

from tools.check import changed
from tools.command import ROOT
from tools.reseed import JOURNAL

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
FENCE = re.compile(r"(`{3,})(\w*) ?(\S*)")
FAILS, INTERRUPTED = "fails: ", "may be interrupted"


@dataclass
class Step:
    """A piece of text for a file, or a command and what its comment says."""

    file: str | None
    content: str
    comment: str = ""


def recipes(text=TEXT):
    """The steps of each section that has some, in order."""
    sections, steps, fence = {}, [], None
    for line in text.splitlines(keepends=True):
        if fence is None and line.startswith("## "):
            steps = sections.setdefault(line[3:].strip(), [])
        elif fence is None and (fence := FENCE.fullmatch(line.rstrip())):
            block = ""
        elif fence and line.strip() == fence[1]:
            if fence[2] == "sh":
                pairs = (each.partition("  # ") for each in block.splitlines())
                steps += [Step(None, line, comment) for line, _, comment in pairs]
            elif fence[3]:
                steps.append(Step(fence[3], block))
            fence = None
        elif fence:
            block += line
    assert fence is None
    return {title: steps for title, steps in sections.items() if steps}


def clone(folder):
    """The last commit with the changes of the working tree, and this environment."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    base, files = changed(ROOT)
    for name in files if base == "HEAD" else []:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
        else:
            (folder / name).unlink()
    for name in (".venv", ".venv-grading"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    commit(folder)
    return folder


def commit(folder):
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["add", "-A"], [*who, "commit", "-qm", "as it is", "--allow-empty"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def environment(folder):
    """Where ``lib`` and ``tools`` are those of the clone, in kernels as well."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    return kept | {"PYTHONPATH": str(folder)}


def follow(step, folder):
    """Take one step; what a command said."""
    if step.file:
        path = folder / step.file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(step.content)
        return ""
    if step.comment == INTERRUPTED:
        interrupt(step, folder)
    start = time.monotonic()
    done = subprocess.run(
        step.content, shell=True, cwd=folder, env=environment(folder), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    print(f"{time.monotonic() - start:6.1f} s  {step.content}", flush=True)
    if step.comment.startswith(FAILS):
        assert done.returncode and step.comment.removeprefix(FAILS) in done.stdout
    else:
        assert done.returncode == 0, done.stdout
    if step.comment == INTERRUPTED:
        assert re.search(r"[1-9]\d* of \d+ runs were kept", done.stdout), done.stdout
    return done.stdout


def interrupt(step, folder):
    """Stop a command as Ctrl-C does, once it has written something down."""
    process = subprocess.Popen(
        step.content, shell=True, cwd=folder, env=environment(folder),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    journal = folder / JOURNAL
    begun = until(
        lambda: journal.exists() and journal.read_text().strip(),
        stopped=lambda: process.poll() is not None,
    )
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(LIMIT) != 0 and begun


def test_contributing_has_its_recipes():
    sections = recipes()
    words = (
        "chapter",
        "claim",
        "figure",
        "explorer",
        "symbol",
        "module",
        "problem set",
    )
    for word in words:
        (title,) = (each for each in sections if word in each)
        commands = [step.content for step in sections[title] if not step.file]
        assert any(each.startswith("make check") for each in commands), title


def test_every_command_of_contributing_is_a_target():
    targets = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)}
    named = re.findall(r"(?:`|^)make\s([a-z-]+)", TEXT, re.M)
    assert len(named) > 20 and {*named} <= targets


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return clone(tmp_path_factory.mktemp("clone") / "book")


@pytest.mark.slow
def test_the_clone_uses_its_own_code(project):
    code = "import lib, tools.check as c; print(lib.__file__, c.__file__)"
    step = Step(None, f'cd chapters && ../.venv/bin/python -c "{code}"')
    assert follow(step, project).split() == [
        str(project / "lib/__init__.py"), str(project / "tools/check.py"),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("title", recipes())
def test_recipe_works_as_it_is_written(title, project):
    """In the order of the page: later recipes add to the chapter of the first."""
    for step in recipes()[title]:
        follow(step, project)
    commit(project)
