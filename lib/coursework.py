"""Checks for problem sets: what fails, on which input, and never the answer.

A set is a notebook. The student's function is wrapped by :class:`Answer`, which watches
what it calls, and its values go to :func:`agree` and :func:`holds`. A passing check
prints one line; a failing one raises :class:`CheckFailed` with one sentence.
"""

from __future__ import annotations

import copy
import hashlib
import os
import sys
import traceback
import tracemalloc
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

#: Environment variable with the seed of a term, any text; ``"public"`` where unset.
TERM = "ATTENTION_LIMIT_TERM"


class CheckFailed(AssertionError):
    """A property that an answer lacks, in one sentence."""

    def _render_traceback_(self) -> list[str]:
        """Give IPython the sentence alone to print, without the lines of the check."""
        return [f"CheckFailed: {self}"]


def term_generator(name: str) -> np.random.Generator:
    """Generator of one term for one purpose: the seed of the term hashed with ``name``.

    Numbers of a problem come from one name and hidden inputs from another, so that
    the first tell nothing about the second.
    """
    text = f"{os.environ.get(TERM) or 'public'}\0{name}"
    return np.random.default_rng(
        int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    )


class Answer:
    """A student's function, watched while it is called.

    ``off_limits`` lists modules, as in ``("lib.sinkhorn", "ot")``. A call raises
    :class:`CheckFailed` when the function is not written, raises, changes an
    argument, or runs code of one of these modules, also when it hides that.
    """

    def __init__(self, function: Callable[..., Any], off_limits: Sequence[str] = ()):
        if not callable(function):
            raise CheckFailed(
                f"a function was expected, not the {type(function).__name__}"
                f" {str(function):.60}"
            )
        if isinstance(off_limits, str):
            raise ValueError(f"off_limits must list modules, got {off_limits!r}")
        self._function = function
        self._name = getattr(function, "__name__", "the answer")
        self._off_limits = tuple(off_limits)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function; CheckFailed as the class says."""
        if (watched := getattr(self._function, "watched", None)) is not None:
            # While grading, the function is in another process, which watches it.
            return watched(args, kwargs, self._off_limits)[0]
        given, called = copy.deepcopy((args, kwargs)), set[str]()
        before = sys.getprofile()
        sys.setprofile(self._watch(called))
        try:
            value = self._function(*args, **kwargs)
        except NotImplementedError:
            raise CheckFailed(f"{self._name} is not written yet") from None
        except Exception as error:
            if not called:
                raise CheckFailed(f"{self._name} {describe_error(error)}") from None
        finally:
            sys.setprofile(before)
        if called:
            names = ", ".join(sorted(called))
            raise CheckFailed(f"{self._name} calls what is off limits here: {names}")
        if not same_values(given, (args, kwargs)):
            raise CheckFailed(f"{self._name} changes its arguments; work on a copy")
        return value

    def measured(self, *args: Any) -> tuple[Any, float]:
        """The value of the function, and the memory in MB that it took at its peak."""
        if (watched := getattr(self._function, "watched", None)) is not None:
            value, peak = watched(args, {}, self._off_limits, True)
            return value, float(peak)
        tracemalloc.start()
        try:
            return self(*args), tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()

    def _watch(self, called: set[str]) -> Callable[[FrameType, str, Any], None]:
        def watch(frame: FrameType, event: str, arg: Any) -> None:
            # The first call into the module is named, not those it leads to.
            entered = self._is_off(frame) and not self._is_off(frame.f_back)
            if event == "call" and entered:
                called.add(f"{_module(frame)}.{frame.f_code.co_name}")

        return watch

    def _is_off(self, frame: FrameType | None) -> bool:
        module = _module(frame)
        return any(f"{module}.".startswith(f"{name}.") for name in self._off_limits)


def lean(answer: Answer, *args: Any, megabytes: float, on: str) -> Any:
    """Value of ``answer(*args)``; CheckFailed if it held more than ``megabytes``.

    The peak of what Python and numpy allocate during the call counts.
    """
    value, peak = answer.measured(*args)
    holds(f"it needs at most {megabytes:g} MB", peak <= megabytes, on=on)
    return value


def agree(
    what: str,
    got: Any,
    expected: npt.ArrayLike,
    *,
    on: str,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Check ``|got - expected| <= atol + rtol * |expected|``, entry by entry.

    ``what`` names the value and ``on`` the kind of input. CheckFailed says that a
    shape, a NaN or the size of the error is wrong, not which number was expected.
    """
    if not rtol + atol > 0:
        raise ValueError(f"rtol + atol must be positive, got {rtol + atol}")
    value, wanted = _numbers(what, got, on), np.asarray(expected, dtype=float)
    if value.shape != wanted.shape:
        raise CheckFailed(
            f"{what} should have the shape {wanted.shape}, not {value.shape} (on {on})"
        )
    if not np.isfinite(value).all():
        raise CheckFailed(f"{what} should be finite (on {on})")
    excess = np.abs(value - wanted) - (atol + rtol * np.abs(wanted))
    if (excess > 0).any():
        worst = np.abs(value - wanted).max() / (np.abs(wanted).max() or 1.0)
        raise CheckFailed(f"{what} is off by {worst:.1g} of its size (on {on})")
    print(f"passed: {what} (on {on})")


def holds(what: str, condition: Any, *, on: str) -> None:
    """Check a property: ``what`` states it and ``on`` names the kind of input."""
    if not np.all(condition):
        raise CheckFailed(f"it should be true that {what} (on {on})")
    print(f"passed: {what} (on {on})")


def _module(frame: FrameType | None) -> str:
    return str(frame.f_globals.get("__name__")) if frame else ""


def _numbers(what: str, value: Any, on: str) -> npt.NDArray[np.float64]:
    try:
        array = np.asarray(value)
    except ValueError:
        raise CheckFailed(f"{what} should be a rectangular array (on {on})") from None
    if array.dtype.kind not in "fiu":
        raise CheckFailed(
            f"{what} should be real numbers, not {type(value).__name__}"
            f" of type {array.dtype} (on {on})"
        )
    return array.astype(float)


def describe_error(error: Exception) -> str:
    """The exception and the student's line it came from."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # without the call above
    own = [f for f in frames if f.line and "site-packages" not in f.filename]
    place = f", at `{own[0].line}`" if own else ""
    return f"raised {type(error).__name__}: {str(error)[:200]}{place}"


def same_values(one: Any, two: Any) -> bool:
    """Equality of nested arguments, arrays by their entries (NaN equals NaN)."""
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and np.array_equal(
            one, two, equal_nan=one.dtype.kind == "f"
        )
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(same_values, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(
            same_values(one[k], two[k]) for k in one
        )
    if isinstance(one, np.random.Generator):
        return True  # it is meant to advance
    return bool(one == two) if isinstance(one, int | float | str) else True
