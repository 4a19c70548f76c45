"""One course of a term, and everything that is handed in to it, graded once."""

import os
from types import SimpleNamespace

import pytest

os.environ["ATTENTION_LIMIT_CELL_SECONDS"] = "10"  # an infinite loop waits for it

from tools import coursework, grading, submissions  # noqa: E402

SEED, OTHER = "a term of the tests", "last term"
SETS = list(coursework.sets())
SPOILED = "problems-3"  # the set of which all kinds of trouble are handed in
JOBS = min(2, os.cpu_count() or 1)


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A course as ``make coursework`` makes it."""
    folder = tmp_path_factory.mktemp("course")
    coursework.main(["--course", str(folder), "--seed", SEED])
    return folder


@pytest.fixture(scope="session")
def material(course):
    """By set: the notebook given out, the reference answers, the wrong ones."""
    return {
        name: SimpleNamespace(
            given=submissions.read(course, "release", name),
            solved=submissions.solutions(submissions.read(course, "source", name)),
            wrong=submissions.mistakes(name),
        )
        for name in SETS
    }


def hand_in(course, name, set_):
    """The submissions that every set gets."""
    answers = {
        "reference": set_.solved,
        "untouched": {},
        "last-term": set_.solved | submissions.numbers_of(name, OTHER, set_.solved),
    }
    for number in range(2):
        wrong = {k: v[number].code for k, v in set_.wrong.items()}
        answers[f"wrong-{number}"] = wrong
    for student, chosen in answers.items():
        submissions.put(course, name, student, submissions.answered(set_.given, chosen))


def hand_in_trouble(course, set_):
    """The submissions that something happened to."""
    for kind, trouble in submissions.TROUBLES.items():
        notebook = submissions.answered(set_.given, set_.solved)
        trouble.spoil(notebook, next(iter(set_.solved)))
        submissions.put(course, SPOILED, kind, notebook)
    submissions.put(course, SPOILED, "half-a-file", '{"cells": [')
    folder = course / "submitted" / "missing-file" / SPOILED
    folder.mkdir(parents=True)
    (folder / "essay.txt").write_text("I did it on paper.")


@pytest.fixture(scope="session")
def rows(course, material):
    """The report of each set."""
    for name in SETS:
        hand_in(course, name, material[name])
    hand_in_trouble(course, material[SPOILED])
    return {name: grading.grade(course, name, JOBS) for name in SETS}
