"""lib/core knows no subject, files keep private names, imports make no circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lib

LIB = Path(lib.__file__).parent
FILES = {
    "lib." + ".".join(path.relative_to(LIB).with_suffix("").parts): path
    for path in sorted(LIB.rglob("*.py"))
}


def imports(path):
    """Pairs of a module of lib and a name that a file takes from it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lib"):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("name", FILES)
def test_no_private_name_is_imported(name):
    for module, imported in imports(FILES[name]):
        assert imported[0] != "_", f"{imported} of {module}"


def test_the_ground_floor_imports_itself_only():
    for name, path in FILES.items():
        if name.startswith("lib.core."):
            assert all(module.startswith("lib.core") for module, _ in imports(path))


def test_neither_files_nor_packages_import_in_a_circle():
    files, packages = {}, {}
    for name, path in FILES.items():
        if name.endswith("__init__"):
            continue
        for module, imported in imports(path):
            inner = f"{module}.{imported}"
            target = inner if inner in FILES else module
            files.setdefault(name, set()).add(target)
            room, other = (full.split(".")[1] for full in (name, f"{target}.lib"))
            if room != other:
                packages.setdefault(room, set()).add(other)
    assert len([*TopologicalSorter(files).static_order()]) > 30
    assert "core" in [*TopologicalSorter(packages).static_order()][:3]


def test_a_file_ends_where_its_idea_ends():
    """CONTRIBUTING asks for 100 to 450 lines; small ideas have small files."""
    for path in FILES.values():
        assert len(path.read_text("utf-8").splitlines()) <= 450, path
