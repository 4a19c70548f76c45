"""nbgrader's own autograde gives each simulated submission the marks it deserves."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile

import nbformat
import pytest
from nbclient import NotebookClient

from conftest import OTHER, SETS, SPOILED
from tools import coursework, grading, submissions
from tools.command import ROOT, PipelineError
from tools.texts import read_text


def checks(name):
    """Points of the automatic checks of a set."""
    text = read_text(coursework.sets()[name])
    by_hand = {c.metadata.tags[0].split(":")[1] for c in text.cells
               if coursework.tag(c).startswith("open")}  # fmt: skip
    return {k: v for k, v in coursework.points(text).items() if k not in by_hand}


@pytest.mark.parametrize("name", SETS)
def test_set_is_as_promised(name):
    text = read_text(coursework.sets()[name])
    prose = "\n".join(c.source for c in text.cells if c.cell_type == "markdown")
    problems = re.findall(r"^## (\d)\. .*\((\d+) points", prose, flags=re.M)
    assert 5 <= len(problems) <= 8
    worth = coursework.points(text)
    assert sum(int(p) for _, p in problems) == sum(worth.values()) == 50
    opening = next(c.source for c in text.cells if c.source.startswith("# "))
    for word in ("**Goals.**", "**Before you start**", "**Time**", "**Points**"):
        assert word in opening
    assert "**Off limits**" in opening
    kinds = [coursework.tag(c).split(":")[0] for c in text.cells]
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
    expected = {check for found in wrong.values() for check in found[number].loses}
    row = rows[name][f"wrong-{number}"]
    assert set(row["lost"]) == expected
    kept = sum(v for k, v in checks(name).items() if k not in expected)
    assert row["points"] == kept


@pytest.mark.parametrize("name", SETS)
def test_numbers_of_another_term_fail(rows, material, name):
    row = rows[name]["last-term"]
    stale = submissions.numbers_of(name, OTHER, material[name].solved)
    assert stale and row["points"] < row["of"]
    assert len(row["lost"]) >= len(stale)


@pytest.mark.parametrize("kind", submissions.TROUBLES)
def test_trouble_has_a_defined_mark_and_is_reported(rows, material, kind):
    row, trouble = rows[SPOILED][kind], submissions.TROUBLES[kind]
    (wrong, *_) = next(iter(material[SPOILED].wrong.values()))
    everything = checks(SPOILED)
    lost = {"none": set(), "all": set(everything), "its": set(wrong.loses)}
    assert set(row["lost"]) == lost[trouble.loses]
    points = sum(v for k, v in everything.items() if k not in row["lost"])
    assert row["points"] == points
    assert any(trouble.note in note for note in row["notes"]), row["notes"]


@pytest.mark.parametrize(
    ("student", "note"),
    [("half-a-file", "is not a notebook"), ("missing-file", "essay.txt")],
)
def test_what_cannot_be_graded_gets_zero_and_a_reason(rows, student, note):
    row = rows[SPOILED][student]
    assert row["points"] == 0 and row["of"] == rows[SPOILED]["reference"]["of"]
    assert note in row["notes"][0]


def test_names_that_a_student_took_do_not_pass_checks(course, material):
    set_ = material[SPOILED]
    answer, (wrong, *_) = next(iter(set_.wrong.items()))
    fooled = "agree = holds = lambda *args, **kwargs: None\n" + wrong.code
    notebook = submissions.answered(set_.given, set_.solved | {answer: fooled})
    submissions.put(course, SPOILED, "shadow", notebook)
    row = grading.grade(course, SPOILED)["shadow"]
    assert set(row["lost"]) == set(wrong.loses)


def test_a_warning_costs_nothing(course, material):
    set_ = material[SPOILED]
    answer, code = next(iter(set_.solved.items()))
    loud = code.replace("    return", "    print('!', file=sys.stderr)\n    return")
    notebook = submissions.answered(set_.given, set_.solved)
    notebook = submissions.answered(notebook, {answer: f"import sys\n{loud}"})
    submissions.put(course, SPOILED, "loud", notebook)
    row = grading.grade(course, SPOILED)["loud"]
    assert row["points"] == row["of"]


def test_submission_that_never_ends_is_stopped(course, material):
    set_ = material[SPOILED]
    answer = next(iter(set_.solved))
    endless = """
import time
while True:
    try:
        time.sleep(1000)
    except BaseException:
        pass
"""
    notebook = submissions.answered(set_.given, {answer: endless})
    submissions.put(course, SPOILED, "endless", notebook)
    row = grading.grade(course, SPOILED, wall=15)["endless"]
    assert row["points"] == 0 and "stopped after 15 seconds" in row["notes"][0]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True)
    assert not [x for x in listed.stdout.splitlines() if "autograded/endless" in x]


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
    for _ in range(1200):
        if "crowd-0" in grading.read_report(report) or run.poll() is not None:
            break
        time.sleep(0.1)
    assert run.poll() is None
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    before = grading.read_report(report)
    with report.open("a") as file:
        file.write('{"student": "crowd-1", "poi')  # a line that was cut short
    rows = grading.grade(course, SPOILED)
    assert "crowd-0" in before and rows["crowd-0"] == before["crowd-0"]
    assert {rows[s]["points"] for s in names} == {rows["reference"]["points"]}


def test_feedback_says_what_failed_and_hides_the_checks(course, rows):
    name = SETS[-1]
    grading.feedback(course, name, {"wrong-0": rows[name]["wrong-0"]})
    page = (course / "feedback" / "wrong-0" / name / f"{name}.html").read_text()
    assert "CheckFailed" in page and "HIDDEN TESTS" not in page
    for line in hidden_lines(name):
        assert line not in page


def lines_between(name, begin, end):
    """Lines of the solutions, or of the hidden checks, long enough to be told."""
    source = coursework.sets()[name].read_text("utf-8")
    parts = re.findall(rf"{begin}.*?\n(.*?)\n[^\n]*{end}", source, flags=re.S)
    lines = {line.strip() for part in parts for line in part.splitlines()}
    seen = re.sub(rf"{begin}.*?{end}", "", source, flags=re.S)
    return {x for x in lines if len(x) > 25 and x not in seen}


def hidden_lines(name):
    return lines_between(name, "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


def solution_lines(name):
    return lines_between(name, "### BEGIN SOLUTION", "### END SOLUTION")


@pytest.mark.parametrize("name", SETS)
def test_students_get_no_solution_and_no_hidden_check(course, name):
    secret = hidden_lines(name) | solution_lines(name)
    assert len(secret) > 10
    given = [course / "release" / name / f"{name}.ipynb"]
    with zipfile.ZipFile(course / "students" / f"{name}.zip") as archive:
        texts = [archive.read(member).decode() for member in archive.namelist()]
    cells = [c.source for c in nbformat.reads(texts[0], 4).cells]
    texts += [path.read_text() for path in given] + cells
    for text in texts:
        assert not re.search("BEGIN (SOLUTION|HIDDEN)|[Rr]ubric\\.", text)
        assert not [line for line in secret if line in text]
    assert coursework.seed_of(course, None) not in "".join(texts)


@pytest.mark.parametrize("name", SETS)
def test_instructors_get_solutions_checks_and_rubric(course, name):
    page = (course / "instructor" / f"{name}.html").read_text()
    notebook = nbformat.read(course / "instructor" / f"{name}.ipynb", 4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert all(x in text for x in hidden_lines(name) | solution_lines(name))
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
        coursework.tag(cell)
    cell.metadata.tags = ["answer:a", "term"]
    with pytest.raises(PipelineError, match="several tags: answer:a"):
        coursework.tag(cell)


def test_marks_go_into_the_table_of_a_learning_system(course, tmp_path, rows):
    marks = grading.total(course, SPOILED, rows[SPOILED])
    table = tmp_path / "canvas.csv"
    table.write_text(
        "Student,SIS Login ID,Set 3 (17)\nPoints Possible,,50\nA,reference,\n\nB,who,\n"
    )
    left = grading.fill(table, "SIS Login ID", "Set 3 (17)", marks)
    lines = table.with_name("canvas-filled.csv").read_text().splitlines()
    assert lines[1:] == ["Points Possible,,50", "A,reference,40.0", "", "B,who,"]
    assert "untouched" in left and "reference" not in left
    with pytest.raises(PipelineError, match="no column 'Set 4'; it has Student"):
        grading.fill(table, "SIS Login ID", "Set 4", marks)


def test_reports_are_lines_of_json(course, rows):
    text = (course / "reports" / f"{SPOILED}.jsonl").read_text()
    first, *_ = text.splitlines()
    assert json.loads(first) == rows[SPOILED][json.loads(first)["student"]]
    assert rows[SPOILED]["reference"]["memory_mb"] < 1000
