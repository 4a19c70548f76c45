"""Kernels, recorded twice and written where the site is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tools.command import PipelineError, replace
from tools.kernels.catalog import KERNELS, Kernel
from tools.kernels.emitter import Emitter
from tools.kernels.graph import Refused, Shape
from tools.kernels.recorder import Program, record

# Two recordings have other sizes and other values: what depends on them differs.
RECORDINGS = ((5, 1), (9, 2))  # a size to start from, and a seed


def kernel(name: str) -> Kernel:
    """The kernel of a name."""
    for each in KERNELS:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in KERNELS)
    raise PipelineError(f"there is no kernel {name!r}; there are {known}")


def drawn(kernel: Kernel, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Inputs of the given free sizes."""
    values = kernel.draw(np.random.default_rng(seed), **sizes)
    return {name: values[name] for name in kernel.inputs}


def recorded(kernel: Kernel, start: int, seed: int) -> Program:
    """The kernel recorded with free sizes start, start + 1, ..."""
    sizes = {letter: start + k for k, letter in enumerate(kernel.letters)}
    example = drawn(kernel, sizes, seed)
    example |= {name: turn(example[name]) for name, turn in kernel.turned.items()}
    return record(kernel.call, kernel.inputs, example, kernel.exempt)


def module(kernel: Kernel) -> str:
    """The module of a kernel; Refused if two recordings are not one program."""
    one, other = (
        Emitter(recorded(kernel, *each)).module(title(kernel)) for each in RECORDINGS
    )
    if one != other:
        lines = zip(one.splitlines(), other.splitlines(), strict=False)
        first = next((pair for pair in lines if pair[0] != pair[1]), ("...", "nothing"))
        raise Refused(
            f"{kernel.function}, for {kernel.name}: other sizes or values make another"
            f" program, `{first[0].strip()}` and `{first[1].strip()}`"
        )
    return one


def title(kernel: Kernel) -> str:
    return f"{kernel.function}, as Python computed it; made with the site."


def build(folder: Path) -> None:
    """Write all kernels into a built site."""
    for each in KERNELS:
        path = folder / each.file
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, module(each))


def listed(kernel: Kernel) -> dict[str, Any]:
    """Inputs and outputs of a kernel."""
    program = recorded(kernel, *RECORDINGS[0])
    outputs = {name: node.shape for name, node in program.outputs.items()}
    return {
        "name": kernel.name,
        "file": kernel.file,
        "function": kernel.function,
        "inputs": named_shapes(kernel.inputs),
        "outputs": named_shapes(outputs),
    }


def named_shapes(shapes: Mapping[str, Shape]) -> list[dict[str, Any]]:
    return [{"name": name, "shape": list(shape)} for name, shape in shapes.items()]


def example(kernel: Kernel, size: int, seed: int) -> dict[str, Any]:
    """Inputs of a kernel, and what ``lib`` gives for them."""
    sizes = dict.fromkeys(kernel.letters, size)
    inputs = drawn(kernel, sizes, seed)
    outputs = kernel.call(**inputs)
    return {"inputs": {**sizes, **flat(inputs)}, "outputs": flat(outputs)}


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and flat lists, as a kernel takes them."""
    return {
        name: np.asarray(value, np.float64).ravel().tolist()
        if np.ndim(value)
        else float(value)
        for name, value in values.items()
    }


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
