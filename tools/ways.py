"""Every notebook alone, as a reader has it, and what each installation costs.

    python -m tools.ways [NAME ...]

The package is installed with pip into a fresh environment, in the versions that a
reader gets today. Each notebook, those of the problem sets too, is then executed from
an empty folder, with that environment and a kernel. Without names, the two other
installations are measured as well. All is recorded with its date.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from lib.data import DataUnavailable, fashion_mnist
from tools import wheel
from tools.command import (
    ROOT,
    PipelineError,
    children_seconds,
    replace,
    run_main,
    today,
)
from tools.texts import SETS, read_text, texts

RECORD = Path("chapters/reference/ways.json")
KERNEL = "alone"
# What pip and its helpers bring along is no package of the book.
HELPERS = {"pip", "setuptools", "wheel"}
# What one installation is for, and what pip is given; {wheel} is the package's.
INSTALLS = {
    "the package": ["{wheel}"],
    "the package and JupyterLab": ["{wheel}[lab]"],
    "requirements.txt": ["-r", "requirements.txt"],
}


def environment(folder: Path) -> Path:
    """A fresh environment; its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def pip_install(python: Path, *asked: str) -> None:
    """Install with pip, from elsewhere than the folder of the book."""
    line = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    result = subprocess.run(
        [*line, "--disable-pip-version-check", *asked],
        cwd=python.parent,
        env=clean,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise PipelineError(f"pip install {' '.join(asked)} failed:\n{result.stderr}")


def packages(python: Path) -> dict[str, str]:
    """Versions of what an environment holds, without pip itself."""
    line = [python, "-m", "pip", "list", "--format", "json"]
    listed = json.loads(subprocess.run(line, check=True, capture_output=True).stdout)
    return {p["name"]: p["version"] for p in listed if p["name"] not in HELPERS}


def megabytes(folder: Path) -> float:
    """Size of all files below a folder, links not followed."""
    files = (path for path in folder.rglob("*") if not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def measure(folder: Path, given: list[str], package: Path) -> dict[str, Any]:
    """Measure an installation into ``folder`` with an empty cache."""
    python = environment(folder)
    empty, load = megabytes(folder), os.getloadavg()[0]
    given = [word.format(wheel=package) for word in given]
    given = [str(ROOT / word) if word.endswith(".txt") else word for word in given]
    start, used = time.monotonic(), children_seconds()
    pip_install(python, *given)
    return {
        "date": today(),
        "seconds": round(time.monotonic() - start),
        "cpu_seconds": round(children_seconds() - used),
        "load": round(load, 1),
        "packages": len(packages(python)),
        "megabytes": round(megabytes(folder) - empty),
    }


def kernel(python: Path, folder: Path) -> None:
    """A kernel of that Python, the only one that is found, with settings of its own."""
    spec = folder / "kernels" / KERNEL / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    own = {"IPYTHONDIR": str(folder / "ipython"), "PYTHONPATH": ""}
    spec.write_text(json.dumps({"argv": argv, "display_name": KERNEL, "env": own}))
    os.environ["JUPYTER_PATH"] = str(folder)


def run_alone(text: Path) -> dict[str, Any]:
    """Execute one notebook in an empty folder; say what ran, or what failed."""
    notebook = read_text(text)
    folder = Path(tempfile.mkdtemp(prefix="alone-"))
    used = children_seconds()
    outcome: dict[str, Any] = {"date": today()}
    try:
        NotebookClient(
            notebook,
            timeout=600,
            kernel_name=KERNEL,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
        left = [path.name for path in folder.iterdir()]
        if left:
            outcome["failed"] = f"it left {', '.join(left)} in the folder"
    except CellExecutionError as error:
        outcome["failed"] = f"{error.ename}: {error.evalue}"
    except (CellTimeoutError, DeadKernelError) as error:
        outcome["failed"] = str(error).splitlines()[0]
    finally:
        shutil.rmtree(folder)
    ran = [c for c in notebook.cells if c.get("execution_count")]
    return outcome | {
        "cells": len(ran),
        "cpu_seconds": round(children_seconds() - used, 1),
    }


def main() -> int:
    every = {text.stem: text for text in [*texts(), *texts(ROOT, SETS)]}
    names = sys.argv[1:]
    if unknown := [name for name in names if name not in every]:
        raise PipelineError(f"{unknown[0]!r} is no notebook; there are: {[*every]}")
    try:
        fashion_mnist()  # some notebooks need it
    except DataUnavailable as error:
        raise PipelineError(str(error)) from None
    record = ROOT / RECORD
    known = json.loads(record.read_text("utf-8")) if record.exists() else {}
    failed = []
    with tempfile.TemporaryDirectory(prefix="ways-") as scratch:
        top = Path(scratch)
        package = wheel.build(top)
        small, *others = INSTALLS
        for number, name in enumerate([small] if names else INSTALLS):
            print(f"ways: installing {name}", flush=True)
            cost = measure(top / str(number), INSTALLS[name], package)
            known.setdefault("installs", {})[name] = cost
            if name != small:
                shutil.rmtree(top / str(number))
        python = top / "0" / "bin" / "python"
        had = packages(python)
        versions = {name: had[name] for name in ("numpy", "scipy", "matplotlib")}
        known["versions"] = {"Python": platform.python_version(), **versions}
        known["machine"] = f"{platform.system()} {platform.machine()}"
        pip_install(python, "ipykernel")
        kernel(python, top)
        for name in names or every:
            outcome = run_alone(every[name])
            known.setdefault("notebooks", {}).setdefault(name, {})["alone"] = outcome
            told = outcome.get("failed") or f"{outcome['cells']} cells ran"
            print(f"ways: {name}, alone: {told}", flush=True)
            failed += [name] if "failed" in outcome else []
            replace(record, json.dumps(known, indent=2, ensure_ascii=False) + "\n")
    return len(failed)


if __name__ == "__main__":
    run_main(main, "what was recorded before is kept")
