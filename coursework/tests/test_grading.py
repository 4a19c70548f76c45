"""Each simulated submission gets the marks it deserves, and a course what it needs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import nbformat
import pytest
from nbclient import NotebookClient
from waits import until

from conftest import SETS, SPOILED, checks
from coursework import course as coursework
from coursework import gradebook, grading, sets, submissions
from tools.command import ROOT, PipelineError
from tools.texts import read_text


@pytest.mark.parametrize("name", SETS)
def test_set_is_as_promised(name):
    text = read_text(sets.sets()[name])
    prose = "\n".join(c.source for c in text.cells if c.cell_type == "markdown")
    problems = re.findall(r"^## (\d)\. .*\((\d+) points", prose, flags=re.M)
    assert 5 <= len(problems) <= 8
    worth = sets.points(text)
    assert sum(int(p) for _, p in problems) == sum(worth.values()) == 50
    opening = next(c.source for c in text.cells if c.source.startswith("# "))
    for word in ("**Goals.**", "**Before you start**", "**Time**", "**Points**"):
        assert word in opening
    assert "**Off limits**" in opening
    kinds = [sets.tag(c).split(":")[0] for c in text.cells]
    assert kinds.count("open") == 1 and "term" in kinds


@pytest.mark.parametrize("name", SETS)
def test_reference_has_full_marks_and_the_release_none(rows, name):
    total = sum(checks(name).values())
    assert rows[name]["reference"]["points"] == rows[name]["reference"]["of"] == total
    assert rows[name]["reference"]["notes"] == []
    assert rows[name]["untouched"]["points"] == 0
    assert set(rows[name]["untouched"]["lost"]) == set(checks(name))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("number", [0, 1])
def test_wrong_answers_lose_what_they_should(rows, material, name, number):
    wrong = material[name].wrong
    assert set(wrong) == set(material[name].solved)
    expected = {check for group in wrong.values() for check in group[number].loses}
    row = rows[name][f"wrong-{number}"]
    assert set(row["lost"]) == expected
    kept = sum(v for k, v in checks(name).items() if k not in expected)
    assert row["points"] == kept


@pytest.mark.parametrize("name", SETS)
def test_solutions_of_another_term_fail(rows, name):
    row = rows[name]["last-term"]
    assert row["points"] <= row["of"] / 2 and row["notes"] == []


def test_killed_run_goes_on_and_loses_nothing(course, material):
    set_, report = material[SPOILED], course / "reports" / f"{SPOILED}.jsonl"
    names = [f"crowd-{k}" for k in range(4)]
    for student in names:
        notebook = submissions.answered(set_.given, set_.solved)
        submissions.put(course, SPOILED, student, notebook)
    command = [sys.executable, "-m", "tools.grading", "--set", SPOILED]
    command += ["--course", str(course)]
    run = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL
    )
    graded = until(
        lambda: "crowd-0" in grading.read_report(report),
        stopped=lambda: run.poll() is not None,
    )
    assert graded and run.poll() is None
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    before = grading.read_report(report)
    with report.open("a") as file:
        file.write('{"student": "crowd-1", "poi')  # a line that was cut short
    rows = grading.grade(course, SPOILED)
    assert "crowd-0" in before and rows["crowd-0"] == before["crowd-0"]
    assert {rows[s]["points"] for s in names} == {rows["reference"]["points"]}


def test_an_interruption_is_answered_and_leaves_nothing_running(course, material):
    set_ = material[SPOILED]
    endless = "while True:\n    pass"
    notebook = submissions.answered(set_.given, {next(iter(set_.solved)): endless})
    submissions.put(course, SPOILED, "endless", notebook)
    command = [sys.executable, "-m", "tools.grading", "--set", SPOILED]
    run = subprocess.Popen(
        [*command, "--course", str(course)], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert any("shut in by: bubblewrap" in line for line in run.stdout)
    run.send_signal(signal.SIGINT)
    said = run.communicate()[1]
    assert "interrupted; what was graded is kept" in said and run.returncode == 1
    assert "Traceback" not in said and "Warning" not in said
    assert "endless" not in grading.read_report(course / "reports" / f"{SPOILED}.jsonl")
    shutil.rmtree(course / "submitted" / "endless")


def lines_between(course, name, begin, end):
    """Lines of the solutions, or of the hidden checks, long enough to be told."""
    cells = submissions.read(course, "source", name).cells
    source = "\n".join(cell.source for cell in cells)
    parts = re.findall(rf"{begin}.*?\n(.*?)\n[^\n]*{end}", source, flags=re.S)
    lines = {line.strip() for part in parts for line in part.splitlines()}
    seen = re.sub(rf"{begin}.*?{end}", "", source, flags=re.S)
    return {x for x in lines if len(x) > 25 and x not in seen}


def hidden_lines(course, name):
    return lines_between(course, name, "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


def solution_lines(course, name):
    return lines_between(course, name, "### BEGIN SOLUTION", "### END SOLUTION")


@pytest.mark.parametrize("name", SETS)
def test_students_get_no_solution_and_no_hidden_check(course, name):
    secret = hidden_lines(course, name) | solution_lines(course, name)
    assert len(secret) > 10
    given = [course / "release" / name / f"{name}.ipynb"]
    with zipfile.ZipFile(course / "students" / f"{name}.zip") as archive:
        plain = [m for m in archive.namelist() if not m.endswith(".whl")]
        texts = [archive.read(member).decode() for member in plain]
    cells = [c.source for c in nbformat.reads(texts[0], 4).cells]
    texts += [path.read_text() for path in given] + cells
    assert "Limits while grading" in texts[0]
    for text in texts:
        assert not re.search("BEGIN (SOLUTION|HIDDEN)|[Rr]ubric\\.", text)
        assert not [line for line in secret if line in text]
    assert coursework.seed_of(course, None) not in "".join(texts)


@pytest.mark.parametrize("name", SETS)
def test_instructors_get_solutions_checks_and_rubric(course, name):
    page = (course / "instructor" / f"{name}.html").read_text()
    notebook = nbformat.read(course / "instructor" / f"{name}.ipynb", 4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert all(
        x in text for x in hidden_lines(course, name) | solution_lines(course, name)
    )
    assert "Rubric." in page
    outputs = [o for c in notebook.cells for o in c.get("outputs", [])]
    assert not [o for o in outputs if o.output_type == "error"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package as ``pip install`` would leave it, away from this clone."""
    target = tmp_path_factory.mktemp("installed")
    wheel = "from flit_core import buildapi; print(buildapi.build_wheel(%r))"
    command = [sys.executable, "-c", wheel % str(target)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(target / made.stdout.strip()) as file:
        assert not [n for n in file.namelist() if n.startswith("coursework")]
        file.extractall(target / "site")
    return target / "site"


def test_student_opens_the_archive_in_an_empty_folder(course, installed, tmp_path):
    with zipfile.ZipFile(course / "students" / f"{SETS[0]}.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / SETS[0]
    notebook = nbformat.read(folder / f"{SETS[0]}.ipynb", 4)
    probe = nbformat.v4.new_code_cell("import lib; print(lib.__file__)")
    notebook.cells.append(probe)
    client = NotebookClient(
        notebook, kernel_name="python3", allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    client.execute(env=os.environ | {"PYTHONPATH": str(installed)})
    assert str(installed) in probe.outputs[0].text
    errors = {o.evalue for c in notebook.cells for o in c.get("outputs", [])
              if o.output_type == "error"}  # fmt: skip
    assert errors and all("is not written yet" in text for text in errors)


# Refusals.


def test_a_released_set_with_submissions_is_not_changed(course, rows):
    with pytest.raises(PipelineError, match=r"submissions in .* COURSE=another"):
        coursework.prepare(course, "another seed")
    assert coursework.seed_of(course, None) != "another seed"


def test_a_released_course_is_not_changed_in_silence(tmp_path):
    (tmp_path / "source" / SPOILED).mkdir(parents=True)
    (tmp_path / "source" / SPOILED / f"{SPOILED}.ipynb").write_text("{}")
    (tmp_path / coursework.SECRET).write_text("one seed\n")
    with pytest.raises(PipelineError, match="was released in .* say REPLACE=yes"):
        coursework.prepare(tmp_path, "another seed")


def test_seeds(tmp_path):
    one, two = (coursework.seed_of(tmp_path, None) for _ in range(2))
    assert len(one) == 32 and one != two
    with pytest.raises(PipelineError, match="seed must not be empty"):
        coursework.seed_of(tmp_path, "  ")


def test_a_folder_that_is_no_course(tmp_path):
    with pytest.raises(PipelineError, match="is not a course; make one"):
        grading.grade(tmp_path, SPOILED)


def test_an_unknown_set(course):
    with pytest.raises(PipelineError, match="no set 'problems-9'; it has problems-1"):
        grading.grade(course, "problems-9")


def test_an_unknown_tag():
    cell = nbformat.v4.new_code_cell("", metadata={"tags": ["chekc:a:2"]})
    with pytest.raises(PipelineError, match="unknown tag 'chekc:a:2'"):
        sets.tag(cell)
    cell.metadata.tags = ["answer:a", "term"]
    with pytest.raises(PipelineError, match="several tags: answer:a"):
        sets.tag(cell)


def test_marks_go_into_the_table_of_a_learning_system(course, tmp_path, rows):
    marks = gradebook.totals(course, SPOILED, rows[SPOILED])
    table = tmp_path / "canvas.csv"
    table.write_text(
        "Student,SIS Login ID,Set 3 (17)\nPoints Possible,,50\nA,reference,\n\nB,who,\n"
    )
    left = gradebook.fill(table, "SIS Login ID", "Set 3 (17)", marks)
    lines = table.with_name("canvas-filled.csv").read_text().splitlines()
    assert lines[1:] == ["Points Possible,,50", "A,reference,40.0", "", "B,who,"]
    assert "untouched" in left and "reference" not in left
    with pytest.raises(PipelineError, match="no column 'Set 4'; it has Student"):
        gradebook.fill(table, "SIS Login ID", "Set 4", marks)


def test_reports_are_lines_of_json(course, rows):
    text = (course / "reports" / f"{SPOILED}.jsonl").read_text()
    first, *_ = text.splitlines()
    assert json.loads(first) == rows[SPOILED][json.loads(first)["student"]]
    assert rows[SPOILED]["reference"]["memory_mb"] < 1000


@pytest.mark.parametrize("name", SETS)
def test_limits_are_four_times_the_reference_and_stated(course, name):
    limits = json.loads((course / "limits.json").read_text())[name]
    assert limits["floor"] == coursework.FLOOR and set(limits["passed"]) == set(
        checks(name)
    )
    assert all(seconds > coursework.FLOOR for seconds in limits["checks"].values())
    cells = nbformat.read(course / "release" / name / f"{name}.ipynb", 4).cells
    (said,) = [c.source for c in cells if "**Limits while grading.**" in c.source]
    assert f"may use {coursework.FLOOR} seconds of processor time" in said
    for check, seconds in limits["checks"].items():
        assert f"`{check}` {seconds} s" in said
