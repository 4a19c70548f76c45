"""Questions and checks of the sets, tried by running their cells in one process.

The grader is not needed for this: a term is marked, answers are put in, checks run.
"""

import contextlib
import copy
import functools
import io
import warnings

import pytest

from coursework.sets import inline, mark, numbers, points, sets, tag, term
from coursework.submissions import mistakes
from tools.texts import read_text

SETS = list(sets())
TERMS = ["spring", "autumn"]


@functools.cache
def text_of(name):
    """The set as a notebook, read once."""
    return read_text(sets()[name])


@functools.cache
def marked_of(name, seed):
    """The set as instructors have it in a term."""
    with term(seed):
        return mark(copy.deepcopy(text_of(name)))


def tagged(name, kind):
    """Code cells of a set by the name in their tag."""
    cells = [c for c in text_of(name).cells if c.cell_type == "code"]
    return {tag(c).split(":")[1]: c for c in cells if tag(c).startswith(kind)}


def worth(name):
    """Points of the automatic checks."""
    every = points(text_of(name))
    return {check: every[check] for check in tagged(name, "check")}


def solutions(name, seed):
    """The reference answers of a term."""
    cells = marked_of(name, seed).cells
    given = {c.metadata.get("nbgrader", {}).get("grade_id"): c.source for c in cells}
    return {answer: given[answer] for answer in tagged(name, "answer")}


def written(name, seed, code):
    """Code that reads the numbers of a term by their names, with the numbers in it."""
    given = {}
    with term(seed):
        for cell in text_of(name).cells:
            if tag(cell) == "term":
                given |= numbers(cell.source)
    return inline(code, given)


def lost(name, seed, answers, checks=None):
    """The checks that fail in a term if these answers take the references' place."""
    names, failed = {}, set()
    with term(seed), warnings.catch_warnings(action="ignore"):
        for cell in marked_of(name, seed).cells:
            info = cell.metadata.get("nbgrader", {})
            grade_id = info.get("grade_id")
            if cell.cell_type != "code":
                continue
            if info.get("grade") and checks is not None and grade_id not in checks:
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(answers.get(grade_id, cell.source), names)
            except Exception:
                if not info.get("grade"):
                    raise
                failed.add(grade_id)
    return failed


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", TERMS)
def test_the_reference_passes_in_every_term(name, seed):
    assert lost(name, seed, {}) == set()


@pytest.mark.parametrize("name", SETS)
def test_half_of_the_points_change_with_the_term(name):
    one, two = TERMS
    failed = lost(name, two, solutions(name, one))
    assert sum(worth(name)[check] for check in failed) >= 20


@pytest.mark.parametrize("name", SETS)
def test_published_solutions_do_not_pass_as_they_are(name):
    published = {k: cell.source for k, cell in tagged(name, "answer").items()}
    failed = lost(name, TERMS[0], published)
    assert sum(worth(name)[check] for check in failed) >= 20


@pytest.mark.parametrize("name", SETS)
def test_no_answer_names_a_number_of_the_term(name):
    drawn = {
        number for cell in text_of(name).cells if tag(cell) == "term"
        for number in numbers(cell.source)
    }  # fmt: skip
    told = [c for c in marked_of(name, TERMS[0]).cells if c.cell_type == "code"]
    names = {}
    with term(TERMS[0]), contextlib.redirect_stdout(io.StringIO()):
        for cell in told:
            if not cell.metadata.get("nbgrader", {}).get("grade"):
                exec(cell.source, names)
    assert drawn and not drawn & names.keys()


@pytest.mark.parametrize("name", SETS)
def test_every_check_is_lost_by_two_mistakes(name):
    losing = [m for each in mistakes(name).values() for m in each]
    few = {c for c in worth(name) if sum(c in m.loses for m in losing) < 2}
    assert not few
    assert all(m.loses for m in losing)
    assert set(mistakes(name)) == set(tagged(name, "answer"))


@pytest.mark.parametrize(
    ("name", "answer"), [(n, a) for n in SETS for a in mistakes(n)]
)
def test_mistakes_lose_what_they_say(name, answer):
    cells = [tag(c).split(":")[:2] for c in text_of(name).cells]
    after = cells[cells.index(["answer", answer]) + 1 :]
    own = []
    for kind, *rest in after:
        if kind == "answer":
            break
        own += rest if kind == "check" else []
    for why, loses, code in mistakes(name)[answer]:
        given = {answer: written(name, TERMS[0], code)}
        assert lost(name, TERMS[0], given, {*own, *loses}) == set(loses), why
