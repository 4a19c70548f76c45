"""Open a chapter, or the list of all, in JupyterLab.

python -m tools.lab [3 | sinkhorn | 3-sinkhorn-to-heat-flow] [options of jupyter lab]
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tools.notebooks import ROOT, PipelineError, run_main, texts


def chapter(asked: str, root: Path = ROOT) -> Path:
    """The text of the chapter with a number, a name, or a part of a name."""
    found, part = texts(root), re.escape(asked)
    for wanted in (part, f"{part}-.*", f".*{part}.*"):
        matching = [path for path in found if re.fullmatch(wanted, path.stem, re.I)]
        if len(matching) == 1:
            return matching[0]
    names = ", ".join(path.stem for path in found)
    how = "is no one chapter" if matching else "is no chapter"
    raise PipelineError(f"{asked!r} {how}; there are: {names}")


def command(asked: list[str], root: Path = ROOT) -> list[str]:
    """What opens JupyterLab in the folder of the chapters."""
    start = [str(Path(sys.executable).with_name("jupyter")), "lab"]
    if not asked or asked[0].startswith("-"):
        return [*start, *asked]
    notebook = chapter(asked[0], root).with_suffix(".ipynb")
    return [*start, notebook.relative_to(root / "chapters").as_posix(), *asked[1:]]


def main() -> None:
    line = command(sys.argv[1:])
    os.chdir(ROOT / "chapters")
    os.execv(line[0], line)


if __name__ == "__main__":
    run_main(main)
