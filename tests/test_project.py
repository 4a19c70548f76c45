"""The project's own promises: one list of dependencies, light imports, clear errors."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions

import pytest

from tools import environment
from tools.command import ROOT
from tools.texts import SETS, read_text, texts

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# matplotlib, IPython and pooch live in these modules only.
DRAWING = {"figures", "exhibits"}  # packages
PLOTTING = {"claims", "data"}  # and the package figures


PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
# What the book is asked to run with, whatever else changes.
FIXED = {"jupyter-book", "numpy", "matplotlib", "ipywidgets", "pot", "nbval"}
# Modules that one kind of system alone has.
OF_POSIX = {
    "curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog",
    "termios", "tty",
}  # fmt: skip


def named(entry):
    """Name of a distribution in a line that asks for it."""
    return re.split(r"[<>=\[ ;]", entry)[0].lower().replace("_", "-")


def test_requirements_say_what_pyproject_says():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert listed == [*PROJECT["dependencies"], *EXTRAS["lab"], *EXTRAS["book"]]
    assert {named(line) for line in listed} >= FIXED
    # Nothing in it depends on the folder that pip is called from.
    assert not [line for line in listed if re.search(r"[/\\]|^\.|^-", line)]


def imported(path):
    """The packages that a file imports, anywhere in it."""
    packages = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            packages.add(node.module.split(".")[0])
    return packages


def test_lib_imports_its_dependencies_and_no_other_package():
    """IPython comes with ipywidgets; what extras bring is asked for by those extras."""
    known = packages_distributions()
    needs = {named(entry) for entry in PROJECT["dependencies"]} | {"ipython"}
    extra = {named(entry) for entry in EXTRAS["cluster"]}
    for path in (ROOT / "lib").rglob("*.py"):
        assert not imported(path) & OF_POSIX, path
        for name in imported(path) - sys.stdlib_module_names - {"lib"}:
            distributions = {each.lower().replace("_", "-") for each in known[name]}
            assert distributions & (needs | extra), f"{path.name} imports {name}"


def test_notebooks_import_the_dependencies_and_no_other_package():
    known = packages_distributions()
    needs = {named(entry) for entry in PROJECT["dependencies"]} | {"ipython"}
    for text in [*texts(), *texts(ROOT, SETS)]:
        code = [c.source for c in read_text(text).cells if c.cell_type == "code"]
        names = {"sys"}
        for node in ast.walk(ast.parse("\n".join(code))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module.split(".")[0])
        for name in names - sys.stdlib_module_names - {"lib"}:
            distributions = {each.lower().replace("_", "-") for each in known[name]}
            assert distributions & needs, f"{text.name} imports {name}"


def test_benchmarks_write_data_and_tools_read_it():
    """No arrow between the two, and none from the tools to what stands on them."""
    for folder, others in {
        "tools": {"benchmarks"},
        "benchmarks": {"tools", "coursework"},
        "coursework": {"benchmarks"},
        "tools/site": {"coursework"},
    }.items():
        paths = [*(ROOT / folder).rglob("*.py")]
        assert len(paths) > 5
        for path in paths:
            assert not imported(path) & others, path


@pytest.mark.parametrize("folder", ["lib", "tools", "benchmarks", "coursework"])
def test_no_private_name_is_imported(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
                assert not [n for n in names if n[0] == "_" and n[1] != "_"], path


def test_tools_import_nothing_of_the_tests():
    tests = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {"tests"}
    assert {"waits", "conftest"} < tests
    for path in (ROOT / "tools").rglob("*.py"):
        assert not imported(path) & tests, path


def arrows():
    """Pairs of modules of tools, of which the first imports the second."""
    known = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / "tools").rglob("*.py")
    }
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("tools"):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                targets = inner & known.keys() or {node.module}
                yield from ((name, target) for target in targets)


def test_neither_modules_nor_packages_of_tools_import_in_a_circle():
    modules, packages = {}, {}
    for name, target in arrows():
        modules.setdefault(name, set()).add(target)
        room, other = (full.split(".")[1] for full in (name, target))
        if room != other:
            packages.setdefault(room, set()).add(other)
    assert len([*TopologicalSorter(modules).static_order()]) > 30
    order = [*TopologicalSorter(packages).static_order()]
    assert len(order) > 20 and order.index("command") < order.index("site")


def test_lib_and_the_commands_of_readers_need_no_posix():
    """All of lib, and what opens JupyterLab, where a Unix-only module is missing."""
    parts = [p.relative_to(ROOT).with_suffix("") for p in (ROOT / "lib").rglob("*.py")]
    modules = [".".join(p.parts).removesuffix(".__init__") for p in parts]
    code = f"""
import importlib, os, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OF_POSIX!r} and name != "posix":
            raise ModuleNotFoundError(f"no {{name}} on this system", name=name)
for name in {OF_POSIX!r} - {{"posix"}}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for name in ("fork", "geteuid", "getuid", "setsid", "killpg", "getpgid"):
    delattr(os, name)
for name in {[*modules, "tools.lab", "tools.launch", "tools.wheel"]!r}:
    importlib.import_module(name)
from tools import lab
assert "--allow-root" not in lab.command(["3"])[1]
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_requirements_install_from_any_folder(tmp_path):
    """What pip reads from another folder are the lines themselves, and no path."""
    code = (
        "from pip._internal.network.session import PipSession as S\n"
        "from pip._internal.req import parse_requirements as parse\n"
        f"for each in parse({str(ROOT / 'requirements.txt')!r}, session=S()):\n"
        "    print(each.is_editable, each.requirement)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    wanted = [*PROJECT["dependencies"], *EXTRAS["lab"], *EXTRAS["book"]]
    assert lines == [f"False {entry}" for entry in wanted]


def test_lock_is_hashed_and_covers_the_dependencies():
    lock = (ROOT / "requirements.lock").read_text()
    assert "--index-url" not in lock and "://" not in lock
    pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.M))
    wanted = [*PROJECT["dependencies"], *EXTRAS["lab"], *EXTRAS["book"], *EXTRAS["dev"]]
    assert {named(entry) for entry in wanted} - {PROJECT["name"]} <= pinned
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
    if path.stem not in PLOTTING and path.parent.name not in DRAWING:
        assert not top & {"matplotlib", "IPython", "ipywidgets", "pooch", "PIL"}
    assert "tools" not in top and "chapters" not in path.read_text().split()


@pytest.mark.parametrize("version", [(3, 10), (3, 15), (2, 7)])
def test_other_python_versions_are_one_sentence(version):
    with pytest.raises(SystemExit, match=f"3.11 to 3.14.*{version[0]}.{version[1]}"):
        environment.check_version(version)


def test_the_versions_of_python_are_the_same_everywhere():
    oldest, newest = (f"3.{v[1]}" for v in (environment.OLDEST, environment.NEWEST))
    beyond = f"3.{environment.NEWEST[1] + 1}"
    assert PROJECT["requires-python"] == f">={oldest},<{beyond}"
    drift = (ROOT / ".github" / "workflows" / "drift.yml").read_text()
    assert f'"{oldest}"' in drift and f'"{newest}"' in drift
    for page in ("README.md", "chapters/reference/running.md"):
        assert f"Python {oldest} to {newest}" in (ROOT / page).read_text()


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
        "slides",
        "reading",
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


QUESTIONS = {
    *("What", "Whether", "When", "Where", "Which", "Who", "Whose", "Why", "How"),
}  # fmt: skip


@pytest.mark.parametrize("folder", ["lib", "tools", "benchmarks", "coursework"])
def test_docstrings_name_what_there_is(folder):
    """A docstring is a noun phrase or an imperative, and no clause of a question."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > 10
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            first = re.match(r"\w*", text or "")[0]
            assert first not in QUESTIONS, f"{path}: {text}"
