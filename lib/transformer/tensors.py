"""Arrays from files of other programs: ``.npy`` and ``.safetensors``, read strictly."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, as_float

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_LONGEST_HEADER = 100_000_000  # bytes, as the format says


def array_or_file(name: str, value: npt.ArrayLike | str | os.PathLike[str]) -> Array:
    """Return an array of numbers, or read it from the file that a path names.

    A ``.safetensors`` file has the tensor ``name``, or a single one.
    """
    if not isinstance(value, str | os.PathLike):
        return as_float(name, value)
    path = Path(value)
    if path.suffix not in {".npy", ".safetensors"}:
        raise ValueError(
            f"{name} must be an array or a .npy or .safetensors file, got {str(path)!r}"
        )
    try:
        if path.suffix == ".npy":
            return as_float(name, _npy(path))
        return as_float(name, _safetensor(path, name))
    except (OSError, _Foreign) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{name}: {str(path)!r} cannot be read: {what}") from error


class _Foreign(Exception):
    """A file that cannot be read as its name says; the text is the reason."""


def _npy(path: Path) -> npt.NDArray[Any]:
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise _Foreign("it is no .npy file")
        file.seek(0)
        try:
            # Never pickle: a file could run anything.
            array = np.lib.format.read_array(file, allow_pickle=False)
        except (ValueError, EOFError, SyntaxError, MemoryError) as error:
            raise _Foreign(f"it is damaged or cut short ({error})") from error
        if file.read(1):
            raise _Foreign("something follows the array")
    return np.ascontiguousarray(array)  # sums in one order, hence the same digits


def _safetensor(path: Path, name: str) -> npt.NDArray[Any]:
    """One tensor: eight bytes of length, a header in JSON, and the numbers."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise _Foreign("it is no .safetensors file, or is cut short")
        try:
            header = json.loads(file.read(length).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise _Foreign("its header is no JSON") from error
        if not isinstance(header, dict):
            raise _Foreign("its header is no table of tensors")
        header.pop("__metadata__", None)
        if name not in header and len(header) != 1:
            listed = ", ".join(sorted(header)) or "none"
            raise _Foreign(f"it has no tensor {name!r}; its tensors: {listed}")
        entry = header[name] if name in header else next(iter(header.values()))
        kind, shape, start, end = _entry(entry)
        count = int(np.prod(shape, dtype=object))
        if end - start != count * np.dtype(kind).itemsize:
            raise _Foreign(f"{end - start} bytes are no tensor of shape {shape}")
        if 8 + length + end > size:
            raise _Foreign("it is cut short")
        file.seek(8 + length + start)
        numbers = np.frombuffer(file.read(end - start), kind).reshape(shape)
    if entry["dtype"] == "BF16":  # the first half of a float32
        return (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return numbers


def _entry(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Type, shape and place of a tensor, or what is wrong with them."""
    try:
        kind, shape, (start, end) = (
            entry["dtype"], tuple(entry["shape"]), entry["data_offsets"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise _Foreign("its header does not describe a tensor") from error
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _Foreign(f"its numbers are of type {kind!r}")
    whole = [type(each) is int and each >= 0 for each in (*shape, start, end)]
    if not all(whole) or start > end:
        raise _Foreign("its header does not describe a tensor")
    return _TYPES[kind], shape, start, end
