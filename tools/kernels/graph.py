"""Arrays that carry an example and record what numpy does with them.

Checks, branches and loops look at the example; what numpy computes is written down as
a graph, for sizes that are letters. A branch on a recorded value becomes a guard. A
value that would leave the graph, and with it become a constant of the example, is
refused.
"""

from __future__ import annotations

import linecache
import re
import sys
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Integral, Real
from operator import mul
from typing import Any

import numpy as np

Size = int | str  # a letter where the size is free
Shape = tuple[Size, ...]
INNER = re.compile(rf"(numpy|{__package__}\.(graph|recorder))\b")
METHODS = {"all", "any", "copy", "max", "mean", "min", "sum", "swapaxes"}


class Refused(Exception):
    """A refusal to record: the function, the line, the operation."""


@dataclass(frozen=True, eq=False)
class Node:
    """A value of the graph: an operation on other values."""

    op: str
    args: tuple[Node, ...] = ()
    data: Any = None
    shape: Shape = ()


def place() -> tuple[str, str]:
    """The innermost function that is not of numpy or of this package, and its line."""
    frame = sys._getframe(1)
    while frame.f_back and INNER.match(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    name = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"
    return name, f"{name}, line {frame.f_lineno} (`{code}`)"


def refuse(what: str) -> Refused:
    return Refused(f"{place()[1]}: {what}")


def free(shape: Shape) -> tuple[str, ...]:
    """The free sizes of a shape."""
    return tuple(size for size in shape if isinstance(size, str))


def require_float(dtype: Any) -> None:
    if np.dtype(dtype) != np.float64:
        raise refuse(f"no rule for values of type {np.dtype(dtype)}")


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the graph, with its example."""

    __hash__ = object.__hash__

    def __init__(self, graph: Any, node: Node, example: np.ndarray):
        self.graph, self._node, self.example = graph, node, example
        self.stale = ""
        graph.alive[id(self)] = self

    def current(self) -> np.ndarray:
        if self.stale:
            raise refuse(self.stale)
        return self.example

    @property
    def node(self) -> Node:
        self.current()
        return self._node

    # What may be asked of an array without looking at its values.

    @property
    def shape(self) -> tuple[int | Traced, ...]:
        return tuple(self.graph.sizes.get(size, size) for size in self._node.shape)

    ndim = property(lambda self: len(self._node.shape))
    dtype = property(lambda self: self.example.dtype)
    size = property(lambda self: reduce(mul, self.shape or (1,)))
    T = property(lambda self: np.transpose(self))
    mT = property(lambda self: np.swapaxes(self, -1, -2))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        require_float(dtype)
        return np.copy(self) if copy else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in METHODS:
            raise refuse(f"no rule for .{name}")
        return partial(getattr(np, name), self)

    # Ways out of the graph.

    def __bool__(self) -> bool:
        seen = bool(self.current())
        if not self.graph.exempts():
            truth = self if self.dtype == bool else self != 0  # NaN is true in Python
            self.graph.guards[truth.node, seen] = None
        return seen

    def __float__(self) -> float:
        self.graph.leave("float() makes a constant of a value")
        return float(self.current())

    def __int__(self) -> int:
        self.graph.leave("int() makes a constant of a value")
        return int(self.current())

    def __index__(self) -> int:
        self.graph.leave("an index, a range or a size is a value")
        return int(self.current())

    def __len__(self) -> int:
        if isinstance(self._node.shape[0], str):
            self.graph.leave("len() makes a constant of a size")
        return len(self.example)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.graph.leave("an array of numbers is made of a recorded one")
        return self.current()

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    # What numpy computes.

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        made = self.graph.apply(ufunc, method, inputs, options)
        return made if out is None else written(out[0], made)

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        return self.graph.call(func, args, kw)

    def __getitem__(self, key: Any) -> Any:
        return self.graph.index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refuse("no rule for writing into a part of an array")


def written(into: Any, made: Traced) -> Traced:
    """Give the array ``into`` the value just made, as numpy does for out= and +=.

    Whatever else shares its memory has lost its value.
    """
    if not isinstance(into, Traced) or into._node.shape != made.node.shape:
        raise refuse("a recorded value is written into another array")
    into.current()[...] = made.example
    stale = f"the array was changed by another name of it, in {place()[1]}"
    for each in list(into.graph.alive.values()):
        if np.may_share_memory(each.example, into.example):
            each.stale = "" if each is into else stale
    into._node = made.node
    return into


class Number(Traced):
    """A recorded number. It is a real number for whoever asks."""

    def item(self) -> Number:
        """The number itself: it does not leave the graph."""
        return self


class Count(Number):
    """A recorded whole number: a size, or an input that is one."""


Real.register(Number)
Integral.register(Count)
