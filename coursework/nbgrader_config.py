"""Settings of a course folder; any nbgrader command run in it reads them."""

import os
import sys
from pathlib import Path

from nbgrader import preprocessors as nbg

from coursework.preprocessors import OverwriteKnownCells, RunApart

COURSE = Path(__file__).resolve().parent
# nbgrader starts alembic, which lies beside the Python that runs it.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
# Checks draw their hidden inputs from it; student's code runs without it.
os.environ["ATTENTION_LIMIT_TERM"] = (COURSE / "term.txt").read_text().strip()

c = get_config()  # noqa: F821 (nbgrader defines it)
c.CourseDirectory.root = str(COURSE)
c.CourseDirectory.course_id = "attention-in-the-limit"
# Two workers may write grades at a time; one then waits for the other.
c.CourseDirectory.db_url = f"sqlite:///{COURSE / 'gradebook.db'}?timeout=60"
c.RunApart.course = str(COURSE)
c.OverwriteCells.add_missing_cells = True
c.Autograde.sanitize_preprocessors = [
    nbg.ClearOutput,
    nbg.DeduplicateIds,
    nbg.OverwriteKernelspec,
    OverwriteKnownCells,
    nbg.CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    RunApart,
    nbg.IgnorePattern,
    nbg.LimitOutput,
    nbg.SaveAutoGrades,
    nbg.AssignLatePenalties,
    nbg.CheckCellMetadata,
]
# Students read what failed, not the hidden part of the check.
c.GenerateFeedback.preprocessors = [
    nbg.GetGrades,
    nbg.ClearHiddenTests,
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
