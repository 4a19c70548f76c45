"""One process of a student's code, its requests, and the limits it is held to.

Limits count the processor time of that process, so they mean the same on a busy
machine and on an idle one. A process that neither computes nor waits for the processor
is idle; one that is idle for long is stopped as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from coursework import isolation
from coursework.sandbox import values

MEMORY = 4 << 30  # bytes of address space; numpy alone reserves about one GiB
FILE = 64 << 20  # bytes of one file
IDLE = 60.0  # seconds that a request may do nothing
WALL = 3600.0  # seconds of a request, whatever the machine does
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Died(Exception):
    """A student's process is gone; why, as the student should read it."""


class MachineTrouble(Exception):
    """The machine, not the submission, kept a request from its end."""


class Session:
    """A process of a student's code, in which some modules are off limits."""

    def __init__(
        self, kind: str, off_limits: Sequence[str] = (), files: Path | None = None
    ):
        self.notes: list[str] = []
        self.allowance = self.limit = 120.0  # processor seconds that are left, and all
        self.done = 0  # how many cells it has run; kept by its owner
        self.total = self.memory = 0.0  # processor seconds so far, and MB at the peak
        self._callbacks: list[Callable[..., Any]] = []
        self._home = Path(tempfile.mkdtemp(prefix="grading-"))
        read, write = os.pipe()
        home = self._home
        env = isolation.environment(str(home))
        if kind == "container":
            os.chown(home, isolation.NOBODY, isolation.NOBODY)
        started = (home / "started").open("wb")  # a worker closes its standard error
        self._process = subprocess.Popen(
            isolation.command(kind, off_limits, files, write),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=started,
            pass_fds=[write],
            env=env,
            cwd=None if kind == "bubblewrap" else home,
            start_new_session=True,
            bufsize=0,
        )
        os.close(write)
        started.close()
        self._out = self._process.stdout.fileno()  # type: ignore[union-attr]
        os.set_blocking(self._out, False)
        self._in = self._process.stdin.fileno()  # type: ignore[union-attr]
        os.set_blocking(self._in, False)
        self._pid = self._process.pid
        with open(read, "rb") as told:
            if kind == "bubblewrap":
                self._pid = _pid_told(told.read())
        where = "/tmp/files" if kind == "bubblewrap" else str(files)
        settings = {
            "off_limits": list(off_limits), "memory": MEMORY, "file": FILE,
            "files": where if files else "/nowhere",
            "user": isolation.NOBODY if kind == "container" else None,
        }  # fmt: skip
        try:
            self._send(settings)
            self.filtered = self._receive()["filtered"]
        except (Died, values.NotAValue) as error:
            told = Path(started.name).read_text("utf-8", "replace").splitlines()[-1:]
            self.close()
            why = " ".join([str(error), *told])
            raise MachineTrouble(f"no process could be started: {why}") from None

    def allow(self, seconds: float) -> None:
        """Let the requests from now on use so much of the processor, together."""
        self.allowance = self.limit = seconds
        self._callbacks.clear()

    def request(self, do: str, *given: Any) -> Any:
        """The reply to a request, taken off the allowance."""
        before = self._used()
        self._send({"do": do, "with": list(given)})
        while "callback" in (message := self._receive(before)):
            self._send(self._called_back(message))
        self.allowance -= self._used() - before
        if self.allowance < 0:  # also when nobody was there to see it in time
            self._stop_at_limit()
        self.memory = max(self.memory, self._peak())
        try:
            self.notes += [str(note)[:200] for note in message["notes"][:20]]
            return message["reply"]
        except (KeyError, TypeError) as error:
            raise Died("sent what is no answer") from error

    def _called_back(self, message: Any) -> dict[str, Any]:
        """Run a function of a check for the student's process."""
        try:
            function = self._callbacks[message["callback"]]
            return {"value": function(*message["args"], **message["kwargs"])}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}

    def _keep(self, function: Callable[..., Any]) -> int:
        self._callbacks.append(function)
        return len(self._callbacks) - 1

    def remote(self, number: int, name: str) -> Any:
        """The function of the student's process behind a handle."""
        return Handle(self, number, name)

    def _send(self, message: Any) -> None:
        rest = memoryview(values.encode(message, self._keep))
        start = time.monotonic()
        while rest:
            try:
                rest = rest[os.write(self._in, rest) :]
            except BlockingIOError:
                if time.monotonic() - start > WALL:
                    raise MachineTrouble("nothing was read for an hour") from None
                select.select([], [self._in], [], 1.0)
            except BrokenPipeError:
                raise Died(self._ended()) from None

    def _receive(self, before: float | None = None) -> dict[str, Any]:
        """The next message; Died when the process ends, passes a limit or forges."""
        before = self._used() if before is None else before
        try:
            message = values.decode(self._frame(before), self.remote)
            if not isinstance(message, dict):
                raise values.NotAValue(f"a {type(message).__name__}")
            return message
        except values.NotAValue as error:
            self.close()
            raise Died(f"sent what is no value: {error}") from None

    def _frame(self, before: float) -> bytes:
        """The bytes of the next message."""
        frame, idle, last, start = bytearray(), 0.0, self._used(), time.monotonic()
        seen = start
        while rest := values.missing(frame):
            if select.select([self._out], [], [], 0.1)[0]:
                if not (part := os.read(self._out, min(rest, 1 << 20))):
                    raise Died(self._ended())
                frame += part
                idle = 0.0
                if not values.missing(frame):
                    break
            used, now = self._used(), time.monotonic()
            if used - before > self.allowance:
                self._stop_at_limit()
            busy = used > last or self._state() in "RD"
            # What it did between two looks is not known when they are far apart.
            idle = 0.0 if busy else idle + min(now - seen, 0.5)
            last, seen = used, now
            if idle > IDLE:
                self.close()
                raise Died(f"did nothing for {IDLE:g} s, as if asleep")
            if now - start > WALL:
                self.close()
                raise MachineTrouble(f"a request took {WALL / 60:g} minutes")
        return bytes(frame)

    def _stop_at_limit(self) -> NoReturn:
        self.close()
        raise Died(f"needed more than {self.limit:g} s of processor time")

    def _stat(self) -> list[str]:
        try:
            text = Path(f"/proc/{self._pid}/stat").read_text()
        except OSError:
            return []
        return text.rpartition(")")[2].split()

    def _state(self) -> str:
        return (self._stat() or ["R"])[0]

    def _used(self) -> float:
        """Processor seconds of the process so far, as the system counts them."""
        usage = self._stat()
        if usage:
            self.total = (int(usage[11]) + int(usage[12])) / TICK
        return self.total

    def _peak(self) -> float:
        """The most memory in MB that the process has had."""
        try:
            lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        except OSError:
            return 0.0
        peaks = [line.split()[1] for line in lines if line.startswith("VmHWM")]
        return int(peaks[0]) / 1000 if peaks else 0.0

    def _ended(self) -> str:
        code = self._process.wait()
        number = code - 128 if code > 128 else -code
        names = {int(s): s.name for s in signal.Signals}
        if number in names and code:
            return f"ended its process ({names[number]}: often memory or recursion)"
        return f"ended its process (exit code {code})"

    @property
    def alive(self) -> bool:
        """Tell whether requests can be made."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process and remove its scratch folder."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        shutil.rmtree(self._home, ignore_errors=True)


class Handle:
    """A function of the student's process that came inside of a value."""

    def __init__(self, session: Session, number: int, name: str):
        self._session, self._number, self.__name__ = session, number, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function."""
        reply = self._session.request("call", self._number, args, kwargs, False)
        if "value" not in reply:
            raise RuntimeError(f"{self.__name__} failed when it was called")
        return reply["value"]


def _pid_told(info: bytes) -> int:
    try:
        return int(json.loads(info)["child-pid"])
    except (ValueError, KeyError) as error:
        raise MachineTrouble("the sandbox did not start") from error
