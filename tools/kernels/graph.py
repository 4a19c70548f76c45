"""Arrays that carry an example and record what numpy does with them.

Checks, branches and loops look at the example; what numpy computes is written down as
a graph, for sizes that are letters. A branch on a recorded value becomes a guard. A
value that would leave the graph, and with it become a constant of the example, is
refused.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from numbers import Integral, Real
from operator import mul
from typing import Any, NamedTuple

import numpy as np

Size = int | str  # a letter where the size is free
Shape = tuple[Size, ...]
INNER = {f"{__package__}.{name}" for name in ("graph", "rules", "recorder")}


class Refused(Exception):
    """A refusal to record: the function, the line, the operation."""


class Along(NamedTuple):
    """An axis of a view, in the place where its source has an axis."""

    axis: int
    start: int = 0


@dataclass(frozen=True, eq=False)
class Node:
    """A value of the graph: an operation on other values."""

    op: str
    args: tuple[Node, ...]
    data: Any
    shape: Shape
    number: int


def place() -> tuple[str, str]:
    """The innermost function that is neither of numpy nor of this package.

    Its name as module:name, and the same with its line.
    """
    frame = sys._getframe(1)
    while frame.f_back:
        module = frame.f_globals.get("__name__", "")
        if module not in INNER and module.split(".")[0] not in ("numpy", "unittest"):
            break
        frame = frame.f_back
    code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    name = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"
    return name, f"{name}, line {frame.f_lineno} (`{code}`)"


def refuse(what: str) -> Refused:
    return Refused(f"{place()[1]}: {what}")


@dataclass
class Graph:
    """Nodes, each once, and the branches that were taken.

    ``rules`` say what numpy's functions are (:mod:`tools.kernels.rules`); ``exempt``
    says of functions why they may branch on a value, or use it, without a guard.
    """

    rules: Any
    exempt: Mapping[str, str] = field(default_factory=dict)
    guards: dict[tuple[Node, bool], None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)  # of the exempt functions
    known: dict[Any, Node] = field(default_factory=dict)
    alive: list[weakref.ref[Traced]] = field(default_factory=list)
    sizes: dict[str, Traced] = field(default_factory=dict)

    def node(
        self, op: str, args: tuple[Node, ...] = (), data: Any = None, shape: Shape = ()
    ) -> Node:
        key = op, tuple(each.number for each in args), repr(data), shape
        if key not in self.known:
            self.known[key] = Node(op, args, data, tuple(shape), len(self.known))
        return self.known[key]

    def of(self, value: Any) -> Node:
        """The node of a recorded value, or of a constant."""
        if isinstance(value, Traced):
            return value.node
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise refuse(f"a constant of type {array.dtype}")
        if array.ndim == 0:
            return self.node("literal", data=array.item())
        entries = tuple(array.ravel().tolist())
        return self.node("constant", data=entries, shape=array.shape)

    def traced(self, node: Node, example: Any) -> Traced:
        example = np.asarray(example)
        whole = node.op in ("size", "input") and example.dtype.kind == "i"
        kind = Traced if node.shape else Count if whole else Number
        return kind(self, node, example)

    def leave(self, what: str) -> None:
        """Let a value leave the graph where that is exempt, and refuse it elsewhere."""
        if not self.exempts():
            raise refuse(what)

    def exempts(self) -> bool:
        """Tell whether the function that runs, or one around it, is exempt."""
        name = place()[0].split(".<locals>")[0]
        self.used |= {name} & self.exempt.keys()
        return name in self.exempt


def broadcast(*shapes: Shape) -> Shape:
    """The common shape. A free size fits itself and 1 only."""
    out: list[Size] = []
    for back in range(max(map(len, shapes), default=0), 0, -1):
        sizes = {shape[-back] for shape in shapes if len(shape) >= back} - {1}
        if len(sizes) > 1:
            raise refuse(f"sizes {' and '.join(sorted(map(str, sizes)))} meet")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def require_float(dtype: Any) -> None:
    if np.dtype(dtype) != np.float64:
        raise refuse(f"no rule for values of type {np.dtype(dtype)}")


def example_of(value: Any) -> Any:
    """The same with examples in place of recorded values."""
    if isinstance(value, Traced):
        return value.current()
    if isinstance(value, list | tuple):
        return type(value)(map(example_of, value))
    return value


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the graph, with its example."""

    __hash__ = object.__hash__

    def __init__(self, graph: Graph, node: Node, example: np.ndarray):
        self.graph, self._node, self.example = graph, node, example
        self.stale = ""
        graph.alive.append(weakref.ref(self))

    def current(self) -> np.ndarray:
        if self.stale:
            raise refuse(
                f"the array was changed by another name of it, in {self.stale}"
            )
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
    T = property(lambda self: np.transpose(self))
    mT = property(lambda self: np.swapaxes(self, -1, -2))

    @property
    def size(self) -> int | Traced:
        return reduce(mul, self.shape, 1)

    def astype(self, dtype: Any, copy: bool = True) -> Traced:
        require_float(dtype)
        return np.copy(self) if copy else self

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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refuse(f"no rule for .{name}")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refuse("no rule for writing into a part of an array")

    # What numpy computes.

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        made = self.graph.rules.apply(self.graph, ufunc, method, inputs, options)
        return made if out is None else written(out[0], made)

    def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
        return self.graph.rules.call(self.graph, func, args, kw)

    def __getitem__(self, key: Any) -> Traced:
        return self.graph.rules.index(self.graph, self, key)


def written(into: Any, made: Traced) -> Traced:
    """Give the array ``into`` the value just made, as numpy does for out= and +=.

    Whatever else shares its memory has lost its value.
    """
    if not isinstance(into, Traced) or into._node.shape != made.node.shape:
        raise refuse("a recorded value is written into another array")
    into.current()[...] = made.example
    for reference in into.graph.alive:
        each = reference()
        if each is not None and np.may_share_memory(each.example, into.example):
            each.stale = "" if each is into else place()[1]
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


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args, **options: getattr(np, name)(self, *args, **options)


for _name in ("all", "any", "copy", "max", "mean", "min", "sum", "swapaxes"):
    setattr(Traced, _name, _method(_name))
