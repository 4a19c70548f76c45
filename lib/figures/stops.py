"""Stops of an argument that a reader moves: checked, named, and what lies between."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

# JavaScript has no larger integers without gaps.
_LARGEST_INTEGER = 2**53
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def checked_stops(name: str, given: Sequence[Any], continuous: bool) -> tuple[Any, ...]:
    """Return stops as Python values; raise ValueError for what can be none."""
    # Sets have no order.
    unlisted = isinstance(given, str | bytes | set | frozenset | dict)
    listed = hasattr(given, "__len__") and getattr(given, "ndim", True) and not unlisted
    if not listed or len(given) < 2:
        raise ValueError(f"{name} must list at least two stops, got {given!r}")
    stops = tuple(x.item() if isinstance(x, np.generic) else x for x in given)
    for x in stops:
        number = isinstance(x, int | float) and abs(x) <= sys.float_info.max
        if not (isinstance(x, str) or number):
            raise ValueError(f"{name} must list finite numbers or texts, got {x!r}")
        if continuous and isinstance(x, int) and abs(x) > _LARGEST_INTEGER:
            raise ValueError(
                f"{name} must list integers of at most 2^53 for a continuous slider,"
                f" got {x!r}"
            )
    if len(set(stops)) < len(stops):
        raise ValueError(f"{name} must list distinct stops, got {given!r}")
    return stops


def labels(stops: tuple[Any, ...]) -> list[str]:
    """Write each stop with four digits, or as many as tell the stops apart."""
    for form in ("{:.4g}", "{:.6g}", "{:.9g}", "{!r}"):
        shown = [form.format(x) if isinstance(x, float) else str(x) for x in stops]
        if len(set(shown)) == len(shown):
            return shown
    return [repr(x) for x in stops]  # a text that reads like a number


def spelled(name: str) -> str:
    """Write the name of an argument for readers: ``log2 n``, and τ₀ for τ0."""
    letter = re.fullmatch(r"([^\W\d_])(\d+)", name)
    if letter:
        return letter[1] + letter[2].translate(_LOWERED)
    return name.replace("_", " ")


def place(point: dict[str, Any]) -> str:
    """Write a combination of values: ``β = 4, t = 0.5``."""
    return ", ".join(f"{name} = {value}" for name, value in point.items())


def numeric(stops: tuple[Any, ...]) -> bool:
    """Say whether the stops are numbers, between which there are others."""
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in stops)


def whole(stops: tuple[Any, ...]) -> bool:
    """Say whether the stops are integers."""
    return all(isinstance(x, int) for x in stops)


def logarithmic(stops: tuple[Any, ...]) -> bool:
    """Say whether the ratios of neighbors vary less than their differences do."""
    if min(stops) <= 0 or len(stops) < 3:
        return False
    at = np.sort(np.asarray(stops, dtype=float))

    def variation(x: np.ndarray) -> float:
        gaps = np.diff(x)
        return float(gaps.std() / gaps.mean())

    return variation(np.log(at)) < variation(at) - 1e-9


def positions(stops: tuple[Any, ...], count: int = 60) -> list[int]:
    """Return the stops, and integers between them in nearly equal ratios."""
    spread = np.geomspace(min(stops), max(stops), count + 1).round().astype(int)
    return sorted({*spread.clip(min(stops), max(stops)).tolist(), *stops})


def between(stops: tuple[Any, ...]) -> Any:
    """Return a value between two neighboring stops; the first stop if there is none."""
    if not numeric(stops):
        return stops[0]
    for low, high in pairwise(sorted(stops)):
        middle = (
            np.exp((np.log(low) + np.log(high)) / 2)
            if logarithmic(stops)
            else low / 2 + high / 2
        )
        value = int(middle) if whole(stops) else float(middle)
        if low < value < high:
            return value
    return stops[0]
