"""Walls between a student's code and the machine, and how it is started.

``bubblewrap``: a sandbox of Linux with its own processes and no network, which sees
Python, ``lib`` without what is off limits, and a scratch folder in memory.
``container``: the grader runs as root in a container, and student's code as another
user who can read nothing of it. ``none``: a process of the same user.
"""

from __future__ import annotations

import functools
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

import lib
from coursework.sandbox.shadows import is_off, removable
from tools.command import PipelineError

KINDS = ("bubblewrap", "container", "none")
SCRATCH = 256 << 20  # bytes of a scratch folder
NOBODY = 65534
LIB = Path(lib.__file__).resolve().parent
WORKER = Path(__file__).resolve().parent / "sandbox"
REFUSAL = (
    "student's code cannot be shut in on this machine: {why}. Install bubblewrap (on"
    " Debian and Ubuntu: apt install bubblewrap), or grade in a container (chapter"
    " Teaching, Trust), or say --isolation none if you trust every submission"
)


def shut_in() -> list[str]:
    """The part of bubblewrap's command line that is the same for all."""
    alone = "--unshare-all --die-with-parent --new-session --as-pid-1 --cap-drop ALL"
    return ["bwrap", *alone.split(), "--uid", str(NOBODY), "--gid", str(NOBODY)]


@functools.cache
def why_not() -> str:
    """Reason why bubblewrap does not work here, '' where it does."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed"
    tried = subprocess.run(
        [*shut_in(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"],
        capture_output=True,
        text=True,
    )
    if not tried.returncode:
        return ""
    said = tried.stderr.strip().splitlines()[-1:] or ["no reason given"]
    hint = ""
    switch = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if switch.exists() and switch.read_text().strip() == "1":
        hint = (
            "; AppArmor forbids user namespaces here (as on Ubuntu 24.04): sysctl"
            " kernel.apparmor_restrict_unprivileged_userns=0 allows them"
        )
    return f"bubblewrap does not work ({said[0]}{hint})"


def in_container() -> bool:
    """Tell whether this is the root user of a container."""
    marks = ("/.dockerenv", "/run/.containerenv")
    return os.geteuid() == 0 and any(Path(mark).exists() for mark in marks)


def open_(path: str | Path) -> bool:
    """Tell whether any user can go to a folder and read it."""
    whole = Path(path).resolve()
    inside = all(p.stat().st_mode & 0o001 for p in [whole, *whole.parents])
    return inside and bool(whole.stat().st_mode & 0o004)


def choose(wanted: str | None = None) -> str:
    """The kind of isolation asked for, else the best there is; never a weaker one."""
    if wanted == "none":
        return wanted
    if wanted == "container" or (wanted is None and why_not() and in_container()):
        if not in_container():
            raise PipelineError(
                "--isolation container is for the root user of a container"
            )
        if hidden := [p for p in (sys.prefix, sys.base_prefix, LIB) if not open_(p)]:
            raise PipelineError(
                f"{hidden[0]} cannot be read by another user than root, so that"
                " student's code could not run; install Python and the book elsewhere"
            )
        return "container"
    if why := why_not():
        raise PipelineError(REFUSAL.format(why=why))
    return "bubblewrap"


def _masks(off_limits: Sequence[str]) -> list[str]:
    """Arguments that put nothing in the place of each module that is off limits."""
    options: list[str] = []
    for name in filter(removable, off_limits):
        if name == "lib":
            every = [p for p in LIB.iterdir() if is_off(f"lib.{p.stem}", ["lib"])]
            paths = [p for p in every if p.stem != "__init__"]
        else:
            tops = [LIB.parent] if name.startswith("lib.") else _packages()
            paths = [top.joinpath(*name.split(".")) for top in tops]
            paths += [path.with_suffix(".py") for path in paths]
        for path in paths:
            if path.is_dir():
                options += ["--tmpfs", str(path)]
            elif path.is_file():
                options += ["--ro-bind", "/dev/null", str(path)]
    if (LIB / "__pycache__").is_dir():  # it has the code of the modules, too
        options += ["--tmpfs", str(LIB / "__pycache__")]
    return options


def _packages() -> list[Path]:
    return [Path(folder).resolve() for folder in site.getsitepackages()]


def _system() -> list[str]:
    """Arguments for what any program needs, and for Python."""
    options = []
    for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc/fonts", "/etc/ssl/certs"):
        path = Path(folder)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), folder]
        elif path.exists():
            options += ["--ro-bind", folder, folder]
    for file in ("/etc/ld.so.cache", "/etc/localtime"):
        if Path(file).exists():
            options += ["--ro-bind", os.path.realpath(file), file]
    own = {sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent)}
    for folder in sorted(own):
        if not Path(folder).is_relative_to("/usr"):
            options += ["--ro-bind", folder, folder]
    return options


def environment(home: str) -> dict[str, str]:
    """The environment of a student's process: nothing of the grader's."""
    single = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    return single | {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "IPYTHONDIR": f"{home}/.ipython",
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{WORKER.parent.parent}:{LIB.parent}",
    }


def command(
    kind: str, off_limits: Sequence[str], files: Path | None, info: int
) -> list[str]:
    """The command that starts a worker; bubblewrap tells its pid on ``info``."""
    worker = [sys.executable, "-P", "-m", "coursework.sandbox.worker"]
    if kind != "bubblewrap":
        return worker
    home = "/tmp/student"
    line = [*shut_in(), "--info-fd", str(info), "--size", str(SCRATCH)]
    line += ["--tmpfs", "/tmp", "--dir", home, "--dir", f"{home}/.matplotlib"]
    line += [*_system(), "--proc", "/proc", "--dev", "/dev"]
    line += ["--ro-bind", str(LIB), str(LIB), *_masks(off_limits)]
    line += ["--ro-bind", str(WORKER), str(WORKER)]
    for fonts in sorted(Path(matplotlib.get_cachedir()).glob("fontlist-*.json")):
        line += ["--ro-bind", str(fonts), f"{home}/.matplotlib/{fonts.name}"]
    if files is not None:
        line += ["--ro-bind", str(files), "/tmp/files"]
    line += ["--remount-ro", "/", "--clearenv"]
    for name, value in environment(home).items():
        line += ["--setenv", name, value]
    return [*line, "--chdir", home, "--", *worker]
