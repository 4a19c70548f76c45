"""Rules for numpy's functions in the graph; one without a rule is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from numbers import Integral
from operator import mul
from typing import Any
from unittest import mock

import numpy as np
from scipy.spatial import distance

from tools.kernels.graph import (
    Along,
    Graph,
    Node,
    Size,
    Traced,
    broadcast,
    example_of,
    refuse,
    require_float,
)
from tools.kernels.operations import OPERATIONS, REDUCTIONS

# Ufuncs: one operation each, or several.


def apply(g: Graph, ufunc: Any, method: str, inputs: Any, options: Any) -> Traced:
    """Record a call of a ufunc."""
    name = ufunc.__name__
    if options:
        raise refuse(f"no rule for numpy.{name} with {', '.join(options)}")
    if method == "outer":
        one, other = inputs
        return ufunc(one[(..., *[None] * np.ndim(other))], other)
    if method != "__call__":
        raise refuse(f"no rule for numpy.{name}.{method}")
    composed = COMPOSED[name](*inputs) if name in COMPOSED else None
    if composed is not None:
        return composed
    examples = example_of(inputs)
    example = ufunc(*examples)
    if name in OF_TRUTH and example.dtype == bool:
        name = OF_TRUTH[name]
    elif (
        name not in OPERATIONS or name in ("add", "multiply") and example.dtype == bool
    ):
        raise refuse(f"no rule for numpy.{name} of {example.dtype}")
    if name.startswith("logical"):
        _require_truth(name, *examples)
    return _elementwise(g, name, inputs, example)


def _elementwise(g: Graph, name: str, inputs: Sequence[Any], example: Any) -> Traced:
    nodes = tuple(map(g.of, inputs))
    shape = broadcast(*(node.shape for node in nodes))
    return g.traced(g.node(name, nodes, shape=shape), example)


def _require_truth(name: str, *examples: Any) -> None:
    """Of numbers JavaScript has another opinion: there NaN is false."""
    if any(np.asarray(each).dtype != bool for each in examples):
        raise refuse(f"no rule for {name} of numbers")


def _power(x: Any, exponent: Any) -> Any:
    """Roots and small powers, as numpy computes them; None for any other power."""
    if not isinstance(exponent, Traced) and np.ndim(exponent) == 0:
        if exponent == 0.5:
            return np.sqrt(x)
        if exponent in (1, 2, 3, 4):
            return reduce(mul, [x] * int(exponent))
    return None


def _matmul(one: Any, other: Any) -> Traced:
    left = "ij" if np.ndim(one) > 1 else "j"
    right = "jk" if np.ndim(other) > 1 else "j"
    out = (left + right).replace("j", "")
    return np.einsum(f"...{left},...{right}->...{out}", one, other)


OF_TRUTH = {
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
}
COMPOSED: dict[str, Callable[..., Any]] = {
    "matmul": _matmul,
    "square": lambda x: x * x,
    "power": _power,
    "floor_divide": lambda x, y: np.floor(x / y),
    "isinf": lambda x: np.absolute(x) == np.inf,
}

# Functions: views, reductions, arrays put together.


def call(g: Graph, func: Any, args: Any, options: Any) -> Any:
    """Record a call of a function of numpy."""
    name = func.__name__
    if name in ("ndim", "shape", "size"):
        return getattr(args[0], name)
    if name in REWRITTEN:
        return REWRITTEN[name](*args, **options)
    if name not in RULES:
        raise refuse(f"no rule for numpy.{name}")
    example = func(*example_of(args), **{k: example_of(v) for k, v in options.items()})
    return g.traced(RULES[name](g, *args, **options), example)


def index(g: Graph, x: Traced, key: Any) -> Traced:
    """Record x[key], for whole numbers, slices, None and an ellipsis."""
    keys = list(key) if isinstance(key, tuple) else [key]
    at = next((k for k, each in enumerate(keys) if each is Ellipsis), len(keys))
    named = sum(each is not None and each is not Ellipsis for each in keys)
    keys[at : at + 1] = [slice(None)] * (x.ndim - named)
    source: list[int | Along] = []
    shape: list[Size] = []
    for place, each in enumerate(keys):
        if each is None:
            shape.append(1)
            continue
        size = x.node.shape[len(source)]
        if isinstance(each, slice):
            start, length = _part(each, size)
            source.append(Along(len(shape), start))
            shape.append(length)
            keys[place] = slice(
                start, start + length if isinstance(size, int) else None
            )
        elif isinstance(each, Integral) and (isinstance(size, int) or each >= 0):
            source.append(range(size)[each] if isinstance(size, int) else int(each))
        else:
            raise refuse(f"no rule for the index {each!r} of an axis of size {size}")
    return g.traced(_view(g, x.node, source, shape), x.current()[tuple(keys)])


def _part(cut: slice, size: Size) -> tuple[int, Size]:
    """Where a slice of an axis starts, and its length."""
    if cut.step not in (None, 1):
        raise refuse(f"no rule for a slice of step {cut.step}")
    if isinstance(size, int):
        start, stop, _ = cut.indices(size)
        return start, max(stop - start, 0)
    ends = cut.stop is None or isinstance(cut.stop, Traced) and _size(cut.stop) == size
    if isinstance(cut.start, Traced) or cut.start not in (None, 0) or not ends:
        raise refuse(f"no rule for a part of an axis of free size {size}")
    return 0, size


def _size(value: Any) -> Size:
    """A size as shapes have it."""
    if isinstance(value, Traced):
        if value.node.op != "size":
            raise refuse("an array has a size that is computed")
        return value.node.data
    return int(value)


def _view(
    g: Graph, node: Node, source: Sequence[int | Along], shape: Sequence[Size]
) -> Node:
    """The same entries in another arrangement: where each axis of ``node`` is read."""
    return g.node("view", (node,), tuple(source), tuple(shape))


def _transpose(g: Graph, x: Traced, axes: Sequence[int] | None = None) -> Node:
    labels = range(x.ndim)
    order = labels[::-1] if axes is None else [labels[axis] for axis in axes]
    return _contract(g, "sum", [(x.node, labels)], order)


def _swap(g: Graph, x: Traced, one: int, other: int) -> Node:
    axes = list(range(x.ndim))
    axes[one], axes[other] = axes[other], axes[one]
    return _transpose(g, x, axes)


def _diagonal(g: Graph, x: Traced, axis1: int = 0, axis2: int = 1) -> Node:
    labels = list(range(x.ndim))
    labels[axis1] = labels[axis2] = x.ndim
    out = [*(label for label in labels if label < x.ndim), x.ndim]
    return _contract(g, "sum", [(x.node, labels)], out)


def _spread(g: Graph, x: Any, shape: Any) -> Node:
    """Broadcast to a shape."""
    node = g.of(x)
    sizes = tuple(map(_size, shape if isinstance(shape, tuple | list) else (shape,)))
    broadcast(node.shape, sizes)
    ahead = len(sizes) - len(node.shape)
    source = [Along(ahead + axis) for axis in range(len(node.shape))]
    return _view(g, node, source, sizes)


def _contract(
    g: Graph, how: str, terms: Sequence[tuple[Node, Sequence[Any]]], out: Sequence[Any]
) -> Node:
    """Products of entries with labeled axes, reduced over the labels not in ``out``."""
    sizes: dict[Any, Size] = {}
    for node, labels in terms:
        for label, size in zip(labels, node.shape, strict=True):
            sizes[label] = broadcast((sizes.get(label, 1),), (size,))[0]
    order = [*out, *(label for label in sizes if label not in out)]
    labeled = tuple(tuple(map(order.index, labels)) for _, labels in terms)
    data = how, labeled, tuple(sizes[label] for label in order)
    shape = tuple(sizes[label] for label in out)
    return g.node("reduce", tuple(node for node, _ in terms), data, shape)


def _reduction(how: str) -> Callable[..., Node]:
    def rule(
        g: Graph, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None
    ) -> Node:
        node, axes = g.of(x), _axes(x, axis)
        if how in ("all", "any"):
            _require_truth(how, example_of(x))
        labels = range(len(node.shape))
        left = [label for label in labels if label not in axes]
        made = _contract(g, how, [(node, labels)], left)
        if initial is not None:
            name = REDUCTIONS[how][1]
            made = g.node(name, (made, g.of(initial)), shape=made.shape)
        if keepdims:
            shape = [1 if label in axes else node.shape[label] for label in labels]
            made = _view(g, made, [Along(label) for label in left], shape)
        return made

    return rule


def _axes(x: Any, axis: Any) -> set[int]:
    if axis is None:
        return set(range(np.ndim(x)))
    given = axis if isinstance(axis, tuple) else (axis,)
    return {each % np.ndim(x) for each in given}


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    count = reduce(mul, (np.shape(x)[each] for each in sorted(_axes(x, axis))), 1)
    return np.sum(x, axis=axis, keepdims=keepdims) / count


def _einsum(g: Graph, letters: str, *operands: Any) -> Node:
    inputs, out = letters.replace(" ", "").split("->")
    nodes = [g.of(each) for each in operands]
    terms, most = [], 0
    for node, labels in zip(nodes, inputs.split(","), strict=True):
        dots = len(node.shape) - len(labels) + 3 if "..." in labels else 0
        most = max(most, dots)
        names = [*range(-dots, 0), *labels.replace("...", "")]
        terms.append((node, names))
    ahead = range(-most, 0) if "..." in out else ()
    return _contract(g, "sum", terms, [*ahead, *out.replace("...", "")])


def _concatenate(g: Graph, arrays: Sequence[Any], axis: int = 0) -> Node:
    nodes = tuple(map(g.of, arrays))
    axis %= len(nodes[0].shape)
    lengths = [node.shape[axis] for node in nodes]
    if any(isinstance(length, str) for length in lengths):
        raise refuse("no rule for putting together axes of free size")
    shape = *nodes[0].shape[:axis], sum(lengths), *nodes[0].shape[axis + 1 :]
    return g.node("concatenate", nodes, axis, shape)


def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    axis %= np.ndim(arrays[0]) + 1
    new = (*[slice(None)] * axis, None)
    return np.concatenate([np.asarray(each)[new] for each in arrays], axis=axis)


def _cholesky(x: Traced) -> Traced:
    """Entry by entry, of a fixed size."""
    size = range(x.node.shape[-1])
    rows = [[np.zeros_like(x[..., 0, 0])] * len(size) for _ in size]
    for i in size:
        for j in range(i + 1):
            rest = x[..., i, j] - sum(rows[i][k] * rows[j][k] for k in range(j))
            rows[i][j] = rest / rows[j][j] if j < i else np.sqrt(rest)
    if not all((rows[i][i] > 0).all() for i in size):
        raise refuse("the example is not positive definite")
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


RULES: dict[str, Callable[..., Node]] = {
    **{how: _reduction(how) for how in ("sum", "max", "min", "all", "any")},
    "broadcast_to": _spread,
    "concatenate": _concatenate,
    "copy": lambda g, x: g.of(x),
    "diagonal": _diagonal,
    "einsum": _einsum,
    "swapaxes": _swap,
    "transpose": _transpose,
    "where": lambda g, *xs: (
        _elementwise(g, "where", xs, np.where(*example_of(xs))).node
    ),
    "full_like": lambda g, x, value: _spread(g, value, np.shape(x)),
    "zeros_like": lambda g, x: _spread(g, 0.0, np.shape(x)),
    "ones_like": lambda g, x: _spread(g, 1.0, np.shape(x)),
}
REWRITTEN: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "isneginf": lambda x: x == -np.inf,
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "mean": _mean,
    "stack": _stack,
}

# What makes arrays of a shape or of a list, which numpy does not hand over.


@contextmanager
def creating(g: Graph) -> Iterator[None]:
    """numpy's functions that make arrays, for recorded sizes and numbers as well."""
    with ExitStack() as patches:
        for (module, name), rule in CREATING.items():
            known = getattr(module, name)

            def made(
                *args: Any, _known: Any = known, _rule: Any = rule, **kw: Any
            ) -> Any:
                if not _recorded(args):
                    return _known(*args, **kw)
                for each in (*args, *kw.values()):
                    if isinstance(each, type | np.dtype):
                        require_float(each)
                return _rule(g, *args)

            patches.enter_context(mock.patch.object(module, name, made))
        yield


def _recorded(value: Any) -> bool:
    inner = value if isinstance(value, list | tuple) else ()
    return isinstance(value, Traced) or any(map(_recorded, inner))


def _as_array(g: Graph, value: Any, *_: Any) -> Any:
    return value if isinstance(value, Traced) else np.stack(list(value))


def _filled(g: Graph, shape: Any, value: Any) -> Traced:
    sizes = example_of(shape)
    return g.traced(_spread(g, value, shape), np.full(sizes, example_of(value)))


def _eye(g: Graph, size: Traced) -> Traced:
    places = _arange(g, size)
    return np.where(places[:, None] == places, 1.0, 0.0)


def _arange(g: Graph, size: Traced) -> Traced:
    node = g.node("arange", shape=(_size(size),))
    return g.traced(node, np.arange(int(size.current())))


def _distances(g: Graph, one: Traced, other: Traced, metric: str) -> Traced:
    if metric != "sqeuclidean":
        raise refuse(f"no rule for distances of kind {metric}")
    difference = one[:, None, :] - other[None, :, :]
    return np.sum(difference * difference, axis=-1)


CREATING: dict[tuple[Any, str], Callable[..., Any]] = {
    (np, "arange"): _arange,
    (np, "asarray"): _as_array,
    (np, "eye"): _eye,
    (np, "full"): _filled,
    (np, "ones"): lambda g, shape, *_: _filled(g, shape, 1.0),
    (np, "zeros"): lambda g, shape, *_: _filled(g, shape, 0.0),
    (distance, "cdist"): _distances,
}
