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
    config.addinivalue_line("markers", "slow: `pytest -m slow`, in the weekly run")


def pytest_collection_modifyitems(config, items):
    """Leave out what only a command that names markers asks for."""
    if not config.option.markexpr:
        items[:] = [each for each in items if not each.get_closest_marker("slow")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One worker has the course, which is made and graded once; another the rest."""
    from xdist.scheduler import LoadScopeScheduling

    class ByCourse(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            apart = path.endswith(("test_sets.py", "test_checks.py"))
            return path if apart else "course"

    return ByCourse(config, log)


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
