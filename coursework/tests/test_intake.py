"""Whatever comes back from students is read, or refused with its reason."""

import copy
import io
import json
import zipfile

import nbformat
import pytest

from conftest import SPOILED
from coursework import grading, intake, submissions
from coursework.intake import Unreadable


@pytest.fixture(scope="module")
def solved(material):
    """The notebook with all answers, an open answer and a cell of the student's own."""
    set_ = material[SPOILED]
    notebook = submissions.answered(set_.given, set_.solved)
    notebook.cells.insert(5, nbformat.v4.new_code_cell("mine = 1"))
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and mark.get("solution"):
            cell.source = "My answer to the open problem."
    return notebook


def as_bytes(notebook):
    return nbformat.writes(notebook).encode()


def zipped(content, name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"../{name}", content)
        archive.writestr(f"__MACOSX/._{name}", b"x")
    return file.getvalue()


def by_colab(notebook):
    """Version 4.0: no ids; marks under another key of the metadata, outputs kept."""
    raw = json.loads(nbformat.writes(notebook))
    raw["nbformat_minor"] = 0
    raw["metadata"] = {"colab": {"provenance": []}, "accelerator": "GPU"}
    for cell in raw["cells"]:
        del cell["id"]
        cell["metadata"]["id"] = "AbC123"
        cell["metadata"]["outputId"] = "x"
    return json.dumps(raw).encode()


def stripped(notebook, ids=True):
    raw = json.loads(nbformat.writes(notebook))
    raw["metadata"] = {}
    for number, cell in enumerate(raw["cells"]):
        cell["metadata"] = {}
        if not ids:
            cell["id"] = f"new-{number}"
    return json.dumps(raw).encode()


def with_windows_ends(notebook):
    whole = copy.deepcopy(notebook)
    for cell in whole.cells:
        cell.source = cell.source.replace("\n", "\r\n")
    return as_bytes(whole).replace(b"\n", b"\r\n")


NAME = f"{SPOILED}.ipynb"
FORMS = {
    "as-it-was": lambda n: {NAME: as_bytes(n)},
    "colab": lambda n: {NAME: by_colab(n)},
    "no-metadata": lambda n: {NAME: stripped(n)},
    "no-metadata-no-ids": lambda n: {NAME: stripped(n, ids=False)},
    "windows": lambda n: {NAME: with_windows_ends(n)},
    "byte-order-mark": lambda n: {NAME: b"\xef\xbb\xbf" + as_bytes(n)},
    "utf-16": lambda n: {NAME: as_bytes(n).decode().encode("utf-16")},
    "renamed": lambda n: {f"{SPOILED} (1).ipynb": as_bytes(n)},
    "in-a-folder": lambda n: {f"my work/{NAME}": as_bytes(n)},
    "zipped": lambda n: {f"{SPOILED}.zip": zipped(as_bytes(n), NAME)},
    "zipped-twice": lambda n: {
        "all.zip": zipped(zipped(as_bytes(n), NAME), "inner.zip")
    },
    "beside-a-checkpoint": lambda n: {
        NAME: as_bytes(n), ".ipynb_checkpoints/old-checkpoint.ipynb": b"{}"
    },
}  # fmt: skip


def written(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_assembled_to_the_same_notebook(solved, material, tmp_path, form):
    folder = written(tmp_path, FORMS[form](solved))
    assembled, _ = intake.find(folder, SPOILED)
    whole, _ = intake.assemble(assembled, material[SPOILED].given)
    wanted, _ = intake.assemble(solved, material[SPOILED].given)
    assert [c.source for c in whole.cells] == [c.source for c in wanted.cells]
    assert [c.metadata for c in whole.cells] == [c.metadata for c in wanted.cells]
    assert "My answer to the open problem." in [c.source for c in whole.cells]
    assert "mine = 1" in [c.source for c in whole.cells]
    nbformat.validate(whole)


def test_the_odd_ones_have_full_marks_in_the_end(course, solved):
    for form in ("no-metadata-no-ids", "zipped-twice", "colab"):
        written(course / "submitted" / form / SPOILED, FORMS[form](solved))
    rows = grading.grade(course, SPOILED, 2)
    for form in ("no-metadata-no-ids", "zipped-twice", "colab"):
        assert rows[form]["points"] == rows[form]["of"], rows[form]
    assert "were recognized" in rows["no-metadata-no-ids"]["notes"][0]
    assert f"was taken for {NAME}" in rows["zipped-twice"]["notes"][0]


def bomb():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(NAME, bytes(intake.LARGEST + 1))
    return file.getvalue()


REFUSED = {
    "half a file": ({NAME: b'{"cells": ['}, "is not a notebook"),
    "an essay": ({"essay.txt": b"On paper."}, "no notebook: essay.txt"),
    "nothing": ({}, "no notebook: nothing"),
    "a PDF": ({NAME: b"%PDF-1.7 \xff\xfe"}, "is not a notebook"),
    "two notebooks": ({"a.ipynb": b"{}", "b.ipynb": b"{}"}, "several notebooks: a"),
    "no archive": ({"a.zip": b"PK"}, "no archive that can be read"),
    "an archive that unpacks to much": ({"a.zip": bomb()}, "unpacks to more than"),
    "deeply nested": ({NAME: b"[" * 100_000}, "is not a notebook"),
    "half a character": (
        {NAME: b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{'
               b'"cell_type": "code", "metadata": {}, "source": "\\ud800"}]}'},
        "is not a notebook",
    ),
    "cells of no kind": (
        {NAME: b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{'
               b'"cell_type": "magic", "metadata": {}, "source": ""}]}'},
        "a cell of type magic",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_has_a_reason(tmp_path, kind):
    files, said = REFUSED[kind]
    with pytest.raises(Unreadable, match=said):
        intake.find(written(tmp_path, files), SPOILED)


def test_a_huge_notebook_is_refused_unread(tmp_path):
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(intake.LARGEST + 1)
    with pytest.raises(Unreadable, match="has more than 100 MB"):
        intake.find(tmp_path, SPOILED)


def test_links_are_not_followed(course, tmp_path, solved):
    secret = course / "term.txt"
    (tmp_path / NAME).symlink_to(course / "source" / SPOILED / NAME)
    (tmp_path / "data.txt").symlink_to(secret)
    with pytest.raises(Unreadable, match=f"no notebook: data.txt, {NAME}"):
        intake.find(tmp_path, SPOILED)
    (tmp_path / NAME).unlink()
    written(tmp_path, {NAME: as_bytes(solved), "more.csv": b"1,2"})
    notebook, notes = intake.find(tmp_path, SPOILED)
    assert notes == ["data.txt is a link and was left out"]
    assert intake.collect(tmp_path, tmp_path / "target", notebook, SPOILED) == []
    kept = {path.name for path in (tmp_path / "target").iterdir()}
    assert kept == {NAME, "more.csv"}
    (tmp_path / "folder").symlink_to(tmp_path / "target")
    with pytest.raises(Unreadable, match="is no folder"):
        intake.find(tmp_path / "folder", SPOILED)


def test_what_cannot_be_graded_gets_zero_and_a_reason(course, rows):
    written(course / "submitted" / "on-paper" / SPOILED, {"essay.txt": b"On paper."})
    row = grading.grade(course, SPOILED)["on-paper"]
    assert row["points"] == 0 and row["of"] == rows[SPOILED]["reference"]["of"]
    assert row["notes"][0].startswith("not graded, 0 points: there is no file")


def test_cells_that_are_too_long_are_left_out(material, solved):
    whole = copy.deepcopy(solved)
    whole.cells.append(nbformat.v4.new_code_cell("#" * (intake.LONGEST + 1)))
    made, notes = intake.assemble(whole, material[SPOILED].given)
    assert max(len(c.source) for c in made.cells) < intake.LONGEST
    assert any("characters: left out" in note for note in notes)
