"""The project's own promises: one list of dependencies, light imports, clear errors."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest

from tools import environment
from tools.command import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# matplotlib, IPython and pooch live in these modules only.
PLOTTING = {"claims", "data"}  # and the package figures


def test_requirements_say_what_pyproject_says():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert listed == [*PYPROJECT["project"]["dependencies"], "-e ."]


def test_lock_is_hashed_and_covers_the_dependencies():
    lock = (ROOT / "requirements.lock").read_text()
    assert "--index-url" not in lock and "://" not in lock
    pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.M))
    wanted = PYPROJECT["project"]["dependencies"]
    wanted = wanted + PYPROJECT["project"]["optional-dependencies"]["dev"]
    names = {re.split(r"[<>=\[]", entry)[0].replace("_", "-") for entry in wanted}
    assert names <= pinned
    blocks = re.split(r"\n(?=[a-z])", lock)[1:]
    assert all("--hash=sha256:" in block for block in blocks)


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "lib").rglob("*.py")),
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_modules_import_what_the_module_map_allows(path):
    tree = ast.parse(path.read_text())
    names = {
        a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
    }
    names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    top = {name.split(".")[0] for name in names if name}
    if path.stem not in PLOTTING and path.parent.name != "figures":
        assert not top & {"matplotlib", "IPython", "ipywidgets", "pooch", "PIL"}
    assert "tools" not in top and "chapters" not in path.read_text().split()


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (2, 7)])
def test_other_python_versions_are_one_sentence(version):
    with pytest.raises(
        SystemExit, match=f"3.11, 3.12 or 3.13.*{version[0]}.{version[1]}"
    ):
        environment.check_version(version)


def test_environment_script_parses_on_old_pythons():
    """So that a wrong Python meets a sentence: nothing newer than Python 2.7 knows."""
    source = (ROOT / "tools" / "environment.py").read_text()
    tree = ast.parse(source, feature_version=(3, 7))
    newer = (ast.JoinedStr, ast.Starred, ast.AnnAssign, ast.NamedExpr)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]


@pytest.mark.parametrize(
    ("output", "sentence"),
    [("NewConnectionError: no route", "network"), ("something else", "'step' failed")],
)
def test_failed_installation_is_one_sentence(output, sentence):
    command = [sys.executable, "-c", f"print({output!r}); raise SystemExit(1)"]
    with pytest.raises(SystemExit, match=f"^error: .*{sentence}"):
        environment.run("step", command)


def test_help_lists_the_targets():
    out = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    for target in (
        "serve",
        "pdf",
        "test",
        "notebooks",
        "lab",
        "live",
        "import",
        "lint",
    ):
        assert f"make {target} " in out


def test_no_absolute_path_of_a_machine_is_committed():
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    )
    for name in files.stdout.split():
        content = (ROOT / name).read_bytes()
        assert b"/home/" not in content.replace(b'b"/home/"', b""), name
