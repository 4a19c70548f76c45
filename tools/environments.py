"""The tests of the numerics and every notebook, on the Python that runs this command.

    python3.13 -m tools.environments [--lowest] [--older-processor]

A fresh environment gets the package with what develops it, in the newest versions or,
with ``--lowest``, in the lowest that the package allows. There the tests of `lib` and
of the formulas run with warnings as errors, and each notebook's cells, whose verdicts
decide: stored digits belong to the lock. ``--older-processor`` leaves numpy and BLAS
the instructions of a processor of 2012, without AVX2. Each run is recorded with its
date. Only the standard library, so that any Python can start it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools.command import (
    ROOT,
    PipelineError,
    children_seconds,
    exclusive,
    replace,
    run_main,
    today,
)

RECORD = Path("chapters/reference/environments.json")
VERSIONS = ("numpy", "scipy", "matplotlib", "pot")
# What numpy and OpenBLAS do without on an older processor; features as numpy 2.4 names
# them.
OLDER = {
    "OPENBLAS_CORETYPE": "Sandybridge",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}
SUITES = {
    "tests": ["-W", "error", "tests/lib", "tests/formulas"],
    "cells": ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout", "300",
              "chapters"],
}  # fmt: skip


def install(folder: Path, lowest: bool) -> Path:
    """A fresh environment with the package of this folder; its Python."""
    python = folder / "bin" / "python"
    resolution = "lowest-direct" if lowest else "highest"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    uv = [folder / "bin" / "uv", "pip", "install", "--quiet", "--python", python]
    for line in (
        [sys.executable, "-m", "venv", folder],
        [*pip, "uv"],
        [*uv, "--resolution", resolution, "--editable", f"{ROOT}[dev]"],
    ):
        done = subprocess.run(line, capture_output=True, text=True, cwd=folder.parent)
        if done.returncode:
            said = (done.stderr or done.stdout)[-3000:]
            raise PipelineError(f"{' '.join(map(str, line))} failed:\n{said}")
    return python


def outcome(report: Path) -> dict[str, Any]:
    """Counts of a run of pytest, from its report in XML, and what failed."""
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    bad = [
        c for c in cases if c.find("failure") is not None or c.find("error") is not None
    ]
    skipped = [c for c in cases if c.find("skipped") is not None]
    names = [f"{c.get('classname')}::{c.get('name')}" for c in bad]
    return {"passed": len(cases) - len(bad) - len(skipped),
            "skipped": len(skipped), "failed": names}  # fmt: skip


def run(
    python: Path, suite: str, jobs: int, settings: dict[str, str]
) -> dict[str, Any]:
    """Run one suite in an environment; count what passed, skipped and failed."""
    report = python.parent.parent / f"{suite}.xml"
    line = [python, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "loadfile",
            f"--junitxml={report}", *SUITES[suite]]  # fmt: skip
    done = subprocess.run(line, cwd=ROOT, env=os.environ | settings)
    if not report.exists() or done.returncode not in (0, 1):
        raise PipelineError(f"the {suite} stopped before their end ({done.returncode})")
    return outcome(report)


def environment(python: Path, lowest: bool, older: bool) -> dict[str, Any]:
    """Names of an environment: its Python, its system and the versions in it."""
    script = "import json, sys; from importlib.metadata import version as v; "
    script += f"print(json.dumps([v(n) for n in {VERSIONS}]))"
    said = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, check=True
    )
    return {
        "date": today(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": dict(zip(VERSIONS, json.loads(said.stdout), strict=True)),
        "lowest": lowest,
        "older_processor": older,
    }


def record(row: dict[str, Any], path: Path = ROOT / RECORD) -> None:
    """Put a run in the place of an earlier one of the same kind."""
    kind = ("lowest", "older_processor")
    rows = json.loads(path.read_text("utf-8")) if path.exists() else []
    minor = row["python"].rsplit(".", 1)[0]
    rows = [
        each for each in rows
        if (each["python"].rsplit(".", 1)[0], *map(each.get, kind))
        != (minor, *map(row.get, kind))
    ]  # fmt: skip
    rows = sorted([*rows, row], key=lambda r: [int(n) for n in r["python"].split(".")])
    replace(path, json.dumps(rows, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.environments")
    parser.add_argument("--lowest", action="store_true")
    parser.add_argument("--older-processor", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    settings = OLDER if asked.older_processor else {}
    with (
        exclusive(ROOT / "tools", "run of tools.environments"),
        tempfile.TemporaryDirectory(prefix="environment-") as scratch,
    ):
        python = install(Path(scratch) / "env", asked.lowest)
        row = environment(python, asked.lowest, asked.older_processor)
        row |= {suite: run(python, suite, asked.jobs, settings) for suite in SUITES}
        row["cpu_seconds"] = round(children_seconds())
        record(row)
    failed = [name for suite in SUITES for name in row[suite]["failed"]]
    print(f"environments: Python {row['python']}, {row['versions']}:"
          f" {row['tests']['passed']} tests and {row['cells']['passed']} cells pass,"
          f" {len(failed)} fail")  # fmt: skip
    return min(len(failed), 1)


if __name__ == "__main__":
    run_main(main, "what was recorded before is kept")
