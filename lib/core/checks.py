"""Input checks of all subjects: each error names the argument and the value."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
LARGEST = 1e100


def _first(bad: npt.NDArray[np.bool_]) -> str:
    """Index of the first offending entry as it would be typed, '' for a scalar."""
    index = np.argwhere(bad)[0]
    return f"[{', '.join(map(str, index))}]" if index.size else ""


def as_float(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as a float64 array (a view where possible, never changed).

    Raises ValueError when ``value`` is ragged, complex or not numeric.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, got dtype {array.dtype}")
    return array.astype(np.float64, copy=False)


def require_finite(name: str, array: Array, *, masked: bool = False) -> Array:
    """Return ``array``; raise ValueError at the first NaN or infinity in it.

    With ``masked=True`` the value −inf is let through (a masked score).
    """
    bad = ~np.isfinite(array)
    if masked:
        bad &= array != -np.inf
    if bad.any():
        allowed = "finite or -inf" if masked else "finite"
        raise ValueError(
            f"{name} must be {allowed}, but {name}{_first(bad)} is {array[bad][0]}"
        )
    return array


def require_moderate(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as a finite float array; ValueError beyond 1e100.

    Products of a few larger numbers overflow.
    """
    array = require_finite(name, as_float(name, value))
    if array.size and np.abs(array).max() > LARGEST:
        raise ValueError(
            f"{name} must not exceed {LARGEST:.0e}, got {np.abs(array).max():.3g}"
        )
    return array


def require_tokens(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as tokens (n, d): a non-empty matrix, finite, at most 1e100."""
    return require_matrix(name, require_moderate(name, value))


def require_line(name: str, value: npt.ArrayLike) -> Array:
    """Return ``value`` as tokens on the line, (n, 1)."""
    array = require_tokens(name, value)
    if array.shape[1] != 1:
        raise ValueError(f"{name} must have shape (n, 1), got {array.shape}")
    return array


def weights_or_equal(
    name: str, value: npt.ArrayLike | None, size: int, of: str
) -> Array:
    """Return equal weights for None, and what ``require_weights`` returns otherwise."""
    if value is None:
        return np.full(size, 1 / size)
    return require_weights(name, value, size, of)


def require_weights(name: str, value: npt.ArrayLike, size: int, of: str) -> Array:
    """Return ``value`` as weights; raise ValueError unless positive with sum 1.

    ``of`` says what the ``size`` weights belong to. The sum may err by 1e-12.
    """
    array = require_finite(name, as_float(name, value))
    if array.shape != (size,):
        raise ValueError(
            f"{name} must have shape ({size},) as {of} has, got {array.shape}"
        )
    if not (array > 0).all():
        raise ValueError(f"{name} must be positive, got {array.min():.3g}")
    excess = array.sum() - 1
    if not abs(excess) <= 1e-12:
        raise ValueError(f"{name} must sum to 1, but the sum is 1 + {excess:.3g}")
    return array


def require_last_axis(name: str, array: Array) -> Array:
    """Return ``array``; raise ValueError unless its last axis has an entry."""
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} needs a non-empty last axis, got shape {array.shape}")
    return array


def require_square(name: str, array: Array) -> Array:
    """Return ``array``; raise ValueError unless it is a non-empty ``(..., m, m)``."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or not array.shape[-1]:
        raise ValueError(f"{name} must have shape (..., m, m), got {array.shape}")
    return array


def require_matrix(name: str, array: Array) -> Array:
    """Return ``array``; raise ValueError unless it is a non-empty matrix."""
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty matrix, got shape {array.shape}")
    return array


def _number(value: object) -> float:
    """A real number as a float, NaN for anything else."""
    # Not float(value): arrays that record what is done with them have numbers as well.
    return np.asarray(value, np.float64).item() if isinstance(value, Real) else np.nan


def require_positive(name: str, value: float) -> float:
    """Return ``value`` as a float; raise ValueError unless 0 < value < ∞."""
    number = _number(value)
    if not 0 < number < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return number


def require_number(name: str, value: float) -> float:
    """Return ``value`` as a float; raise ValueError unless it is a finite number."""
    number = _number(value)
    if isinstance(value, bool) or not np.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number


def require_within(name: str, value: float, least: float, most: float) -> float:
    """Return ``value`` as a float; raise ValueError unless least ≤ value ≤ most."""
    number = _number(value)
    if isinstance(value, bool) or not least <= number <= most:
        raise ValueError(f"{name} must be from {least:g} to {most:g}, got {value!r}")
    return number


def require_count(
    name: str, value: int, *, least: int = 1, most: int = 2**31 - 1
) -> int:
    """Return ``value`` as an int; raise ValueError unless it is one in the range."""
    integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not integer or not least <= value <= most:
        raise ValueError(
            f"{name} must be an integer from {least} to {most}, got {value!r}"
        )
    count: int = np.asarray(value).item()  # as in _number
    return count


def require_flag(name: str, value: bool) -> bool:
    """Return ``value``; raise ValueError unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def require_choice(name: str, value: int, choices: Collection[int]) -> int:
    """Return ``value``; raise ValueError unless it is one of the integers listed."""
    integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not integer or value not in choices:
        listed = ", ".join(map(str, choices))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return int(value)


def require_generator(name: str, rng: np.random.Generator) -> np.random.Generator:
    """Return ``rng``; raise ValueError unless it is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"{name} must be a numpy.random.Generator, got {rng!r}")
    return rng
