"""Limits of a kernel that grades: memory, time, output, files, programs, network.

They stop accidents and careless copying. They do not stop an attacker, who shares the
process with the checks; untrusted code needs a container around the whole kernel.
"""

import os
import resource
import sys
from pathlib import Path

MEMORY = 4 << 30  # bytes of address space; numpy alone reserves about one GiB
CPU = 300  # seconds of the kernel in all
FILE = 64 << 20  # bytes of one file
PRINTED = 100_000  # characters that one cell may print
SHOWN = 2_000_000  # characters of one displayed object
HIDDEN = "### BEGIN HIDDEN TESTS"
FILES = {"open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.rmdir"}
FILES |= {"os.truncate", "os.chmod", "os.link", "os.symlink", "sqlite3.connect"}
PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn"}
NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname"}
NETWORK |= {"socket.sendto", "socket.sendmsg"}


class LimitReached(RuntimeError):
    """What is not allowed while grading, in one sentence."""


def limit_resources():
    """What the operating system enforces."""
    for name, value in (("AS", MEMORY), ("CPU", CPU), ("FSIZE", FILE), ("CORE", 0)):
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def forbidden(path, course, here):
    """Whether a path is the grader's: in the course, but not in the folder graded."""
    path = Path(os.path.realpath(os.fsdecode(path)))
    if path.is_relative_to(here):
        return path.suffix == ".ipynb"
    # IPython reads its profile, and this file when it prints a traceback.
    own = path.is_relative_to(course / "ipython") or path == course / "limits.py"
    return path.is_relative_to(course) and not own


def watch_calls(course, here, report):
    """Refuse the grader's files, other programs and the network, and report it."""

    def refuse(what):
        report(f"grading limit: {what}\n")
        raise LimitReached(what)

    def hook(event, args):
        if event in FILES and args and isinstance(args[0], str | bytes | os.PathLike):
            if forbidden(args[0], course, here):
                refuse(f"the grader's files are not to be read: {event}")
        elif event in PROGRAMS:
            refuse(f"no other program may be started: {event}")
        elif event in NETWORK:
            refuse(f"there is no network while grading: {event}")

    sys.addaudithook(hook)


class Meter:
    """Counts what a cell prints; beyond the limit, printing raises."""

    def __init__(self, stream):
        self.printed, self._write = 0, stream.write
        stream.write = self.write

    def write(self, text):
        """Print, and count."""
        self.printed += len(text)
        if self.printed > PRINTED:
            raise LimitReached(f"a cell may print at most {PRINTED} characters")
        return self._write(text)


def limit_shown(formatter):
    """Replace the forms of a displayed object that are too large."""
    original = formatter.format

    def limited(*args, **kwargs):
        data, metadata = original(*args, **kwargs)
        for kind, value in data.items():
            if isinstance(value, str | bytes) and len(value) > SHOWN:
                data[kind] = f"left out: {len(value)} characters of {kind}"
        return data, metadata

    formatter.format = limited


def install(shell):
    """Set all limits for the kernel of ``shell``."""
    meters = [Meter(sys.stdout), Meter(sys.stderr)]

    def before(info):
        for meter in meters:
            meter.printed = 0
        # An error in a check shows its message and not the lines of the check.
        shell.InteractiveTB.set_mode(
            "Minimal" if HIDDEN in info.raw_cell else "Context"
        )

    shell.events.register("pre_run_cell", before)
    limit_shown(shell.display_formatter)
    limit_resources()
    course = Path(os.path.realpath(os.environ["ATTENTION_LIMIT_COURSE"]))
    watch_calls(course, Path(os.path.realpath(os.getcwd())), meters[1].write)
