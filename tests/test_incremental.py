"""After an edit only the pages that it reaches are made, and they are right."""

import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tools.command import ROOT
from tools.serve import HTML, SOURCES, STAMP
from tools.site import incremental
from tools.verdicts import Row

ROW = Row("b", "s", "id", "HOLDS", "claim", "thm", "1 of 1", "<p></p>")


def environment(tmp_path):
    """What Sphinx knows of a book of two pages; the second has a statement."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(name)
    objects = {"lib.f": SimpleNamespace(docname="a")}
    return SimpleNamespace(
        srcdir=tmp_path,
        found_docs={"a", "b"},
        metadata={"a": {incremental.READS_VERDICTS: ""}, "b": {}},
        dependencies={"a": {"b.json"}, "b": set()},
        doc2path=lambda page: str(tmp_path / f"{page}.md"),
        titles={page: SimpleNamespace(astext=lambda p=page: p) for page in "ab"},
        toctree_includes={"a": ["b"]},
        toc_secnumbers={"b": {"": (1,)}},
        toc_fignumbers={"b": {"theorem": {"thm": (1,)}}},
        proof_list={"thm": {"docname": "b"}},
        limit_rows=[ROW],
        limit_used_in={"lib.f": ["b"]},
        domains={
            "std": SimpleNamespace(
                labels={"l": ("b", "l", "L")}, anonlabels={}, objects={}
            ),
            "math": SimpleNamespace(data={"objects": {}}),
            "py": SimpleNamespace(data={"objects": objects}, objects=objects),
            "cite": SimpleNamespace(citations=[]),
            "index": SimpleNamespace(entries={"a": ["an entry"], "b": []}),
        },
    )


@pytest.fixture
def env(tmp_path):
    """The environment that a build has left."""
    built = environment(tmp_path)
    incremental.forget_nothing(SimpleNamespace(env=built))
    incremental.with_other_contents(None, built, {"a", "b"}, set(), set())
    incremental.to_write(None, built)
    return built


def read(env):
    return set(incremental.with_other_contents(None, env, set(), set(), set()))


def test_nothing_new_makes_nothing(env):
    assert read(env) == set()
    assert incremental.to_write(None, env) == {"a"}  # for its part of the search index


@pytest.mark.parametrize(
    ("name", "reached"), [("a.md", {"a"}), ("b.md", {"b"}), ("b.json", {"a"})]
)
def test_pages_are_read_for_the_content_of_their_files(env, name, reached):
    path = env.srcdir / name
    path.touch()
    os.utime(path, (0, 0))  # as old as a version that comes back
    path.write_text("other")
    os.utime(path, (0, 0))
    assert read(env) == reached


def test_pages_are_read_for_verdicts_and_for_uses(env):
    env.limit_rows = []
    assert read(env) == {"a"}  # which lists them
    env.limit_used_in = {}
    assert read(env) == {"a"}  # which has the documentation
    assert read(env) == set()


@pytest.mark.parametrize(
    "change",
    [
        lambda env: env.titles.update(b=SimpleNamespace(astext=lambda: "new")),
        lambda env: env.toctree_includes.update(a=[]),
        lambda env: env.toc_secnumbers["b"].update({"": (2,)}),
        lambda env: env.toc_fignumbers["b"]["theorem"].update(thm=(2,)),
        lambda env: env.proof_list.pop("thm"),
        lambda env: env.domains["std"].labels.clear(),
        lambda env: env.domains["std"].labels.update(l=("a", "l", "L")),
        lambda env: env.domains["py"].objects.clear(),
    ],
)
def test_all_pages_are_written_for_what_they_may_show_of_one(env, change):
    change(env)
    assert incremental.to_write(None, env) == {"a", "b"}
    assert incremental.to_write(None, env) == {"a"}


def test_a_statement_is_written_for_its_verdicts(env):
    env.limit_rows = [ROW, ROW]
    assert incremental.to_write(None, env) == {"a", "b"}


def test_a_new_label_is_shown_by_nobody_yet(env):
    env.domains["std"].labels["new"] = ("b", "new", "New")
    assert incremental.to_write(None, env) == {"a"}


# The book itself.


def files(folder):
    """Content of each file of a site, less Sphinx's note of its settings."""
    every = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in every
        if path.name != ".buildinfo"
    }


def make(folder, module, *words):
    done = subprocess.run(
        [sys.executable, "-m", module, *words], cwd=folder, text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def edit(folder, name, old, new):
    path = folder / name
    text = path.read_text("utf-8")
    assert re.search(old, text, re.M), name
    path.write_text(re.sub(old, new, text, count=1, flags=re.M), "utf-8")


def chapter(number):
    (path,) = (ROOT / "chapters").glob(f"{number}-*.md")
    return path.relative_to(ROOT).as_posix()


CLAIM = """
Equal scores have equal weights.

```{code-cell} ipython3
verify(
    "four equal scores have equal weights",
    measured=attention.softmax(np.zeros(4)), expected=0.25, tolerance=1e-14,
    statement="prop-drift",
)
```
"""
EDITS = {
    "claim": [("chapters/reference/more-checks-1.md", r"\Z", CLAIM)],
    "prose": [(chapter(2), r"^## ", "A wobbegong passes by.\n\n## ")],
    "docstring": [("lib/attention.py", "Softmax of the last axis", "Softmax, by rows")],
    "statement": [
        (chapter(3), r"\n```\{prf:", "\n```{prf:remark} New\nWords.\n```\n\n```{prf:")
    ],
    "title": [(chapter(4), r"^# .*", "# Another title")],
    "label": [(chapter(1), r"^(:label: \S+)\n\n", r"\1\n\nMore words. ")],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_ends_with_the_files_of_a_build_from_nothing(kind, tmp_path):
    for name in [*SOURCES, "README.md", "LICENSE", "LICENSE-TEXT"]:
        source, target = ROOT / name, tmp_path / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    make(tmp_path, "tools.serve", "--build-only")
    before = files(tmp_path / HTML)
    for name, old, new in EDITS[kind]:
        edit(tmp_path, name, old, new)
        if name.startswith("chapters"):
            make(tmp_path, "tools.notebooks", name)
    assert "again what these reach" in make(tmp_path, "tools.serve", "--build-only")
    rebuilt = files(tmp_path / HTML)
    (tmp_path / STAMP).unlink()
    make(tmp_path, "tools.serve", "--build-only")
    wanted = files(tmp_path / HTML)
    assert rebuilt.keys() == wanted.keys()
    assert [name for name in wanted if rebuilt[name] != wanted[name]] == []
    assert wanted != before
    if kind == "prose":  # and it was not all made again
        other = {name for name in before if rebuilt[name] != before[name]}
        assert len([name for name in other if name.endswith(".html")]) <= 4
