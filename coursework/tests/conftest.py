"""One course of a term, and everything that is handed in to it, graded once."""

import os
from types import SimpleNamespace

import pytest

from coursework import course as making
from coursework import grading, session, sets, submissions
from coursework.tricks import TRICKS
from tools.texts import read_text

SEED, OTHER = "a term of the tests", "last term"
SETS = list(sets.sets())
SPOILED = "problems-3"  # the set of which all kinds of trouble are handed in
JOBS = min(2, os.cpu_count() or 1)
# Tricks that go all the way through nbgrader; the others are tried on a smaller set.
HANDED_IN = (
    "patched-checks", "forged-answers", "reads-course", "kills-all", "runaway-output",
    "one-big-array", "process-death", "deleted-check",
)  # fmt: skip


def pytest_configure(config):
    config.addinivalue_line("markers", "xdist_group(name): tests of one worker")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """One worker has the course, which is graded once; the others share the files."""
    for item in items:
        group = "course" if "course" in item.fixturenames else item.path.stem
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session", autouse=True)
def _impatient():
    """A process that does nothing is stopped soon."""
    before, session.IDLE = session.IDLE, 4.0
    yield
    session.IDLE = before


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A course as ``make coursework`` makes it, in a folder with a blank."""
    folder = tmp_path_factory.mktemp("a course")
    making.main(["--course", str(folder), "--seed", SEED])
    return folder


@pytest.fixture(scope="session")
def material(course):
    """By set: the notebook given out, the reference answers, the wrong ones."""
    return {
        name: SimpleNamespace(
            given=submissions.read(course, "release", name),
            solved=submissions.solutions(submissions.read(course, "source", name)),
            wrong=submissions.mistakes(name, SEED),
        )
        for name in SETS
    }


def checks(name):
    """Points of the automatic checks of a set."""
    text = read_text(sets.sets()[name])
    by_hand = {c.metadata.tags[0].split(":")[1] for c in text.cells
               if sets.tag(c).startswith("open")}  # fmt: skip
    return {k: v for k, v in sets.points(text).items() if k not in by_hand}


def hand_in(course, name, set_):
    """The submissions that every set gets."""
    answers = {
        "reference": set_.solved,
        "untouched": {},
        "last-term": submissions.solutions_of(name, OTHER),
    }
    for number in range(2):
        wrong = {k: v[number].code for k, v in set_.wrong.items()}
        answers[f"wrong-{number}"] = wrong
    for student, chosen in answers.items():
        submissions.put(course, name, student, submissions.answered(set_.given, chosen))


def spoiled(set_, kind):
    """The notebook of a trick."""
    first = next(iter(set_.solved))
    answers = dict(set_.solved)
    if TRICKS[kind].wrong:
        answers[first] = set_.wrong[first][0].code
    notebook = submissions.answered(set_.given, answers)
    TRICKS[kind].spoil(notebook, first)
    return notebook


@pytest.fixture(scope="session")
def rows(course, material):
    """The report of each set."""
    for name in SETS:
        hand_in(course, name, material[name])
    for kind in HANDED_IN:
        submissions.put(course, SPOILED, kind, spoiled(material[SPOILED], kind))
    return {name: grading.grade(course, name, JOBS) for name in SETS}
