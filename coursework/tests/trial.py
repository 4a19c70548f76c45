"""A set of two problems, on which every trick can be tried in about a second."""

import copy
import re
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from conftest import JOBS, SEED
from coursework import intake, plan
from coursework.preprocessors import run
from coursework.sets import mark, term
from coursework.tricks import TRICKS

FIRST = '''def factor(x, y):
    """The factor."""
    ### BEGIN SOLUTION
    return 1 - x * (1 + y)
    ### END SOLUTION
'''
WRONG = "def factor(x, y):\n    return 1 + x * (1 + y)\n"
LOSES = {"factor-value", "factor-more"}
SECOND = '''def barycentric(eps):
    """Slope of the barycentric map."""
    ### BEGIN SOLUTION
    r = float(eps)
    return 2 / (r + np.sqrt(4 + r**2))
    ### END SOLUTION
'''
CELLS = [
    ("locked:set-up", "import numpy as np\nfrom lib.coursework import Answer, agree, "
     "holds\nOFF_LIMITS = ('lib.heat', 'lib.sinkhorn', 'ot')"),
    ("term", "from lib.coursework import term_generator\n"
     "given_x = round(term_generator('trial').uniform(0.3, 0.8), 3)"),
    ("answer:factor", FIRST),
    ("check:factor-value:3", "student = Answer(factor, OFF_LIMITS)\n"
     "agree('the factor', student(0.5, 0.0), 0.5, rtol=1e-12, on='a visible input')\n"
     "### BEGIN HIDDEN TESTS\nfrom lib.coursework import term_generator\n"
     "hidden_x, hidden_y = term_generator('trial hidden').uniform(0, 1, (2, 5))\n"
     "agree('the factor', [student(*pair) for pair in zip(hidden_x, hidden_y)],\n"
     "      1 - hidden_x * (1 + hidden_y), atol=1e-12, on='hidden inputs')\n"
     "### END HIDDEN TESTS"),
    ("check:factor-more:2", "### BEGIN HIDDEN TESTS\n"
     "agree('the factor', Answer(factor, OFF_LIMITS)(given_x, 1.0), 1 - 2 * given_x,\n"
     "      atol=1e-12, on='the number of this term')\n### END HIDDEN TESTS"),
    ("answer:barycentric", SECOND),
    ("check:barycentric-value:4", "student = Answer(barycentric, OFF_LIMITS)\n"
     "holds('it is below 1', student(0.5) < 1, on='ε = 1/2')\n"
     "### BEGIN HIDDEN TESTS\nfrom lib.heat import gaussian_barycentric\n"
     "eps = [0.1, 1.0, 7.0]\n"
     "agree('the slope', [student(e) for e in eps],\n"
     "      [gaussian_barycentric([[1.0]], e)[0, 0] for e in eps], rtol=1e-6,\n"
     "      on='hidden ε')\n### END HIDDEN TESTS"),
]  # fmt: skip


class Trial(NamedTuple):
    """Outcome of a notebook."""

    lost: dict[str, str]
    notes: list[str]
    text: str


def source():
    """The instructor's notebook of this term."""
    cells = [new_markdown_cell("# A trial")]
    cells += [new_code_cell(text, metadata={"tags": [tag]}) for tag, text in CELLS]
    with term(SEED):
        return mark(new_notebook(cells=cells))


def given():
    """Copy that students get of it."""
    whole = copy.deepcopy(source())
    for cell in whole.cells:
        if cell.cell_type == "code":
            visible, _ = plan.split(cell.source)
            cell.source = re.sub(
                r"### BEGIN SOLUTION.*### END SOLUTION",
                "raise NotImplementedError", visible, flags=re.S,
            )  # fmt: skip
    return whole


def handed_in(**answers):
    """The notebook with all answers, or other ones in their place."""
    whole = given()
    solved = {"factor": FIRST, "barycentric": SECOND} | answers
    for cell in whole.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = solved.get(name, cell.source)
    return whole


def spoiled(kind):
    """The notebook of a trick."""
    trick = TRICKS[kind]
    whole = handed_in(factor=WRONG) if trick.wrong else handed_in()
    trick.spoil(whole, "factor")
    return whole


def judge(notebook, kind="bubblewrap", floor=3):
    """Assemble a notebook and run it as the grader does."""
    whole, notes = intake.assemble(notebook, given())
    record = {"notes": notes, "cost": {}}
    limits = {"floor": floor, "checks": {}, "seed": SEED}
    lost, text = {}, ""
    with term(SEED):
        for number, outputs in run(source(), kind, limits, None, whole.cells, record):
            cell = whole.cells[number]
            text += str(outputs)
            failed = [o for o in outputs if o.output_type == "error"]
            if cell.metadata.get("nbgrader", {}).get("grade") and failed:
                lost[cell.metadata.nbgrader.grade_id] = failed[0].evalue
    nbformat.validate(whole)
    return Trial(lost, record["notes"], text)


def judge_all(notebooks):
    """The trials of several notebooks by their names."""
    with ThreadPoolExecutor(JOBS) as pool:
        return dict(zip(notebooks, pool.map(judge, notebooks.values()), strict=True))
