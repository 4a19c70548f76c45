"""Values that cross between two processes: numbers, arrays, containers, never code.

A message is a length, a header of JSON and raw buffers. Functions cross as handles:
calling one sends its arguments back to the process it lives in. Objects of classes of
``lib`` are rebuilt from their attributes; whatever else a value may be arrives as an
:class:`Opaque` object of its type's name.
"""

from __future__ import annotations

import importlib
import json
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

LARGEST = 1 << 29  # bytes of a message
DEEPEST = 40  # levels of nesting
HEAD = struct.Struct(">QQ")  # lengths of the header and of all buffers
PLAIN = (type(None), bool, str)
#: Attributes that are computed from the others, and are not taken from a student.
FRESH: dict[str, dict[str, Any]] = {"lib.netsor.Program": {"_limit": None}}


#: Types whose names are told where one of their objects comes instead of numbers.
KNOWN = {
    "set", "frozenset", "map", "filter", "zip", "generator", "Poly1d", "Polynomial",
    "OptimizeResult", "OdeResult", "DataFrame", "Series", "Figure", "Tensor", "module",
    "csr_matrix", "csr_array", "rv_frozen", "Generator", "Fraction", "Decimal",
}  # fmt: skip


class NotAValue(ValueError):
    """A value that cannot cross, or bytes that are no message."""


class Opaque:
    """Stands for an object that does not cross; its type has the name of the other."""


class Packer:
    """Turns one value into JSON and buffers; ``keep`` gives functions a handle."""

    def __init__(self, keep: Callable[[Callable[..., Any]], int]):
        self.buffers: list[bytes] = []
        self._keep = keep
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # else an id might be used twice

    def pack(self, value: Any, depth: int = 0) -> Any:
        """The JSON of a value."""
        if depth > DEEPEST:
            raise NotAValue(f"a value may be nested {DEEPEST} levels deep at most")
        kind = type(value)
        if kind in PLAIN or kind is float:
            return value
        if kind is int:
            if value.bit_length() > 10_000:
                raise NotAValue("an integer may have 10000 bits at most")
            return value
        if kind is list:
            return [self.pack(each, depth + 1) for each in value]
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if isinstance(value, tuple):
            return {"tuple": [self.pack(each, depth + 1) for each in value]}
        if isinstance(value, dict):
            pairs = [[self.pack(x, depth + 1) for x in pair] for pair in value.items()]
            return {"dict": pairs}
        if isinstance(value, range):
            return [*value] if len(value) < 10**7 else {"opaque": "range"}
        if isinstance(value, bytes | bytearray):
            return {"bytes": self._buffer(bytes(value))}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, depth)
        if isinstance(value, np.random.Generator):
            # Another generator: what the receiver draws tells nothing of this one.
            return {"generator": [int(k) for k in value.integers(2**62, size=4)]}
        return self._object(value, depth)

    def _buffer(self, content: bytes) -> int:
        self.buffers.append(content)
        return len(self.buffers) - 1

    def _array(self, value: Any, depth: int) -> Any:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            return self.pack(array.tolist(), depth + 1)
        if array.dtype.kind not in "biufcU":
            return {"opaque": f"array of {array.dtype}"}
        content = self._buffer(np.ascontiguousarray(array).tobytes())
        kind = "scalar" if isinstance(value, np.generic) else "array"
        return {kind: [array.dtype.str, list(array.shape), content]}

    def _object(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if id(value) in self._seen:
            return {"again": self._seen[id(value)]}
        if kind.__module__.startswith("lib.") and hasattr(value, "__dict__"):
            self._seen[id(value)] = number = len(self._seen)
            self._alive.append(value)
            state = {k: self.pack(v, depth + 1) for k, v in vars(value).items()}
            name = f"{kind.__module__}.{kind.__qualname__}"
            return {"object": [number, name, state]}
        if callable(value):
            name = str(getattr(value, "__name__", kind.__name__))
            return {"function": [self._keep(value), name[:100]]}
        return {"opaque": kind.__name__[:100]}


class Unpacker:
    """Makes the value again; ``remote`` gives the function behind a handle."""

    def __init__(self, buffers: list[bytes], remote: Callable[[int, str], Any]):
        self._buffers, self._remote = buffers, remote
        self._objects: dict[int, Any] = {}

    def unpack(self, packed: Any) -> Any:
        """The value of its JSON; NotAValue where it has none."""
        if isinstance(packed, list):
            return [self.unpack(each) for each in packed]
        if not isinstance(packed, dict):
            return packed
        ((kind, content),) = packed.items()
        match kind:
            case "complex":
                return complex(*content)
            case "tuple":
                return tuple(self.unpack(each) for each in content)
            case "dict":
                return {self.unpack(k): self.unpack(v) for k, v in content}
            case "bytes":
                return self._buffers[content]
            case "array" | "scalar":
                return self._array(*content, scalar=kind == "scalar")
            case "generator":
                return np.random.default_rng([int(k) for k in content])
            case "function":
                return self._remote(int(content[0]), str(content[1]))
            case "object":
                return self._object(*content)
            case "again":
                return self._objects[content]
            case "opaque":
                known = str(content) if content in KNOWN else "object"
                return type(known, (Opaque,), {})()
        raise NotAValue(f"there are no values of the kind {kind!r}")

    def _array(self, kind: str, shape: list[int], number: int, scalar: bool) -> Any:
        dtype = np.dtype(str(kind))
        if dtype.kind not in "biufcU" or dtype.itemsize * math.prod(shape) != len(
            self._buffers[number]
        ):
            raise NotAValue(f"{len(self._buffers[number])} bytes are no array {kind}")
        array = np.frombuffer(self._buffers[number], dtype).reshape(shape).copy()
        return array[()] if scalar else array

    def _object(self, number: int, name: str, state: dict[str, Any]) -> Any:
        module, _, attribute = str(name).rpartition(".")
        if not module.startswith("lib.") or module == "lib.coursework":
            raise NotAValue(f"objects of {name} do not cross")
        kind = getattr(importlib.import_module(module), attribute)
        if not isinstance(kind, type) or issubclass(kind, BaseException):
            raise NotAValue(f"objects of {name} do not cross")
        self._objects[number] = made = object.__new__(kind)
        for key, value in state.items():
            object.__setattr__(made, key, self.unpack(value))
        for key, value in FRESH.get(name, {}).items():
            object.__setattr__(made, key, value)
        return made


def encode(message: Any, keep: Callable[[Callable[..., Any]], int]) -> bytes:
    """The bytes of a message."""
    packer = Packer(keep)
    body = packer.pack(message)
    sizes = [len(each) for each in packer.buffers]
    header = json.dumps({"body": body, "sizes": sizes}).encode()
    if len(header) + sum(sizes) > LARGEST:
        raise NotAValue(f"a value may have {LARGEST >> 20} MB at most")
    return b"".join([HEAD.pack(len(header), sum(sizes)), header, *packer.buffers])


def decode(frame: bytes, remote: Callable[[int, str], Any]) -> Any:
    """The message in a frame; NotAValue, whatever else the bytes may be."""
    try:
        length, _ = HEAD.unpack_from(frame)
        start = HEAD.size + length
        header = json.loads(frame[HEAD.size : start])
        buffers = []
        for size in header["sizes"]:
            buffers.append(frame[start : start + size])
            start += size
        return Unpacker(buffers, remote).unpack(header["body"])
    except NotAValue:
        raise
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise NotAValue(f"no message: {type(error).__name__}") from error


def missing(frame: bytes | bytearray) -> int:
    """Number of bytes of a frame that are still to come."""
    if len(frame) < HEAD.size:
        return HEAD.size - len(frame)
    header, buffers = HEAD.unpack_from(frame)
    if header + buffers > LARGEST + HEAD.size:
        raise NotAValue(f"a value may have {LARGEST >> 20} MB at most")
    return HEAD.size + header + buffers - len(frame)
