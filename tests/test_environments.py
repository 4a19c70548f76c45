"""Runs in other environments: what is recorded, and what the page says of it."""

import json
import subprocess
import sys

import pytest

from tools import environments
from tools.command import ROOT, PipelineError
from tools.site import running

REPORT = """<testsuites><testsuite>
<testcase classname="a" name="one"/>
<testcase classname="a" name="two"><failure/></testcase>
<testcase classname="a" name="three"><error/></testcase>
<testcase classname="b" name="four"><skipped/></testcase>
</testsuite></testsuites>"""

ROW = {
    "date": "2026-11-24", "python": "3.13.5", "system": "Linux x86_64",
    "versions": {"numpy": "2.0.0"}, "lowest": False, "older_processor": False,
    "tests": {"passed": 9, "skipped": 0, "failed": []},
    "cells": {"passed": 8, "skipped": 1, "failed": []}, "cpu_seconds": 7,
}  # fmt: skip


def test_the_record_holds_every_supported_python_and_nothing_failed():
    rows = json.loads((ROOT / environments.RECORD).read_text("utf-8"))
    minors = {row["python"].rsplit(".", 1)[0] for row in rows}
    assert minors == {"3.11", "3.12", "3.13", "3.14"}
    assert any(row["lowest"] for row in rows)
    for row in rows:
        for suite in environments.SUITES:
            assert row[suite]["passed"] > 500 and not row[suite]["failed"], row


def test_outcomes_are_counted_and_failures_named(tmp_path):
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    assert environments.outcome(path) == {
        "passed": 1, "skipped": 1, "failed": ["a::two", "a::three"],
    }  # fmt: skip


def test_a_run_takes_the_place_of_one_of_its_kind_alone(tmp_path):
    path = tmp_path / "environments.json"
    later = ROW | {"date": "2026-11-25", "python": "3.13.10"}
    others = [ROW | {"lowest": True}, ROW | {"python": "3.9.1"}]
    for row in (ROW, *others, later):
        environments.record(row, path)
    rows = json.loads(path.read_text())
    assert [(r["python"], r["lowest"]) for r in rows] == [
        ("3.9.1", False), ("3.13.5", True), ("3.13.10", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", {"passed": 0, "skipped": 0, "failed": ["test_it::test_it"]}),
        ("pass", {"passed": 1, "skipped": 0, "failed": []}),
    ],
)
def test_a_suite_is_run_with_the_settings(tmp_path, monkeypatch, code, said):
    body = f"assert os.environ['ASKED'] == '1'\n    {code}\n"
    (tmp_path / "test_it.py").write_text(f"import os\n\ndef test_it():\n    {body}")
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setitem(environments.SUITES, "one", ["test_it.py"])
    bin_folder = tmp_path / "env" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bin_folder / "python").chmod(0o755)
    ran = environments.run(bin_folder / "python", "one", 1, {"ASKED": "1"})
    assert ran == said


def test_what_cannot_run_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(environments.sys, "executable", "/bin/false")
    with pytest.raises(PipelineError, match=r"^/bin/false -m venv .* failed"):
        environments.install(tmp_path / "env", lowest=True)
    gone = subprocess.CompletedProcess([], 4)
    monkeypatch.setattr(environments.subprocess, "run", lambda *a, **k: gone)
    with pytest.raises(
        PipelineError, match=r"the tests stopped before their end \(4\)"
    ):
        environments.run(tmp_path / "env" / "bin" / "python", "tests", 1, {})


def test_the_page_tells_kind_counts_and_failures():
    assert running.environment_cells(ROW)[:3] == ["3.13.5", "Linux x86_64", "newest"]
    old = ROW | {"lowest": True, "older_processor": True}
    assert running.environment_cells(old)[2] == "lowest, older processor"
    bad = ROW | {"cells": {"passed": 7, "skipped": 0, "failed": ["c::d"]}}
    assert running.environment_cells(ROW)[4:6] == ["9 pass", "8 pass, 1 skipped"]
    assert running.environment_cells(bad)[5] == "7 pass, 1 fail"
