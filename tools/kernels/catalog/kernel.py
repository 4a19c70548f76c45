"""A kernel: a function of ``lib`` and how it becomes a module of the site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.kernels.graph import Shape, free

Values = dict[str, Any]
Draw = Callable[..., Values]  # inputs of given free sizes, from a generator


@dataclass(frozen=True)
class Kernel:
    """A function of ``lib`` and how it becomes a module of the site."""

    name: str
    function: str  # what of lib it computes, as module:function
    call: Callable[..., Mapping[str, Any]]
    inputs: Mapping[str, Shape]
    draw: Draw
    exempt: Mapping[str, str] = field(default_factory=dict)
    # What is changed in an example to take the branch that an exemption speaks of.
    turned: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Its place in the built site."""
        return f"_static/kernels/{self.name.replace('_', '-')}.mjs"

    @property
    def letters(self) -> list[str]:
        """Its free sizes."""
        return list(dict.fromkeys(free(sum(self.inputs.values(), ()))))
