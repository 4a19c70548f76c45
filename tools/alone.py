"""Kernels that open no file of the book, and calculate alike on every processor.

A reader who has the notebook and the installed package has no other file. Whatever
a cell opens below the folder of the project is refused here, but for the package. The
kernels that ``make test`` executes all notebooks with start with this watch.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# numpy and OpenBLAS choose their instructions by the processor, and round differently
# with each choice; training a network makes such a difference visible. Stored outputs
# are made and compared with what every x86-64 since 2013 has. Several threads of linear
# algebra round differently too.
ALIKE = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

START = """import runpy
runpy.run_path({here!r})["watch"]({root!r})
del runpy
"""


def profile(folder: Path, root: Path) -> Path:
    """Write a folder for ``IPYTHONDIR``; kernels that start with it are watched."""
    start = folder / "profile_default" / "startup" / "00-alone.py"
    start.parent.mkdir(parents=True)
    start.write_text(START.format(here=__file__, root=str(root)), "utf-8")
    return folder


def watch(root: str) -> None:
    """Refuse from now on to open the files below ``root`` that no package has.

    Allowed are ``lib``, an environment that lies there, and the folder of the images.
    """
    top = os.path.realpath(root)
    images = os.environ.get("ATTENTION_LIMIT_DATA")
    allowed = [os.path.join(top, "lib"), sys.prefix, *filter(None, [images])]
    allowed = [os.path.join(os.path.realpath(path), "") for path in allowed]
    join, real, decode = os.path.join, os.path.realpath, os.fsdecode

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return  # an open file goes by its number
        path = real(decode(arguments[0]))
        if path.startswith(join(top, "")) and not path.startswith(tuple(allowed)):
            raise PermissionError(
                f"a reader who has only this notebook has no {path[len(top) + 1 :]}:"
                " what a cell opens belongs into the package"
            )

    sys.addaudithook(refuse)
