"""Checks of problem sets: what they let pass, what they say, what they never say."""

import copy
import json
import os
import re

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from coursework import bench
from coursework import sets as course
from coursework.tricks import TRICKS
from lib import attention, coursework, sinkhorn
from lib.coursework import Answer, CheckFailed, agree, holds, lean, term_generator
from tools.command import ROOT
from tools.texts import SETS, texts


def test_a_term_draws_its_own_numbers(monkeypatch):
    monkeypatch.delenv(coursework.TERM, raising=False)
    public = term_generator("a").random(3)
    assert (term_generator("a").random(3) == public).all()
    assert not (term_generator("b").random(3) == public).any()
    monkeypatch.setenv(coursework.TERM, "public")
    assert (term_generator("a").random(3) == public).all()
    monkeypatch.setenv(coursework.TERM, "another")
    assert not (term_generator("a").random(3) == public).any()


def double(x):
    return 2 * x


def unwritten(x):
    raise NotImplementedError


def dividing(x):
    return x / 0


def greedy(x):
    x *= 2
    return x


def looking_up(x):
    return attention.softmax(x)


def hiding(x):
    try:
        return looking_up(x)
    except BaseException:
        return x


def by_a_detour(x):
    return sinkhorn.bridge_step(x, 1.0)


def test_answers_return_what_the_function_does():
    assert Answer(double, ("lib.attention",))(3) == 6


@pytest.mark.parametrize(
    ("function", "argument", "said"),
    [
        (unwritten, 1, "unwritten is not written yet"),
        (dividing, 1, r"dividing raised ZeroDivisionError: .*, at `return x / 0`"),
        (greedy, np.ones(2), "greedy changes its arguments"),
        (greedy, [1, 2], "greedy changes its arguments"),
        (
            looking_up,
            np.ones(2),
            r"calls what is off limits here: lib.attention.softmax",
        ),
        (hiding, np.ones(2), "calls what is off limits here: lib.attention.softmax"),
        (by_a_detour, np.ones((3, 1)), r"off limits here: lib.*sinkhorn"),
    ],
)
def test_answers_say_what_is_wrong(function, argument, said):
    with pytest.raises(CheckFailed, match=said):
        Answer(function, ("lib.attention", "lib.sinkhorn"))(argument)


def test_generators_may_advance_and_nans_may_stay():
    assert Answer(lambda rng: rng.random())(np.random.default_rng(1)) > 0
    assert np.isnan(Answer(double)(np.array([np.nan]))).all()


@pytest.mark.parametrize("value", [3, None, np.ones(2), "text"])
def test_only_functions_are_answers(value):
    with pytest.raises(CheckFailed, match="a function was expected, not the"):
        Answer(value)


def test_off_limits_is_a_list():
    with pytest.raises(ValueError, match="off_limits must list modules, got 'ot'"):
        Answer(double, "ot")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.1, r"the price is off by 0.1 of its size \(on Mondays\)"),
        (np.ones(2), r"the price should have the shape \(\), not \(2,\)"),
        (np.nan, "the price should be finite"),
        (np.inf, "the price should be finite"),
        (None, "the price should be real numbers, not NoneType"),
        ("1.0", "the price should be real numbers, not str"),
        (1 + 0j, "the price should be real numbers, not complex"),
        ([[1], [1, 2]], "the price should be a rectangular array"),
    ],
)
def test_agree_tells_what_is_wrong_and_not_what_is_right(value, said):
    with pytest.raises(CheckFailed, match=said) as caught:
        agree("the price", value, 1.0, rtol=1e-3, on="Mondays")
    assert not re.search(r"\b1\.0\b", str(caught.value))


def test_agree_takes_the_worst_entry(capsys):
    agree("it", [1.0, 2.0005], [1.0, 2.0], rtol=1e-3, on="two numbers")
    assert capsys.readouterr().out == "passed: it (on two numbers)\n"
    with pytest.raises(CheckFailed):
        agree("it", [1.0, 2.1], [1.0, 2.0], rtol=1e-3, on="two numbers")
    with pytest.raises(CheckFailed):
        agree("it", [1e-9], [0.0], rtol=1e-3, atol=1e-10, on="zero")
    for tolerance in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="rtol . atol must be positive"):
            agree("it", 1.0, 1.0, rtol=tolerance, on="nothing")


def test_holds(capsys):
    holds("it rises", np.array([True, True]), on="a slope")
    assert capsys.readouterr().out == "passed: it rises (on a slope)\n"
    for wrong in (False, np.array([True, False])):
        with pytest.raises(CheckFailed, match=r"true that it rises \(on a slope\)"):
            holds("it rises", wrong, on="a slope")


def test_lean_measures_memory():
    assert lean(Answer(np.zeros), 10, megabytes=1, on="ten").size == 10
    with pytest.raises(CheckFailed, match=r"at most 1 MB \(on a million\)"):
        lean(Answer(np.zeros), 1_000_000, megabytes=1, on="a million")


def test_a_failed_check_shows_one_line(capsys):
    shell = InteractiveShell()
    code = "from lib.coursework import holds\nholds('it is so', 0, on='it')"
    assert not shell.run_cell(code).success
    said = capsys.readouterr().out.strip()
    assert said == "CheckFailed: it should be true that it is so (on it)"


# The texts of the sets, and what becomes of their tags.


def cells(*tags, source="x = 1"):
    made = [nbformat.v4.new_code_cell(source, metadata={"tags": [t]}) for t in tags]
    return nbformat.v4.new_notebook(cells=made)


def test_tags_become_marks_of_nbgrader():
    marked = course.mark(cells("locked:a", "answer:b", "check:c:3")).cells
    marks = [cell.metadata.nbgrader for cell in marked]
    assert [m.grade_id for m in marks] == ["a", "b", "c"]
    assert [m.grade for m in marks] == [False, False, True] and marks[2].points == 3
    assert [m.solution for m in marks] == [False, True, False]
    assert [m.locked for m in marks] == [True, False, True]


def test_numbers_of_the_term_are_written_into_answers_and_checks():
    made = cells("term", "answer:a", source=DRAWN)
    made.cells[1].source = "def f(x):\n    return beta * x.beta + -gamma"
    made.cells[0].source += "gamma = -1.5\n"
    with course.term("one"):
        one = course.mark(copy.deepcopy(made))
        assert course.numbers(DRAWN) == course.numbers(DRAWN)
    with course.term("two"):
        assert course.mark(copy.deepcopy(made)).cells != one.cells
    told, answer = (cell.source for cell in one.cells)
    beta = course_value(told)
    assert answer == f"def f(x):\n    return {beta} * x.beta + -(-1.5)"
    assert all(line.startswith("#") for line in told.splitlines())


def course_value(told):
    return re.search(r"beta = (\S+)", told)[1]


def test_a_term_cell_assigns_numbers_only():
    source = "from lib.coursework import term_generator\ndraw = term_generator('x')\n"
    with pytest.raises(course.PipelineError, match="draw is a Generator"):
        course.numbers(source)


DRAWN = """from lib.coursework import term_generator
beta = round(term_generator("3/given").uniform(1, 9), 3)
"""


def test_a_wrong_tag_is_named():
    with pytest.raises(course.PipelineError, match="unknown tag 'chekc:a:2'"):
        course.mark(cells("chekc:a:2"))


@pytest.mark.parametrize("path", texts(ROOT, SETS), ids=lambda path: path.stem)
def test_each_check_of_a_set_printed_that_it_passed(path):
    notebook = nbformat.read(path.with_suffix(".ipynb"), 4)
    checks = [c for c in notebook.cells if course.tag(c).startswith("check:")]
    names = [course.tag(cell) for cell in checks]
    assert len(checks) >= 8 and len(set(names)) == len(names)
    for cell in checks:
        assert any("passed: " in output.get("text", "") for output in cell.outputs)


def test_twenty_terms_were_tried():
    result = json.loads(bench.RESULTS.read_text())
    assert set(result["terms"]) == set(course.sets())
    for name, each in result["terms"].items():
        assert each["count"] >= 20 and each["failed"] == []
        again = "run make bench-coursework SET=" + name
        assert each["code"] == bench.digest(name), again


def test_what_is_recorded_of_a_class_came_out_right():
    recorded = json.loads(bench.RESULTS.read_text())["class"]
    assert (
        recorded["lost"]
        == recorded["wrong_marks"]
        == recorded["other_marks_when_busy"]
        == []
    )
    assert recorded["isolation"] == "bubblewrap"


@pytest.mark.slow
def test_a_class_of_200_was_tried_with_every_trick():
    recorded = json.loads(bench.RESULTS.read_text())["class"]
    assert recorded["students"] >= 200 and recorded["interruptions"] >= 1
    assert set(recorded["tricks"]) == set(TRICKS)


def test_the_site_has_no_problem_set():
    """Solutions are in the repository, but nothing that readers load has them."""
    html = ROOT / "_build" / "html"
    if not html.exists():
        assert not os.environ.get("CI"), "make site"
        pytest.skip("the site is not built")
    files = [p for p in html.rglob("*") if p.suffix in (".html", ".ipynb", ".js")]
    assert files
    for path in files:
        assert "BEGIN HIDDEN TESTS" not in path.read_text("utf-8")
    assert not [p for p in html.rglob("problems-*")]
