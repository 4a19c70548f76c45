"""Settings of a course folder; any nbgrader command run in it reads them.

The folder holds the seed of the term and the limits that grading kernels start with.
"""

import os
import sys
from pathlib import Path

from nbclient.exceptions import DeadKernelError
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat.v4 import new_output
from nbgrader import preprocessors as nbg

COURSE = Path(__file__).resolve().parent
# nbgrader starts alembic, which lies beside the Python that runs it.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
os.environ["ATTENTION_LIMIT_TERM"] = (COURSE / "term.txt").read_text().strip()
os.environ["ATTENTION_LIMIT_COURSE"] = str(COURSE)
os.environ["IPYTHONDIR"] = str(COURSE / "ipython")


class ExecuteUntilDeath(nbg.Execute):
    """Execution that keeps what ran before a kernel died; the other cells fail."""

    def preprocess(self, nb, resources):
        """Execute a notebook, with a new kernel."""
        self.died = False
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell, resources, index):
        """Execute a cell, or say that there is no kernel any more."""
        if not self.died:
            try:
                cell, resources = super().preprocess_cell(cell, resources, index)
                self.keep_warnings(cell)
                return cell, resources
            except DeadKernelError:
                self.died = True
        if cell.cell_type == "code":
            told = "the kernel died in this cell or before it, which ran no further"
            cell.outputs = [new_output("error", ename="KernelDied", evalue=told)]
            cell.outputs[0].traceback = [f"KernelDied: {told}"]
        return cell, resources

    @staticmethod
    def keep_warnings(cell):
        """Make warnings plain output: nbgrader takes all of stderr for failure."""
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.name = "stdout"


class OverwriteKnownCells(nbg.OverwriteCells):
    """Restores cells; one that is doubled or unknown is an ordinary cell from then on.

    nbgrader 0.9.6 leaves such cells half marked, and then fails on them.
    """

    def preprocess_cell(self, cell, resources, index):
        """Restore a cell, or take off a mark without a name."""
        cell, resources = super().preprocess_cell(cell, resources, index)
        if "grade_id" not in cell.metadata.get("nbgrader", {}):
            cell.metadata.pop("nbgrader", None)
        return cell, resources


c = get_config()  # noqa: F821 (nbgrader defines it)
c.CourseDirectory.root = str(COURSE)
c.CourseDirectory.course_id = "attention-in-the-limit"
# Two workers may write grades at a time; one then waits for the other.
c.CourseDirectory.db_url = f"sqlite:///{COURSE / 'gradebook.db'}?timeout=60"
c.ExecuteUntilDeath.timeout = int(os.environ.get("ATTENTION_LIMIT_CELL_SECONDS", 15))
c.OverwriteCells.add_missing_cells = True
c.Autograde.sanitize_preprocessors = [
    nbg.ClearOutput,
    nbg.DeduplicateIds,
    nbg.OverwriteKernelspec,
    OverwriteKnownCells,
    nbg.CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    ExecuteUntilDeath,
    nbg.IgnorePattern,
    ClearMetadataPreprocessor,
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
