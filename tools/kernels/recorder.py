"""A function of ``lib``, recorded: what numpy's functions are in the graph.

A function of numpy without a rule is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from inspect import signature
from operator import mul
from types import EllipsisType
from typing import Any
from unittest import mock
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from scipy.spatial import distance

from tools.kernels.graph import (
    Count,
    Node,
    Number,
    Refused,
    Shape,
    Size,
    Traced,
    free,
    place,
    refuse,
    require_float,
)
from tools.kernels.operations import OPERATIONS, REDUCTIONS

KEYS = int | np.integer | slice | EllipsisType | None  # of an index
# What of numpy arranges entries and does nothing else.
VIEWS = {"copy", "diagonal", "expand_dims", "matrix_transpose", "swapaxes", "transpose"}
# What makes arrays of sizes or of a list, which numpy does not hand over.
CREATING = "arange", "asarray", "eye", "full", "ones", "zeros"


@dataclass(frozen=True)
class Program:
    """A recording: the free sizes, outputs by name, and what the branches saw."""

    letters: tuple[str, ...]
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Node]
    guards: tuple[tuple[Node, bool], ...]


def record(
    function: Callable[..., Mapping[str, Any]],
    inputs: Mapping[str, Shape],
    example: Mapping[str, Any],
    exempt: Mapping[str, str],
) -> Program:
    """Record ``function``, which gives outputs by name, on inputs like the example."""
    g, given = Recorder(exempt), {}
    for name, shape in inputs.items():
        value = np.array(example[name])
        for size, known in zip(shape, value.shape, strict=True):
            if isinstance(size, str) and size not in g.sizes:
                g.sizes[size] = g.traced(g.node("size", (), size), known)
        given[name] = g.traced(g.node("input", (), name, shape), value)
    with g.creating(), np.errstate(all="ignore"):
        outputs = {k: g.lifted(v).node for k, v in function(**given).items()}
    if unused := exempt.keys() - g.used:
        raise Refused(f"{', '.join(sorted(unused))}: exempt for nothing")
    return Program(tuple(g.sizes), inputs, outputs, tuple(g.guards))


class Recorder:
    """A graph: nodes, each once, and the branches that were taken.

    ``exempt`` says of functions why they may branch on a value, or use it, without a
    guard.
    """

    def __init__(self, exempt: Mapping[str, str]):
        self.exempt, self.used = exempt, set[str]()
        self.guards: dict[tuple[Node, bool], None] = {}
        self.known: dict[Any, Node] = {}
        self.alive: WeakValueDictionary[int, Traced] = WeakValueDictionary()
        self.sizes: dict[str, Traced] = {}

    def node(self, *fields: Any) -> Node:
        made = Node(*fields)
        # 1 and True are equal, but other data.
        key = made.op, made.args, repr(made.data), made.shape
        return self.known.setdefault(key, made)

    def traced(self, node: Node, example: Any) -> Traced:
        example = np.asarray(example)
        whole = node.op in ("size", "input") and example.dtype.kind == "i"
        kind = Traced if node.shape else Count if whole else Number
        return kind(self, node, example)

    def lifted(self, value: Any) -> Traced:
        """A recorded value, or a constant as one."""
        if isinstance(value, Traced):
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise refuse(f"a constant of type {array.dtype}")
        entries = tuple(array.ravel().tolist())
        return self.traced(self.node("constant", (), entries, array.shape), array)

    def exempts(self) -> bool:
        """Tell whether the function that runs, or one around it, is exempt."""
        name = place()[0].split(".<locals>")[0]
        self.used |= {name} & self.exempt.keys()
        return name in self.exempt

    def leave(self, what: str) -> None:
        """Let a value leave the graph where that is exempt, and refuse it elsewhere."""
        if not self.exempts():
            raise refuse(what)

    # Where numpy is called.

    def apply(self, ufunc: Any, method: str, inputs: Any, options: Any) -> Any:
        """Record a call of a ufunc."""
        name = ufunc.__name__
        if options:
            raise refuse(f"no rule for numpy.{name} with {', '.join(options)}")
        if method == "outer":
            one, other = inputs
            return ufunc(one[(..., *[None] * np.ndim(other))], other)
        if method != "__call__":
            raise refuse(f"no rule for numpy.{name}.{method}")
        return RULES.get(name, partial(_elementwise, ufunc))(self, *inputs)

    def call(self, func: Any, args: Any, options: Any) -> Any:
        """Record a call of a function of numpy."""
        name = func.__name__
        if name in ("ndim", "shape", "size"):
            return getattr(args[0], name)
        if name in VIEWS:
            return _view(self, args[0], lambda x: func(x, *args[1:], **options))
        if name not in RULES:
            raise refuse(f"no rule for numpy.{name}")
        try:
            signature(RULES[name]).bind(self, *args, **options)
        except TypeError as error:
            raise refuse(f"no rule for this call of numpy.{name}: {error}") from None
        return RULES[name](self, *args, **options)

    def index(self, x: Traced, key: Any) -> Traced:
        """Record x[key], for whole numbers, slices, None and an ellipsis."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if not all(isinstance(each, KEYS) for each in keys):
            raise refuse(f"no rule for the index {key!r}")
        for k, each in enumerate(keys):
            if isinstance(each, slice) and isinstance(each.stop, Traced):
                axis = sum(one is not None for one in keys[:k])
                if ... in keys[:k]:
                    axis = -sum(one is not None for one in keys[k:])
                if x.shape[axis] is each.stop:  # the whole axis, at any of its sizes
                    keys[k] = slice(each.start, None)
        return _view(self, x, lambda array: array[tuple(keys)], key=key)

    @contextmanager
    def creating(self) -> Iterator[None]:
        """numpy's functions that make arrays, for recorded sizes and numbers."""

        def made(known: Any, *args: Any, **options: Any) -> Any:
            if not _recorded(args):
                return known(*args, **options)
            for each in (*args, *options.values()):
                if isinstance(each, type | np.dtype):
                    require_float(each)
            return RULES[known.__name__](self, *args)

        cdist = partial(made, distance.cdist)
        patched: dict[str, Any] = {n: partial(made, getattr(np, n)) for n in CREATING}
        with (
            mock.patch.multiple(np, **patched),
            mock.patch.object(distance, "cdist", cdist),
        ):
            yield


def _recorded(value: Any) -> bool:
    inner = value if isinstance(value, list | tuple) else ()
    return isinstance(value, Traced) or any(map(_recorded, inner))


# Elementwise operations.


def _elementwise(function: Any, g: Recorder, *inputs: Any) -> Traced:
    arrays = [g.lifted(each) for each in inputs]
    example, name = function(*(x.current() for x in arrays)), function.__name__
    if example.dtype == bool:  # where ~ and & are ! and &&
        name = name.replace("invert", "bitwise_not").replace("bitwise", "logical")
    if name not in OPERATIONS or name in ("add", "multiply") and example.dtype == bool:
        raise refuse(f"no rule for numpy.{name} of {example.dtype}")
    if name.startswith("logical"):
        _require_truth(name, *arrays)
    nodes = tuple(x.node for x in arrays)
    shape = _common([node.shape for node in nodes])
    return g.traced(g.node(name, nodes, None, shape), example)


def _common(shapes: Sequence[Shape]) -> Shape:
    """The shape of arrays that meet. A free size fits itself and 1 only."""
    out: list[Size] = []
    for back in range(max(map(len, shapes)), 0, -1):
        sizes = {shape[-back] for shape in shapes if len(shape) >= back} - {1}
        if len(sizes) > 1:
            raise refuse(f"sizes {' and '.join(sorted(map(str, sizes)))} meet")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def _require_truth(name: str, *arrays: Traced) -> None:
    """Of numbers JavaScript has another opinion: there NaN is false."""
    if any(x.dtype != bool for x in arrays):
        raise refuse(f"no rule for {name} of numbers")


def _power(g: Recorder, x: Any, exponent: Any) -> Any:
    """Roots and small powers, as numpy computes them."""
    if isinstance(exponent, int | float) and exponent in (0.5, 1, 2, 3, 4):
        return np.sqrt(x) if exponent == 0.5 else reduce(mul, [x] * int(exponent))
    return _elementwise(np.power, g, x, exponent)


# The same entries in another arrangement.


def _view(
    g: Recorder, given: Any, arrange: Any, shape: Shape | None = None, key: Any = None
) -> Traced:
    """The array as ``arrange`` makes it, by what that makes of the places of entries.

    The node says of each axis of the array where it is read: along which axis of the
    view, and from which place on.
    """
    x = g.lifted(given)
    example, source = arrange(x.current()), []
    sizes: list[Size] = list(example.shape)
    for k, size in enumerate(x.node.shape):
        places = arrange(np.indices(x.example.shape)[k])
        moving = [a for a in range(places.ndim) if np.ptp(places, axis=a).any()]
        axis, start = moving[0] if moving else None, int(places.flat[0])
        source.append((axis, start))
        if axis is not None and places.max() != start + example.shape[axis] - 1:
            raise refuse("no rule for a slice with a step")
        if isinstance(size, str) and axis is not None:
            if example.shape[axis] != x.example.shape[k]:
                raise refuse(f"no rule for a part of an axis of free size {size}")
            sizes[axis] = size
        elif isinstance(size, str) and start > 0:
            raise refuse(f"no rule for the index {key!r} of an axis of size {size}")
    made = shape or tuple(sizes)
    if made == x.node.shape and source == [(k, 0) for k in range(len(made))]:
        return g.traced(x.node, example)
    return g.traced(g.node("view", (x.node,), tuple(source), made), example)


def _spread(g: Recorder, x: Any, shape: Any) -> Traced:
    """Broadcast to a shape."""
    several = isinstance(shape, tuple | list)
    sizes = [_size(each) for each in (shape if several else [shape])]
    lengths = [length for _, length in sizes]
    made = tuple(size for size, _ in sizes)
    return _view(g, x, lambda array: np.broadcast_to(array, lengths), made)


def _filled(g: Recorder, shape: Any, value: Any, *_: Any) -> Any:
    return np.copy(_spread(g, value, shape))


def _size(value: Any) -> tuple[Size, int]:
    """A size as shapes have it, and that of the example."""
    if not isinstance(value, Traced):
        return int(value), int(value)
    if value.node.op != "size":
        raise refuse("an array has a size that is computed")
    return value.node.data, int(value.current())


def _arange(g: Recorder, size: Any) -> Traced:
    letter, length = _size(size)
    return g.traced(g.node("arange", (), None, (letter,)), np.arange(length))


def _eye(g: Recorder, size: Any) -> Any:
    places = _arange(g, size)
    return np.where(places[:, None] == places, 1.0, 0.0)


def _concatenate(g: Recorder, arrays: Sequence[Any], axis: int = 0) -> Traced:
    parts = [g.lifted(each) for each in arrays]
    shape: list[Any] = list(parts[0].node.shape)
    lengths: list[Any] = [part.node.shape[axis] for part in parts]
    if free(tuple(lengths)):
        raise refuse("no rule for putting together axes of free size")
    shape[axis] = sum(lengths)
    fields = tuple(x.node for x in parts), axis % len(shape), tuple(shape)
    example = np.concatenate([x.current() for x in parts], axis)
    return g.traced(g.node("concatenate", *fields), example)


def _stack(g: Recorder, arrays: Sequence[Any], axis: int = 0) -> Any:
    return np.concatenate([np.expand_dims(each, axis) for each in arrays], axis)


# Sums, and what is reduced like them.


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    return normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)


def _reduced(
    how: str, g: Recorder, x: Any, axis: Any = None, keepdims: bool = False
) -> Any:
    if how in ("all", "any"):
        _require_truth(how, x)
    axes = _axes(x, axis)
    last = tuple(range(-len(axes), 0))
    x = _view(g, x, lambda array: np.moveaxis(array, axes, last))
    shape = x.node.shape[: x.ndim - len(axes)]
    node = g.node(how, (x.node,), None, shape) if axes else x.node
    made: Any = g.traced(node, getattr(np, how)(x.current(), axis=last))
    return np.expand_dims(made, axes) if keepdims else made


def _mean(g: Recorder, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    count = reduce(mul, [x.shape[each] for each in _axes(x, axis)] or [1])
    return np.sum(x, axis=axis, keepdims=keepdims) / count


def _einsum(g: Recorder, labels: str, *operands: Any) -> Any:
    """A sum of products; what an ellipsis stands for stays ahead."""
    inputs, out = labels.replace(" ", "").replace("...", "").split("->")
    order = "".join(dict.fromkeys(out + inputs.replace(",", "")))

    def arranged(x: Any, given: str) -> Any:
        own = "".join(label for label in order if label in given)
        new = tuple(slice(None) if label in given else None for label in order)
        how = f"...{given}->...{own}"
        return _view(g, x, lambda array: np.einsum(how, array)[..., *new])

    product = reduce(mul, map(arranged, operands, inputs.split(",")))
    return np.sum(product, axis=tuple(range(len(out) - len(order), 0)))


def _matmul(g: Recorder, one: Any, other: Any) -> Any:
    left, right = "ij"[-np.ndim(one) :], "jk"[: np.ndim(other)]
    out = (left + right).replace("j", "")
    return np.einsum(f"...{left},...{right}->...{out}", one, other)


def _distances(g: Recorder, one: Traced, other: Traced, metric: str) -> Any:
    if metric != "sqeuclidean":
        raise refuse(f"no rule for distances of kind {metric}")
    difference = one[:, None, :] - other[None, :, :]
    return np.sum(difference * difference, axis=-1)


RULES: dict[str, Callable[..., Any]] = {
    **{how: partial(_reduced, how) for how in REDUCTIONS},
    "arange": _arange,
    "asarray": lambda g, x, *_: x if isinstance(x, Traced) else np.stack(x),
    "broadcast_to": _spread,
    "cdist": _distances,
    "clip": lambda g, x, low, high: np.minimum(np.maximum(x, low), high),
    "concatenate": _concatenate,
    "einsum": _einsum,
    "eye": _eye,
    "floor_divide": lambda g, x, y: np.floor(x / y),
    "full": _filled,
    "full_like": lambda g, x, value: _filled(g, x.shape, value),
    "isinf": lambda g, x: np.absolute(x) == np.inf,
    "isneginf": lambda g, x: x == -np.inf,
    "matmul": _matmul,
    "mean": _mean,
    "ones": lambda g, shape, *_: _filled(g, shape, 1.0),
    "ones_like": lambda g, x: _filled(g, x.shape, 1.0),
    "power": _power,
    "square": lambda g, x: x * x,
    "stack": _stack,
    "where": lambda g, truth, x, y: _elementwise(np.where, g, truth, x, y),
    "zeros": lambda g, shape, *_: _filled(g, shape, 0.0),
    "zeros_like": lambda g, x: _filled(g, x.shape, 0.0),
}
