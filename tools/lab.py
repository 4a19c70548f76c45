"""Open copies of the notebooks, yours to change, in JupyterLab.

    python -m tools.lab [3 | sinkhorn | 3-sinkhorn-to-heat-flow] [--edit] [options]

The copies lie in the folder ``notebooks``. A copy in which nothing was written follows
the book; one that was edited is kept as it is. With ``--edit`` the notebooks of the
book itself are opened, for authors. What follows goes to ``jupyter lab``.

Only the standard library, so that it runs wherever JupyterLab does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tools.command import ROOT, PipelineError, replace, run_main

BOOK, COPIES = "chapters", "notebooks"
# Of each copy, the digest of the cells that it was given.
RECORD = ".copied.json"


def notebooks(root: Path = ROOT) -> list[Path]:
    """The notebooks of the book."""
    paths = sorted((root / BOOK).rglob("*.ipynb"))
    return [path for path in paths if ".ipynb_checkpoints" not in path.parts]


def chapter(asked: str, root: Path = ROOT) -> Path:
    """The notebook of the chapter with a number, a name, or a part of a name."""
    every, part = notebooks(root), re.escape(asked)
    for wanted in (part, f"{part}-.*", f".*{part}.*"):
        matching = [path for path in every if re.fullmatch(wanted, path.stem, re.I)]
        if len(matching) == 1:
            return matching[0]
    names = ", ".join(path.stem for path in every)
    how = "is no one chapter" if matching else "is no chapter"
    raise PipelineError(f"{asked!r} {how}; there are: {names}")


def written(path: Path) -> str:
    """Digest of what people write in a notebook: its cells, without their results."""
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        text = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
    except (ValueError, KeyError, TypeError):
        return "not a notebook"  # an edit like any other
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()


def refresh(root: Path = ROOT) -> list[str]:
    """Bring the copies up to date; return the names of those that were edited.

    A copy is replaced when the book's notebook changed and nothing was written in the
    copy. An edited one is never touched, and is named once the book has moved on.
    """
    folder, kept = root / COPIES, []
    record = folder / RECORD
    try:
        known = json.loads(record.read_text("utf-8")) if record.exists() else {}
    except ValueError:
        known = {}  # then every copy that differs from the book counts as edited
    try:
        for path in notebooks(root):
            name = path.relative_to(root / BOOK).as_posix()
            copy, fresh = folder / name, path.read_bytes()
            before = written(copy) if copy.exists() else None
            if before in (None, known.get(name), new := written(path)):
                if before is None or before != new or known.get(name) != new:
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    replace(copy, fresh)
                    known[name] = new
            elif known.get(name) != new:
                kept.append(name)
        replace(record, json.dumps(known, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise PipelineError(
            f"the copies could not be written into {folder}: {error.strerror};"
            " make the folder writable, or open the book's own notebooks with --edit"
        ) from None
    return kept


def command(asked: list[str], root: Path = ROOT) -> tuple[Path, list[str]]:
    """The folder that JupyterLab opens in, and the line that starts it."""
    options = [word for word in asked if word != "--edit"]
    start = [sys.executable, "-m", "jupyterlab"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        start.append("--allow-root")  # containers have no other user
    if options and not options[0].startswith("-"):
        name = chapter(options.pop(0), root).relative_to(root / BOOK).as_posix()
        start.append(name)
    return root / (BOOK if "--edit" in asked else COPIES), [*start, *options]


def main() -> int:
    if find_spec("jupyterlab") is None:
        raise PipelineError(
            "JupyterLab is not installed; in the folder of the book, run"
            ' pip install ".[lab]"'
        )
    folder, line = command(sys.argv[1:])
    if folder.name == COPIES:
        for name in refresh():
            print(
                f"lab: {COPIES}/{name} has your edits and is kept; the book's own has"
                " changed since, rename or delete yours to get it"
            )
    return subprocess.call(line, cwd=folder)


if __name__ == "__main__":
    run_main(main, "the notebooks are saved up to what JupyterLab last wrote")
