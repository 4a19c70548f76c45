"""Tricks of notebooks on a grader: each has its marks, and is noticed."""

import os
import re
import subprocess
import sys

import nbformat
import pytest
import trial
from waits import until

from conftest import SEED, SPOILED, checks
from coursework import bench, grading, isolation, plan, submissions
from coursework.plan import first_checks
from coursework.tricks import TRICKS
from tools.command import ROOT, PipelineError


@pytest.fixture(scope="module")
def trials():
    """Outcome of each trick."""
    return trial.judge_all({kind: trial.spoiled(kind) for kind in TRICKS})


@pytest.mark.parametrize("kind", TRICKS)
def test_a_trick_loses_what_it_should_and_is_noticed(trials, kind):
    graded, trick = trials[kind], TRICKS[kind]
    lost = {"none": set(), "its": trial.LOSES, "first": trial.LOSES}[trick.loses]
    assert set(graded.lost) == lost, graded
    if trick.note:
        assert any(trick.note in note for note in graded.notes), graded.notes
    elif trick.loses == "none":
        assert graded.notes == []


def test_answers_that_are_right_pass_and_wrong_ones_do_not():
    assert trial.judge(trial.handed_in())[:2] == ({}, [])
    assert set(trial.judge(trial.handed_in(factor=trial.WRONG)).lost) == trial.LOSES
    assert set(trial.judge(trial.given()).lost) == trial.LOSES | {"barycentric-value"}


def test_nbgrader_keeps_the_same_marks(rows, material):
    """Tricks that were handed in to a set of the book."""
    set_ = material[SPOILED]
    everything, first = checks(SPOILED), first_checks(set_.given)
    (wrong, *_) = next(iter(set_.wrong.values()))
    due = {"none": set(), "its": set(wrong.loses), "first": set(first)}
    tried = rows[SPOILED].keys() & TRICKS.keys()
    assert len(tried) >= 6
    for kind in tried:
        row = rows[SPOILED][kind]
        assert set(row["lost"]) == due[TRICKS[kind].loses], (kind, row)
        kept = sum(v for k, v in everything.items() if k not in row["lost"])
        assert row["points"] == kept and row["isolation"] == "bubblewrap"


def workers():
    """Command lines of the student's processes that this clone has started."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True)
    mine = [x for x in listed.stdout.splitlines() if "sandbox.worker" in x]
    return [x for x in mine if str(ROOT) in x]


def test_no_trick_left_anything_behind(trials):
    assert not os.path.exists("/tmp/pwned-by-ctypes")
    assert until(lambda: not workers()), workers()


@pytest.mark.parametrize("kind", ["reads-seed", "reads-proc", "reads-course"])
def test_no_output_has_a_secret(trials, kind):
    text = trials[kind].text
    assert "passed: " in text and SEED not in text
    assert not [line for line in plan.hidden_lines(trial.source()) if line in text]


SPY = """
seen = []

def factor(*args):
    seen.append(args)
    if len(seen) > 1:
        raise type("E" + "_".join(map(repr, args)), (Exception,), {})(repr(args))
    return 1 - args[0] * (1 + args[1])
"""


def test_hidden_inputs_do_not_get_out():
    """Neither by what later cells print, nor by the name or text of an exception."""
    notebook = trial.handed_in(factor=SPY)
    notebook.cells.append(nbformat.v4.new_code_cell("print('seen', seen)"))
    verdict = trial.judge(notebook)
    # Another process meets the hidden inputs, and the first call passes in either.
    assert "seen [(0.5, 0.0)]" in verdict.text
    for said in verdict.lost.values():
        assert said.startswith("factor raised an exception, at `raise type(")
        assert not re.search(r"0\.\d{3}", said)


OFF = "from lib.heat import gaussian_barycentric\n"
VALUE = "float(gaussian_barycentric([[1.0]], eps)[0, 0])"
DETOURS = {
    "plain": f"{OFF}\ndef barycentric(eps):\n    return {VALUE}\n",
    "swallowed": f"""{OFF}
def barycentric(eps):
    try:
        return {VALUE}
    except BaseException:
        return 0.5
""",
    "no-profile": f"""import sys
{OFF}
def barycentric(eps):
    sys.setprofile(None)
    return {VALUE}
""",
    "thread": f"""import threading
{OFF}
def barycentric(eps):
    found = []
    thread = threading.Thread(target=lambda: found.append({VALUE}))
    thread.start()
    thread.join()
    return found[0]
""",
    "top-of-cell": f"""import numpy as np
{OFF}
r = np.geomspace(1e-9, 1e9, 4001)
known = [float(gaussian_barycentric([[1.0]], e)[0, 0]) for e in r]

def barycentric(eps):
    return np.interp(eps, r, known)
""",
    "from-the-file": """import importlib.util
spec = importlib.util.find_spec("lib")
text = open(spec.submodule_search_locations[0] + "/heat.py").read()
space = {"__name__": "mine"}
exec(text, space)

def barycentric(eps):
    return float(space["gaussian_barycentric"]([[1.0]], eps)[0, 0])
""",
    "by-removing-the-guard": f"""import sys
sys.meta_path[:] = [f for f in sys.meta_path if "sandbox" not in type(f).__module__]
{OFF}
def barycentric(eps):
    return {VALUE}
""",
    "with-patched-checks": f"""import lib.coursework as cw
cw.Answer = lambda function, off_limits=(): function
{OFF}
def barycentric(eps):
    return {VALUE}
""",
}


def test_what_is_off_limits_is_not_there_by_any_detour():
    verdicts = trial.judge_all(
        {name: trial.handed_in(barycentric=code) for name, code in DETOURS.items()}
    )
    for name in DETOURS:
        assert set(verdicts[name].lost) == {"barycentric-value"}, (name, verdicts[name])
    for name in ("plain", "swallowed", "thread"):
        said = verdicts[name].lost["barycentric-value"]
        assert "calls what is off limits here: lib.heat.gaussian_barycentric" in said
    assert any("off limits" in note for note in verdicts["top-of-cell"].notes)


def test_marks_do_not_depend_on_the_load(trials):
    """The same again, beside processes that take the processor away."""
    again = {kind: trial.spoiled(kind) for kind in LOADED}
    with bench.busy(6):
        after = trial.judge_all(again)
    for kind in again:
        assert set(after[kind].lost) == set(trials[kind].lost), kind


LOADED = (
    "patched-checks", "reads-proc", "fork-bomb", "infinite-loop", "stubborn-loop",
    "loop-of-threads", "sleeps", "runaway-output", "one-big-array", "doubling-list",
    "endless-recursion", "process-death",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["none", "container"])
def test_other_kinds_of_isolation_keep_checks_apart_as_well(kind):
    if kind == "container" and (os.geteuid() or not isolation.open_(sys.base_prefix)):
        pytest.skip("needs root, and a Python that other users can read")
    assert trial.judge(trial.handed_in(), kind).lost == {}
    patched = trial.judge(trial.spoiled("patched-checks"), kind)
    assert set(patched.lost) == trial.LOSES
    assert trial.judge(trial.spoiled("ctypes-system"), kind).lost == {}
    if kind == "container":
        who = f"import os\nprint('user', os.getuid())\n{trial.FIRST}"
        assert (
            f"user {isolation.NOBODY}"
            in trial.judge(trial.handed_in(factor=who), kind).text
        )


def test_without_isolation_the_grader_refuses(monkeypatch):
    assert isolation.choose() == "bubblewrap"
    monkeypatch.setattr(isolation, "why_not", lambda: "it rains")
    monkeypatch.setattr(isolation, "in_container", lambda: False)
    with pytest.raises(PipelineError, match="it rains. Install bubblewrap"):
        isolation.choose()
    with pytest.raises(PipelineError, match="for the root user of a container"):
        isolation.choose("container")
    assert isolation.choose("none") == "none"
    monkeypatch.setattr(isolation, "in_container", lambda: True)
    monkeypatch.setattr(isolation, "open_", lambda path: True)
    assert isolation.choose() == "container"
    monkeypatch.setattr(isolation, "open_", lambda path: False)
    with pytest.raises(PipelineError, match="cannot be read by another user"):
        isolation.choose()


def test_a_warning_costs_nothing():
    loud = "import sys\n" + trial.FIRST.replace(
        "    return", "    print('!', file=sys.stderr)\n    return"
    )
    assert trial.judge(trial.handed_in(factor=loud))[:2] == ({}, [])


def test_what_the_machine_spoils_is_not_marked_and_is_tried_again(course, material):
    set_ = material[SPOILED]
    notebook = submissions.answered(set_.given, set_.solved)
    submissions.put(course, SPOILED, "unlucky", notebook)
    row = grading.grade(course, SPOILED, wall=0.0)["unlucky"]
    assert row["points"] is None and "not graded: machine" in row["notes"][0]
    row = grading.grade(course, SPOILED)["unlucky"]
    assert row["points"] == row["of"]
