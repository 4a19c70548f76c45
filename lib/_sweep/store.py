"""Results of tasks in a file that grows by one line for each."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

# One protocol, so that keys are the same in every Python.
_PROTOCOL = 4
_HEADER = "results of lib.sweep, one per line: key, checksum, pickle\n"


def task_key(
    task: Callable[..., Any], value: object, rng: np.random.Generator | None
) -> str:
    """What says that a stored result is that of this task, value and seed."""
    try:
        what = pickle.dumps((task, value), protocol=_PROTOCOL)
    except Exception as error:
        raise ValueError(
            "store needs a task and values that can be pickled, as functions with a"
            f" name of their own can: {error}"
        ) from error
    seed = None if rng is None else rng.bit_generator.state
    return sha256(what + repr(seed).encode()).hexdigest()


class Store:
    """A file of results; ``found`` are those that stand in it, by place in ``keys``.

    A line that does not match its checksum was half written, and is passed over.
    Raises ValueError for a file of another kind, or with a result of none of the keys.
    """

    def __init__(self, path: str | PathLike[str], keys: list[str]):
        if not isinstance(path, str | PathLike):
            raise ValueError(f"store must be the name of a file, got {path!r}")
        self._path, self._keys = Path(path), keys
        try:
            text = self._path.read_text() if self._path.exists() else ""
            self.found = self._read(text)
            # A half-written header is completed, a half-written line is ended.
            rest = _HEADER[len(text) :] or ("" if text.endswith("\n") else "\n")
            self._append(rest)
        except Exception as error:
            raise ValueError(f"store={str(path)!r} cannot be used: {error}") from error

    def add(self, place: int, result: object) -> None:
        """Append one result."""
        key, content = self._keys[place], pickle.dumps(result, protocol=_PROTOCOL)
        coded = base64.b64encode(content).decode()
        self._append(f"{key} {_checksum(key, coded)} {coded}\n")

    def _read(self, text: str) -> dict[int, Any]:
        if not (text.startswith(_HEADER) or _HEADER.startswith(text)):
            raise ValueError("it is no file of results; it is left as it is")
        parts = [line.split(" ") for line in text.splitlines()[1:]]
        whole = [p for p in parts if len(p) == 3 and p[1] == _checksum(p[0], p[2])]
        coded = {key: content for key, _, content in whole}
        if not coded.keys() <= set(self._keys):
            raise ValueError(
                "it holds results of another task, other values or another seed;"
                " name another file, or delete it"
            )
        return {
            k: pickle.loads(base64.b64decode(coded[key]))
            for k, key in enumerate(self._keys)
            if key in coded
        }

    def _append(self, text: str) -> None:
        with self._path.open("a") as file:
            file.write(text)


def _checksum(key: str, content: str) -> str:
    return sha256(f"{key} {content}".encode()).hexdigest()[:16]
