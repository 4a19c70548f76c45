"""Pages for students: names, reasons, mathematics without a network, and no secret."""

import os
import re

import nbformat

from conftest import SEED, SETS, checks
from coursework import course as making
from coursework import plan, submissions
from coursework.feedback import feedback

NAME = SETS[-1]


def page_of(course, student):
    return (course / "feedback" / student / NAME / f"{NAME}.html").read_text()


def test_it_says_what_failed_and_hides_the_checks(course, rows):
    feedback(course, NAME, {"wrong-0": rows[NAME]["wrong-0"]})
    page = page_of(course, "wrong-0")
    assert "CheckFailed" in page and "HIDDEN TESTS" not in page
    for line in plan.hidden_lines(submissions.read(course, "source", NAME)):
        assert line not in page
    for check in checks(NAME):
        assert f">{check.replace('-', ' ')}</a> (Score" in page
    assert ">Test cell<" not in page


def test_it_needs_no_network(course, rows):
    feedback(course, NAME, {"reference": rows[NAME]["reference"]})
    instructor = (course / "instructor" / f"{NAME}.html").read_text()
    for page in (page_of(course, "reference"), instructor):
        assert len(page) > 2_000_000 and "MathJax" in page
        assert not re.search(r"<(script|link|img)\b[^>]+(src|href)=.https?:", page)
        assert (
            "cdnjs"
            not in page.replace("<script>window.MathJax", "").split("</head>")[1]
        )


def test_an_open_problem_is_not_yet_graded_until_it_is(course, rows):
    from nbgrader.api import Gradebook

    row = {"reference": rows[NAME]["reference"]}
    feedback(course, NAME, row)
    page = page_of(course, "reference")
    assert "40 / 40 so far; 10 points not yet graded" in page
    assert "(not yet graded, 10 points)" in page
    config = making.settings(course)
    with Gradebook(config.CourseDirectory.db_url) as book:
        (notebook,) = book.find_submission(NAME, "reference").notebooks
        (grade,) = [g for g in notebook.grades if g.cell.cell_type != "code"]
        grade.manual_score, grade.needs_manual_grade = 7, False
        book.db.commit()
    feedback(course, NAME, row)
    page = page_of(course, "reference")
    assert "(Score: 47.0 / 50.0)" in page and "not yet graded" not in page


def test_a_page_with_the_seed_is_held_back(course, rows):
    """Whatever way it may have come into a notebook: here the grader was at fault."""
    path = course / "autograded" / "untouched" / NAME / f"{NAME}.ipynb"
    notebook = nbformat.read(path, 4)
    code = next(c for c in notebook.cells if c.cell_type == "code")
    code.outputs = [nbformat.v4.new_output("stream", text=f"the seed is {SEED}")]
    os.chmod(path, 0o600)
    path.write_text(nbformat.writes(notebook))
    notes = feedback(course, NAME, {"untouched": rows[NAME]["untouched"]})
    assert SEED not in page_of(course, "untouched")
    assert notes and "was held back" in notes[0]
