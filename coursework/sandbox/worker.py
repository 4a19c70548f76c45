"""The process of a student's notebook: runs cells, calls functions, answers by value.

It gets requests on its standard input and answers on its standard output; it has
neither the seed of the term nor a check. What it answers is a student's claim, and is
judged elsewhere.
"""

from __future__ import annotations

import ast
import base64
import copy
import io
import os
import resource
import signal
import sys
import traceback
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coursework.sandbox import values
from coursework.sandbox.refuse import end_with_parent, refuse_calls
from coursework.sandbox.shadows import install
from lib.coursework import describe_error, same_values

PRINTED = 100_000  # characters that a cell may print
SHOWN = 2_000_000  # characters that a cell may show
PROGRAMS = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn")
NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname")
KILLS = ("os.kill", "os.killpg", "signal.pthread_kill")


class LimitReached(RuntimeError):
    """A refusal of what is not allowed while grading, in one sentence."""


class Channel:
    """Messages to and from the grader, and the functions either side holds."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        self._functions: list[Callable[..., Any]] = []

    def held(self, number: int) -> Callable[..., Any]:
        """The function that a handle was given for."""
        return self._functions[number]

    def send(self, message: Any) -> None:
        """Write one message."""
        rest = memoryview(values.encode(message, self._keep))
        while rest:
            rest = rest[os.write(self._out, rest) :]

    def receive(self) -> Any:
        """Read one message; the end of the input ends the process."""
        frame = bytearray()
        while rest := values.missing(frame):
            if not (part := os.read(self._in, min(rest, 1 << 20))):
                os._exit(0)
            frame += part
        return values.decode(bytes(frame), self._remote)

    def _keep(self, function: Callable[..., Any]) -> int:
        self._functions.append(function)
        return len(self._functions) - 1

    def _remote(self, number: int, name: str) -> Callable[..., Any]:
        def remote(*args: Any, **kwargs: Any) -> Any:
            self.send({"callback": number, "args": args, "kwargs": kwargs})
            reply = self.receive()
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return reply["value"]

        remote.__name__ = name
        return remote


class Meter(io.StringIO):
    """Collects what a cell prints; beyond the limit, printing raises."""

    def write(self, text: str) -> int:
        """Print, and count."""
        if self.tell() + len(text) > PRINTED:
            raise LimitReached(f"a cell may print at most {PRINTED} characters")
        return super().write(text)


def make_shell(notes: list[str]) -> Any:
    """An IPython shell that keeps what cells show, and starts no programs."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    class Shell(InteractiveShell):
        trouble: Any = None

        def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
            self.trouble = etype.__name__, str(evalue)[:2000], [x[:20_000] for x in stb]

        def system(self, cmd: str) -> None:
            # The book's own first cell tells students to install the package.
            words = cmd.replace("pip3", "pip").split()
            print(f"left out while grading: !{cmd[:200]}")
            if "pip" not in words[:3]:
                notes.append("no other program may be started: !" + cmd[:60])

        getoutput = system

        def enable_gui(self, gui: Any = None) -> None:
            return None

    Shell.display_pub_class = CapturingDisplayPublisher
    shell = Shell.instance()
    shell.history_manager.enabled = False
    shell.user_ns["exit"] = shell.user_ns["quit"] = lambda *args: None

    def pip(line: str = "", cell: str | None = None) -> None:
        shell.system(f"pip {line}")

    for name in ("pip", "conda", "mamba", "uv"):
        shell.register_magic_function(pip, "line", name)
    return shell


class Notebook:
    """A student's namespace, and what the grader may ask of it."""

    def __init__(self, channel: Channel, off_limits: tuple[str, ...]):
        self.notes: list[str] = []
        self._channel, self._called = channel, install(off_limits)
        self._shell = make_shell(self.notes)
        sys.addaudithook(self._listen)

    def _listen(self, event: str, args: tuple[Any, ...]) -> None:
        for kinds, said in (
            (PROGRAMS, "no other program may be started"),
            (NETWORK, "there is no network while grading"),
            (KILLS, "no process may be ended"),
        ):
            if event.startswith(kinds):
                self.notes.append(f"{said}: {event}")
                raise LimitReached(f"{said}: {event}")

    def run(self, source: str) -> dict[str, Any]:
        """Run a cell: what it printed and showed, and the error it ended in."""
        from IPython.core.displayhook import CapturingDisplayHook

        class Hook(CapturingDisplayHook):
            is_active = False  # as clear_output asks

        shell, printed = self._shell, Meter()
        shell.trouble, shell.display_pub.outputs = None, []
        self._called.clear()
        streams, hook = (sys.stdout, sys.stderr), sys.displayhook
        shown: list[Any] = []
        sys.stdout = sys.stderr = printed
        shell.displayhook = Hook(shell=shell, outputs=shown)
        sys.displayhook = shell.displayhook
        shell.display_trap.hook = shell.displayhook
        try:
            shell.run_cell(source, store_history=True)
        finally:
            (sys.stdout, sys.stderr), sys.displayhook = streams, hook
        pictures = [*shell.display_pub.outputs, *shown]
        if self._called:
            used = ", ".join(sorted(set(self._called)))
            self.notes.append(f"a cell calls what is off limits: {used}")
        return {
            "printed": printed.getvalue(),
            "shown": [_plain(each) for each in pictures[:50]],
            "trouble": shell.trouble,
        }

    def define(self, source: str) -> dict[str, Any]:
        """Run the definitions and imports of a cell, each for itself."""
        for statement in ast.parse(source).body:
            module = ast.Module([statement], [])
            try:
                exec(compile(module, "<check>", "exec"), self._shell.user_ns)
            except Exception:
                continue  # it is the student's namespace; the check has its own
        return {}

    def look(self, names: list[str]) -> dict[str, Any]:
        """Those of the names that are there."""
        space = self._shell.user_ns
        return {name: space[name] for name in names if name in space}

    def call(
        self, function: str | int, args: Any, kwargs: Any, measure: bool
    ) -> dict[str, Any]:
        """Value of a function of a name or a handle, or a sentence on what failed."""
        if isinstance(function, int):
            function = self._channel.held(function)
        elif callable(named := self._shell.user_ns.get(function)):
            function = named
        else:
            return {"failed": "no function"}
        given = copy.deepcopy((args, kwargs))
        self._called.clear()
        printed, streams = Meter(), (sys.stdout, sys.stderr)
        sys.stdout = sys.stderr = printed
        peak = value = None
        error: dict[str, Any] | None = None
        if measure:
            tracemalloc.start()
        try:
            value = function(*args, **kwargs)
            peak = tracemalloc.get_traced_memory()[1] / 1e6 if measure else None
        except NotImplementedError:
            error = {"failed": "unwritten"}
        except BaseException as caught:
            kind, line = type(caught).__name__, _line(caught)
            error = {"failed": "raised", "kind": kind, "line": line}
            error["said"] = describe_error(caught)
        finally:
            sys.stdout, sys.stderr = streams
            if measure:
                tracemalloc.stop()
        if self._called:
            used = ", ".join(sorted(set(self._called)))
            return {"failed": "off limits", "said": used}
        if error is not None:
            return error
        if not same_values(given, (args, kwargs)):
            return {"failed": "changes"}
        return {"value": value, "peak": peak}


def _line(error: BaseException) -> str:
    """The line of a cell that an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        f.line for f in frames if "/ipykernel_" in f.filename or f.filename[:1] == "<"
    ]
    return own[0] or "" if own else ""


def _plain(output: Any) -> Any:
    """Data of a displayed object, whose too large forms are left out."""
    data = getattr(output, "data", None) or dict(output).get("data", {})
    plain = {}
    for kind, value in data.items():
        if isinstance(value, bytes):
            value = base64.encodebytes(value).decode()
        if not isinstance(value, str):
            continue
        if len(value) > SHOWN:
            value = f"left out: {len(value)} characters of {kind}"
        plain[str(kind)] = value
    return plain


def limit(memory: int, files: int) -> None:
    """Limits that the operating system enforces and no process may raise."""
    for name, value in (("AS", memory), ("FSIZE", files), ("CORE", 0)):
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def main() -> None:
    """Answer requests until the grader closes the channel."""
    channel = Channel()
    settings = channel.receive()
    if settings.get("user"):  # in a container: another user than the grader's
        os.setgroups([])
        os.setgid(settings["user"])
        os.setuid(settings["user"])
    for file in Path(settings["files"]).glob("*"):
        (Path.cwd() / file.name).write_bytes(file.read_bytes())
    limit(settings["memory"], settings["file"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    filtered = refuse_calls()
    notebook = Notebook(channel, tuple(settings["off_limits"]))
    requests = {
        "run": notebook.run, "define": notebook.define, "look": notebook.look,
        "call": notebook.call,
    }  # fmt: skip
    channel.send({"ready": True, "filtered": filtered})
    while True:
        request = channel.receive()
        try:
            reply = requests[request["do"]](*request["with"])
        except MemoryError:
            reply = {"failed": "memory"}
        reply = {"reply": reply, "notes": notebook.notes[:20]}
        notebook.notes.clear()
        try:
            channel.send(reply)
        except (values.NotAValue, MemoryError) as error:
            failed = {"failed": "no value", "said": f"{error}"[:200]}
            channel.send({"reply": failed, "notes": []})


if __name__ == "__main__":
    main()
