"""Run a notebook that was handed in: its cells shut in, its checks apart from them.

A cell of the student runs in a :class:`~coursework.session.Session`. A check runs in
this process, from the instructor's source, in a namespace where the names of answers
stand for calls into a session, by value. Hidden parts call a session of their own, so
the process whose output the student sees never met a hidden input. A process that
dies is replaced, and all cells but the one that killed it are run again.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from coursework import plan
from coursework.session import Died, MachineTrouble, Session
from lib.coursework import CheckFailed

CHECK_SECONDS = 600  # of the processor, for what a check computes by itself
RAISED = {name for name in dir(builtins) if name[0].isupper()}
RAISED |= {"LinAlgError", "AxisError", "OffLimits", "LimitReached", "CheckFailed"}
TROUBLES = (
    "LimitReached", "MemoryError", "SyntaxError", "IndentationError", "TabError",
    "OffLimits",
)  # fmt: skip


class Remote:
    """An answer: a function of the student's process, by its name."""

    def __init__(self, run: Execution, name: str):
        self._run, self.__name__ = run, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, whatever modules are off limits."""
        return self.watched(args, kwargs)[0]

    def watched(
        self,
        args: Any,
        kwargs: Any,
        off_limits: tuple[str, ...] | None = None,
        measure: bool = False,
    ) -> tuple[Any, float]:
        """Value, and peak memory in MB if measured; CheckFailed as Answer says."""
        return self._run.call(self.__name__, args, kwargs, off_limits, measure)


class Execution:
    """One notebook, from its first cell to its last."""

    def __init__(
        self,
        source: NotebookNode,
        kind: str,
        limits: dict[str, Any],
        files: Path | None = None,
    ):
        self.notes: list[str] = []
        self.used: dict[str, float] = {}  # processor seconds of each cell
        self._steps, self._kind, self._files = plan.steps(source), kind, files
        self._limits, self._secret = limits, plan.hidden_lines(source)
        self._sessions: dict[tuple[str, tuple[str, ...]], Session] = {}
        self._every: list[Session] = []  # that there were
        self._log: list[tuple[str, str, str]] = []  # what cells a session has to run
        self._fatal: set[int] = set()
        self._phase, self._now = "shown", 0.0
        self._touched: list[Session] = []  # by the check at hand
        self._passed: set[str] = set()  # checks that came before
        space: dict[str, Any] = {}
        for step in self._steps.values():
            if step.given == "locked":
                exec(step.visible, space)
        self._main = tuple(space.get("OFF_LIMITS", ()))

    def run(self, cells: list[NotebookNode], start: int = 0) -> Iterator[Any]:
        """Number and outputs of each cell of code from ``start`` on."""
        try:
            for number, cell in enumerate(cells):
                if cell.cell_type != "code":
                    continue
                name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
                step = self._steps.get(name)
                if step is not None and step.given == "check":
                    outputs = self._check(name, step) if number >= start else []
                    self._passed.add(name)
                    self._log.append((name, "define", plan.definitions(step.visible)))
                else:
                    source = step.visible if step and step.given != "answer" else ""
                    self._log.append((name or f"{number + 1}", "run", source or
                                      cell.source))  # fmt: skip
                    outputs = self._cell() if number >= start else []
                if number >= start:
                    yield number, outputs
        finally:
            for session in self._sessions.values():
                session.close()

    def cost(self) -> dict[str, float]:
        """Processor seconds of the student's processes, and the most memory of one."""
        seconds = sum(session.total for session in self._every)
        most = max((session.memory for session in self._every), default=0.0)
        return {"cpu_seconds": seconds, "memory_mb": most}

    def limit(self, name: str) -> float:
        """Processor seconds of a cell or a check."""
        return float(self._limits["checks"].get(name, self._limits["floor"]))

    def _session(self, off_limits: tuple[str, ...], phase: str) -> Session:
        """A session that has run every cell up to now, but those that killed one."""
        key = phase, off_limits
        session = self._sessions.get(key)
        while True:
            if session is not None and not session.alive:
                session.close()
            if session is None or not session.alive:
                session = Session(self._kind, off_limits, self._files)
                self._every.append(session)
                self._sessions[key] = session
            try:
                while session.done < len(self._log):
                    self._next(session)
                return session
            except Died as error:
                name = self._log[session.done][0]
                self._fatal.add(session.done)
                self.notes.append(f"cell {name} {error}")

    def _next(self, session: Session) -> Any:
        """Run the next cell in a session; what it printed and showed."""
        name, do, source = self._log[session.done]
        session.allow(self.limit(name))
        reply = {}
        if session.done not in self._fatal:
            reply = session.request(do, source)
        session.done += 1
        self.used[name] = max(
            self.used.get(name, 0.0), session.limit - session.allowance
        )
        return reply

    def _cell(self) -> list[Any]:
        """Run a cell of the student and return its outputs."""
        number = len(self._log) - 1
        last, self._log = self._log[-1], self._log[:-1]
        session = self._session(self._main, "shown")
        self._log.append(last)
        name = last[0]
        try:
            reply = self._next(session)
            self._collect(session, name)
            return self._outputs(reply, name)
        except Died as error:
            self._fatal.add(number)
            self.notes.append(f"cell {name} {error}")
            return [_error("Stopped", f"this cell {error}")]

    def _collect(self, session: Session, name: str) -> None:
        self.notes += [f"cell {name}: {note}" for note in session.notes]
        session.notes.clear()

    def _outputs(self, reply: Any, name: str) -> list[Any]:
        """Output of a student's cell, but for what must stay secret."""
        if "failed" in reply:
            self.notes.append(f"cell {name}: its output could not be kept")
            return [_error("Stopped", "this cell needed too much memory")]
        made = []
        try:
            if reply["printed"]:
                made.append(new_output("stream", name="stdout", text=reply["printed"]))
            for data in reply["shown"]:
                made.append(new_output("display_data", data=dict(data)))
            if reply["trouble"]:
                kind, said, lines = reply["trouble"]
                made.append(_error(str(kind), str(said), [str(x) for x in lines]))
                if kind in TROUBLES:
                    self.notes.append(f"{kind} in cell {name}")
        except (KeyError, TypeError, ValueError):
            self.notes.append(f"cell {name}: sent what is no output")
            return []
        if leak := self.leaks(str(made)):
            self.notes.append(f"cell {name}: its output was dropped, it has {leak}")
            return []
        return made

    def leaks(self, text: str) -> str:
        """First secret that stands in a text, '' for none."""
        if self._limits.get("seed") and self._limits["seed"] in text:
            return "the seed of the term"
        if any(line in text for line in self._secret):
            return "a hidden part"
        return ""

    def _check(self, name: str, step: plan.Step) -> list[Any]:
        """Run a check; what it printed, and why it failed."""
        printed = io.StringIO()
        error = None
        self._now, self._touched = self.limit(name), list[Session]()
        parts = [("shown", step.visible), ("hidden", step.hidden)]
        try:
            with warnings.catch_warnings(action="ignore"), _at_most(CHECK_SECONDS):
                space = self._space(name)
                for self._phase, source in parts:
                    with contextlib.redirect_stdout(printed):
                        exec(compile(source, f"<check {name}>", "exec"), space)
        except MachineTrouble:
            raise
        except Exception as caught:
            error = _sentence(caught, self._answers(name))
        self.used[name] = max((s.limit - s.allowance for s in self._touched), default=0)
        for session in self._touched:
            self._collect(session, name)
        outputs = []
        if text := printed.getvalue():
            outputs.append(new_output("stream", name="stdout", text=text))
        lines = [x for x in text.splitlines() if x.startswith("passed: ")]
        wanted = self._limits.get("passed", {}).get(name, lines)
        if error is None and lines != wanted:
            self.notes.append(f"check {name} did not print the lines of the reference")
        if error is not None:
            outputs.append(_error(*error))
        return outputs

    def _answers(self, name: str) -> list[str]:
        """Names that the answers before a check define."""
        answers: list[str] = []
        for key, step in self._steps.items():
            if key == name:
                break
            answers += step.names
        return answers

    def _space(self, name: str) -> dict[str, Any]:
        """The namespace of a check, with a stand-in for each answer."""
        space: dict[str, Any] = {"__name__": "__main__"}
        for key, step in self._steps.items():
            if key == name:
                break
            if step.given == "locked":
                exec(step.visible, space)
            if step.given == "check":
                for part in (step.visible, step.hidden):
                    exec(plan.definitions(part), space)
        session = self._ready(self._main, "shown")
        try:
            answer = session.request("look", self._answers(name))
        except Died as error:
            raise CheckFailed(f"the notebook {error}") from None
        for key in self._answers(name):
            if key in answer:
                value = answer[key]
                space[key] = Remote(self, key) if callable(value) else value
        return space

    def _ready(self, off_limits: tuple[str, ...], phase: str) -> Session:
        """A session with the allowance of the check at hand."""
        session = self._session(off_limits, phase)
        if session not in self._touched:
            self._touched.append(session)
            session.allow(self._now)
        return session

    def call(
        self,
        name: str,
        args: Any,
        kwargs: Any,
        off_limits: tuple[str, ...] | None,
        measure: bool,
    ) -> tuple[Any, float]:
        """Value of an answer of the student, and the memory that it took."""
        limits = self._main if off_limits is None else tuple(off_limits)
        shown = self._phase == "shown"
        try:
            session = self._ready(limits, self._phase)
            reply = session.request("call", name, args, kwargs, measure)
        except Died as error:
            self.notes.append(f"{name} {error}")
            raise CheckFailed(f"{name} {error}") from None
        if "value" in reply:
            return reply["value"], reply.get("peak") or 0.0
        raise CheckFailed(f"{name} {_why(reply, limits, shown, self._log)}")


def _why(reply: Any, off_limits: Any, shown: bool, log: Any) -> str:
    """Reason of a call that failed. Of hidden inputs nothing is told, by any means."""
    said = str(reply.get("said", ""))[:300]
    match reply.get("failed"):
        case "unwritten":
            return "is not written yet"
        case "changes":
            return "changes its arguments; work on a copy"
        case "off limits":
            every = tuple(off_limits)
            used = said if shown else ", ".join(m for m in every if m in said)
            return f"calls what is off limits here: {used}"
        case "memory":
            return "needed more memory than there is while grading"
        case "no function":
            return "is not a function any more"
        case "raised" if shown:
            return said
        case "raised":
            kind = reply.get("kind") if reply.get("kind") in RAISED else "an exception"
            line = str(reply.get("line", "")).strip()
            known = line and any(line in source for _, _, source in log)
            return f"raised {kind}" + (f", at `{line}`" if known else "")
    return "returned what is no value" + (f": {said}" if shown and said else "")


def _sentence(error: Exception, answers: list[str]) -> tuple[str, str]:
    if isinstance(error, CheckFailed):
        return "CheckFailed", str(error)
    if isinstance(error, NameError) and error.name in answers:
        return ("CheckFailed", f"{error.name} is not defined: no cell defines it")
    if isinstance(error, Died):
        return "CheckFailed", f"the notebook {error}"
    told = f"{type(error).__name__}: {error}"[:300]
    return "CheckFailed", f"the value of the answer cannot be used: {told}"


def _error(kind: str, said: str, lines: list[str] | None = None) -> Any:
    return new_output(
        "error", ename=kind, evalue=said, traceback=lines or [f"{kind}: {said}"]
    )


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """CheckFailed in a check that computes for too long by itself."""

    def stop(*args: Any) -> None:
        raise CheckFailed("the check does not end on the values of this answer")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
