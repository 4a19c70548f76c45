"""Every notebook alone: what ``make ways`` runs, records, and what the page says."""

import json
import sys

import pytest

from tools import ways
from tools.command import ROOT
from tools.site import running
from tools.texts import SETS, texts

HEAD = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Title

```{code-cell} ipython3
%s
```
"""


def test_record_has_every_notebook_and_every_installation():
    record = json.loads((ROOT / ways.RECORD).read_text("utf-8"))
    every = {path.stem for path in [*texts(), *texts(ROOT, SETS)]}
    assert {*record["notebooks"]} == every, "run make ways"
    for name, runs in record["notebooks"].items():
        assert "failed" not in runs["alone"], name
        assert runs["alone"]["cells"] > 0
    assert {*record["installs"]} == {*ways.INSTALLS}


@pytest.mark.parametrize(
    ("source", "failed"),
    [
        ("import lib.claims", None),
        ("open('../index.md')", "FileNotFoundError"),
        ("open('x.txt', 'w').close()", "it left x.txt in the folder"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import os; os._exit(1)", "Kernel died"),
    ],
)
def test_what_a_notebook_needs_is_noticed(source, failed, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", "")  # as it was, afterwards
    ways.kernel(sys.executable, tmp_path / "jupyter")
    text = tmp_path / "one.md"
    text.write_text(HEAD % source)
    outcome = ways.run_alone(text)
    assert outcome.get("failed", "").startswith(failed or "")
    assert ("failed" in outcome) == (failed is not None)
    # The first cell, and this one; a kernel that dies may die before it says so.
    assert outcome["cells"] == 2 or (failed == "Kernel died" and outcome["cells"] == 1)
    told = running.told(outcome)
    assert told.startswith(outcome["date"]) and (not failed or failed in told)


def test_failed_installation_and_unknown_notebook_are_one_sentence(monkeypatch):
    with pytest.raises(ways.PipelineError, match="^pip install /nowhere/x.whl failed"):
        ways.pip_install(ways.Path(sys.executable), "/nowhere/x.whl")
    monkeypatch.setattr(sys, "argv", ["ways", "chapter-9"])
    with pytest.raises(ways.PipelineError, match="'chapter-9' is no notebook; there"):
        ways.main()


def test_an_installation_is_measured(tmp_path, monkeypatch):
    """Of nothing: an environment as venv makes it has no packages."""
    monkeypatch.setattr(ways, "pip_install", lambda *given: None)
    install = ways.measure(tmp_path / "venv", ["{wheel}[lab]"], tmp_path / "x.whl")
    assert install["packages"] == 0 and install["megabytes"] == 0
