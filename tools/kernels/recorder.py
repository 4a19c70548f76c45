"""A function of ``lib``, recorded on arrays that carry an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.kernels import rules
from tools.kernels.graph import Graph, Node, Refused, Shape


@dataclass(frozen=True)
class Program:
    """A recording: outputs by name, and what the branches saw."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Node]
    guards: tuple[tuple[Node, bool], ...]

    @property
    def letters(self) -> list[str]:
        """The free sizes, as the inputs name them."""
        sizes = [size for shape in self.inputs.values() for size in shape]
        return list(dict.fromkeys(size for size in sizes if isinstance(size, str)))


def record(
    function: Callable[..., Mapping[str, Any]],
    inputs: Mapping[str, Shape],
    example: Mapping[str, Any],
    exempt: Mapping[str, str] | None = None,
) -> Program:
    """Record ``function``, which gives outputs by name, on inputs like the example."""
    graph = Graph(rules, exempt or {})
    given = {}
    for name, shape in inputs.items():
        value = np.array(example[name])
        for size, known in zip(shape, value.shape, strict=True):
            if isinstance(size, str) and size not in graph.sizes:
                graph.sizes[size] = graph.traced(graph.node("size", data=size), known)
        given[name] = graph.traced(graph.node("input", data=name, shape=shape), value)
    with rules.creating(graph), np.errstate(all="ignore"):
        outputs = {name: graph.of(value) for name, value in function(**given).items()}
    if unused := set(graph.exempt) - graph.used:
        raise Refused(f"{', '.join(sorted(unused))}: exempt for nothing")
    return Program(inputs, outputs, tuple(graph.guards))
