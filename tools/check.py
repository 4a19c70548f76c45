"""Check what one edits: a page, or what the working tree changed.

    python -m tools.check 3          chapter 3: its notebook, its packages, its page
    python -m tools.check notation   a page without code
    python -m tools.check            what differs from the last commit; where nothing
                                     does, what that commit changed

A notebook whose code changed is executed and stored; one whose code did not is executed
and compared. The site is brought up to date, and a page is tried in a browser at both
widths. What is not checked here is named; ``make test`` checks everything.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from tools.command import ROOT, PipelineError, exclusive, run_main
from tools.digests import KEY, digests, imports, meaning, stale
from tools.notebooks import make
from tools.texts import BOOK, SETS, SETUP, read_text, texts

PYTEST = [sys.executable, "-m", "pytest", "-q"]
BUILD = [sys.executable, "-m", "tools.serve", "--build-only"]
AT_ONCE = 3  # jobs: each waits now and then for a kernel, a browser or a disk
SITE = "tests/test_site.py"
BAD_INPUT = "tests/lib/test_bad_input.py"
# Tests that take one page after the other, and are quick with one.
OF_PAGES = (
    "figures", "launch", "notation", "notebooks", "plain_book", "site",
)  # fmt: skip
# What is tested under another name than its own. Of what is not listed here, and has no
# test of its name or that imports it, check says that it was not checked.
TESTED_BY = {
    "_config.yml": ("site", "serve"),
    "_toc.yml": ("site", "head", "serve"),
    "CONTRIBUTING.md": ("project",),
    "Makefile": ("project",),
    "README.md": ("project",),
    "benchmarks/*": ("benchmarks",),
    "chapters/reference/*.bib": ("bibliography",),
    "chapters/reference/literature.md": ("bibliography",),
    "chapters/reference/notation.md": ("notation",),
    "chapters/reference/claims-mutants.json": ("claim_mutants", "scoreboard"),
    "chapters/reference/mutants.json": ("mutants", "scoreboard"),
    "chapters/reference/reseed.json": ("reseed", "scoreboard"),
    "conftest.py": ("alone",),
    "lib/figures/*": ("figures",),
    "pyproject.toml": ("project",),
    "requirements.*": ("project",),
    "tools/environment.py": ("project",),
    "tools/kernels/*": ("kernels",),
    "tools/mutants/*": ("claim_mutants", "mutants"),
    "tools/paper.*": ("pdf",),
    "tools/reading.js": ("reading",),
    "tools/slides.*": ("slides",),
    "tools/site/*": ("site",),
    "tools/site/static/*.css": ("forced_colors", "keyboard"),
    "tools/site/static/book.mjs": ("keyboard", "page"),
    "tools/site/static/live*": ("live",),
    "tools/site/templates/*": ("site", "head"),
}


@dataclass
class Plan:
    """Plan of what is to be checked."""

    pages: set[Path] = field(default_factory=set)  # their texts
    notebooks: set[Path] = field(default_factory=set)  # texts whose code is run
    packages: set[str] = field(default_factory=set)  # of lib, whose refusals are tried
    tests: set[str] = field(default_factory=set)
    python: set[str] = field(default_factory=set)  # files whose style is looked at
    left: set[str] = field(default_factory=set)  # what is not checked here


# -- A page ------------------------------------------------------------------------


def page(asked: str, root: Path = ROOT) -> Path:
    """The text of the page with a chapter's number, or a name."""
    every = {path.stem: path for path in sorted((root / BOOK).rglob("*.md"))}
    for pattern in (re.escape(Path(asked).stem), f"{re.escape(asked)}-.*"):
        matching = [path for stem, path in every.items() if re.fullmatch(pattern, stem)]
        if len(matching) == 1:
            return matching[0]
    raise PipelineError(f"{asked!r} is no page; there are: {', '.join(every)}")


def of_page(text: Path, root: Path = ROOT) -> Plan:
    """Its notebook, the tests of the packages that its cells import, and the page."""
    plan = Plan(pages={text})
    if text not in texts(root):
        return plan
    plan.notebooks = {text}
    code = [c.source for c in read_text(text).cells if c.cell_type == "code"]
    for file in imports("\n".join(code), root):
        name = package(file.relative_to(root).as_posix())
        if tests := tests_of(name, root):
            plan.packages.add(name)
            plan.tests |= tests
    return plan


def package(file: str) -> str:
    """The package or module of ``lib`` that a file belongs to."""
    return Path(file).parts[1].removesuffix(".py")


def tests_of(name: str, root: Path) -> set[str]:
    """Test files of a package of ``lib``, or of one of its modules, by name."""
    files = [*(root / "tests/lib").glob(f"test_{name}.py")]
    files += (root / "tests/lib").glob(f"test_{name}_*.py")
    return {path.relative_to(root).as_posix() for path in files}


# -- What changed ------------------------------------------------------------------


def git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise PipelineError(f"git {words[0]} failed: {answer.stderr.strip()}")
    return answer.stdout


def changed(root: Path = ROOT) -> tuple[str, list[str]]:
    """The commit that the working tree is compared with, and the files that differ."""
    files = git(root, "diff", "--name-only", "-z", "HEAD").split("\0")
    files += git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    if any(files):
        return "HEAD", sorted({file for file in files if file})
    files = git(root, "diff", "--name-only", "-z", "HEAD~1", "HEAD").split("\0")
    return "HEAD~1", sorted({file for file in files if file})


def before(root: Path, base: str, file: str) -> str | None:
    """A file as it was; None where there was none."""
    try:
        return git(root, "show", f"{base}:{file}")
    except PipelineError:
        return None


def of_changes(base: str, files: list[str], root: Path = ROOT) -> Plan:
    """Reach of the changes of some files."""
    plan = Plan(python={f for f in files if f.endswith(".py") and (root / f).exists()})
    for text in [*texts(root), *texts(root, SETS)]:
        add_text(plan, text, base, files, root)
    for file in files:
        if file.startswith(f"{BOOK}/") and file.endswith(".md"):
            if (root / file).exists() and root / file not in texts(root):
                plan.pages.add(root / file)
        elif file.endswith(".ipynb"):
            continue  # made from its text, which was looked at
        elif re.match(r"lib/.*\.py$", file):
            add_module(plan, file, base, root)
            continue
        if tests := pipeline_tests(file, root):
            plan.tests |= tests
        elif not (file.startswith(f"{BOOK}/") and file.endswith(".md")):
            plan.left.add(file)
    return plan


def add_text(plan: Plan, text: Path, base: str, files: list[str], root: Path) -> None:
    """A page that changed, or a notebook whose code or modules mean something else."""
    notebook = text.with_suffix(".ipynb").relative_to(root).as_posix()
    stored = json.loads(before(root, base, notebook) or "{}")
    known, now = stored.get("metadata", {}).get(KEY, {}), digests(text, root)
    names = {name for name in known | now if known.get(name) != now.get(name)}
    prose = {text.relative_to(root).as_posix(), SETUP}
    if names - prose:
        plan.notebooks.add(text)
    if (names or {notebook, *prose} & {*files}) and text.is_relative_to(root / BOOK):
        plan.pages.add(text)


def add_module(plan: Plan, file: str, base: str, root: Path) -> None:
    """Tests of the package of a file of ``lib``, and of the modules that import it."""
    plan.tests |= {"tests/lib/test_structure.py", "tests/test_project.py"}
    plan.tests |= pipeline_tests(file, root)
    old, path = before(root, base, file), root / file
    if old and path.exists() and same(old, path.read_text("utf-8")):
        return  # words alone
    plan.packages.add(package(file))
    plan.tests |= tests_of(package(file), root)
    for each in importers(path, root):
        plan.tests |= tests_of("_".join(each.with_suffix("").parts[1:]), root)
    if file == "lib/coursework.py":
        plan.left.add(file)


def same(old: str, new: str) -> bool:
    return repr(meaning(ast.parse(old))) == repr(meaning(ast.parse(new)))


def importers(path: Path, root: Path) -> list[Path]:
    """Files of ``lib`` that import one, at any remove, as from the root."""
    direct = {
        file: set(imports(file.read_bytes(), root))
        for file in (root / "lib").rglob("*.py")
    }
    reached, pending = {path}, [path]
    while pending:
        one = pending.pop()
        new = {file for file, own in direct.items() if one in own} - reached
        reached |= new
        pending += new
    return sorted(file.relative_to(root) for file in reached - {path})


def pipeline_tests(file: str, root: Path) -> set[str]:
    """Tests with the name of a file, those that import it, and those listed for it."""
    if Path(file).name.startswith("test_") and (root / file).exists():
        return set() if file.startswith("coursework/") else {file}
    names = {Path(file).stem} if file.endswith(".py") else set()
    names |= {
        name for glob, own in TESTED_BY.items() if fnmatch(file, glob) for name in own
    }
    paths = {root / "tests" / f"test_{name}.py" for name in names}
    if file.startswith("tools/") and file.endswith(".py"):
        package, _, module = ".".join(Path(file).with_suffix("").parts).rpartition(".")
        pattern = re.compile(
            rf"^from {package}\.{module} import|^from {package} import .*\b{module}\b",
            re.M,
        )
        every = (root / "tests").glob("test_*.py")
        paths |= {path for path in every if pattern.search(path.read_text("utf-8"))}
    return {path.relative_to(root).as_posix() for path in paths if path.exists()}


# -- The work ----------------------------------------------------------------------


def jobs(plan: Plan) -> dict[str, list[list[str]]]:
    """Commands that need neither notebooks nor the site, by what is said of them."""
    commands = {}
    if plan.python:
        commands["style"] = [
            [sys.executable, "-m", "ruff", *words, "--quiet", *sorted(plan.python)]
            for words in (["check"], ["format", "--check"])
        ]
    if any(name.startswith("lib/") for name in plan.python):
        commands["types"] = [[sys.executable, "-m", "mypy", "--no-error-summary"]]
    for name, files in grouped(plan.tests - {SITE}).items():
        commands[f"tests of {name}"] = [[*PYTEST, *files]]
    if plan.packages:
        commands["refusals"] = [
            [*PYTEST, BAD_INPUT, "-k", " or ".join(sorted(plan.packages))]
        ]
    return commands


def grouped(tests: set[str]) -> dict[str, list[str]]:
    """Test files by the package of ``lib`` they belong to; single ones together."""
    own: dict[str, list[str]] = {}
    for test in sorted(tests):
        name = Path(test).stem.split("_")[1] if "/lib/" in test else "the pipeline"
        own.setdefault(name, []).append(test)
    alone = {name for name, files in own.items() if len(files) == 1}
    if len(alone) > 1:
        own[", ".join(sorted(alone))] = [own.pop(name)[0] for name in sorted(alone)]
    return own


def compared(text: Path, how: str) -> list[str]:
    """The command that executes a notebook and compares its outputs."""
    options = [how, "--nbval-current-env", "--nbval-cell-timeout", "300"]
    return [*PYTEST, *options, str(text.with_suffix(".ipynb"))]


def looked_at(plan: Plan, root: Path = ROOT) -> list[list[str]]:
    """The commands that bring the site up to date and try its new pages."""
    if SITE in plan.tests:
        return [BUILD, [*PYTEST, "-n", "2", SITE]]
    files = [f"tests/test_{name}.py" for name in OF_PAGES]
    names = sorted(text.stem for text in plan.pages)
    # As pages are named in the ids of tests: [3-x], [chapters/3-x], [chapters/3-x.html]
    words = [f"[{name}] or /{name}] or /{name}." for name in names]
    present = [file for file in files if (root / file).exists()]
    return [BUILD, [*PYTEST, *present, "-k", " or ".join(words)]]


def run(label: str, commands: list[list[str]], root: Path = ROOT) -> bool:
    """Run commands until one fails; say how it went, and what the failing one said."""
    start = time.monotonic()
    for command in commands:
        done = subprocess.run(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        if done.returncode:
            print(f"{done.stdout}\ncheck: {label} FAILED", flush=True)
            return False
    print(f"check: {label}: passed ({time.monotonic() - start:.0f} s)", flush=True)
    return True


def check(plan: Plan, how: str, root: Path = ROOT) -> bool:
    """Check all that is planned, several things at once; whether all is well."""
    for file in sorted(plan.left):
        print(f"check: {file} is not checked here; make test does")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked: list[Future[bool]] = [
            pool.submit(run, label, commands, root)
            for label, commands in jobs(plan).items()
        ]
        fresh = [text for text in plan.notebooks if only_prose(text, root)]
        with exclusive(root / BOOK, "make notebooks"):
            for text in sorted(plan.notebooks | (plan.pages & {*texts(root)})):
                make(text, root)
        for text in sorted(fresh):
            label = f"notebook {text.stem}, executed and compared"
            asked.append(pool.submit(run, label, [compared(text, how)], root))
        if plan.pages or SITE in plan.tests:
            label = f"site, {', '.join(sorted(p.stem for p in plan.pages)) or 'all'}"
            asked.append(pool.submit(run, label, looked_at(plan, root), root))
        return all([each.result() for each in asked])


def only_prose(text: Path, root: Path) -> bool:
    """Tell whether the outputs that are stored belong to the code of a text."""
    return {*stale(text, root)} <= {text.relative_to(root).as_posix(), SETUP}


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="tools.check", description=__doc__)
    parser.add_argument("page", nargs="?", help="a chapter's number, or a page's name")
    parser.add_argument("--compare", default="--nbval", help="how notebooks are")
    asked = parser.parse_args(argv)
    if asked.page:
        plan = of_page(page(asked.page, root), root)
    else:
        base, files = changed(root)
        print(f"check: {len(files)} files differ from {base}")
        plan = of_changes(base, files, root)
    return 0 if check(plan, asked.compare, root) else 1


if __name__ == "__main__":
    run_main(main, "no notebook was left half-written; the site is begun anew")
