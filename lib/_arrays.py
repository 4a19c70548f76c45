"""Arrays of other libraries than numpy, as PyTorch's on a GPU.

What follows the array API standard brings the module of its functions along, which
numerics that take any array call ``xp``. Checks look at a copy in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lib._checks import Array


def namespace(x: Any) -> Any:
    """The functions for an array: numpy's for all that is not of another library."""
    if isinstance(x, np.ndarray) or not _is_foreign(x):
        return np
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    try:  # PyTorch follows the standard in this wrapper only
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ImportError(
            "arrays of PyTorch need array-api-compat: pip install array-api-compat"
        ) from error
    return array_namespace(x)


def checked(
    check: Callable[[str, npt.ArrayLike], Array], name: str, value: npt.ArrayLike
) -> Array:
    """What a check written for numpy gives; where the value lies, if that is elsewhere.

    Raises what ``check`` raises.
    """
    found = check(name, to_numpy(value))
    return like(value, found) if _is_foreign(value) else found


def like(x: Any, array: Array) -> Array:
    """``array`` in the library of x and on its device."""
    xp = namespace(x)
    if xp is np:
        return array
    there: Array = xp.asarray(array, dtype=xp.float64, device=x.device)
    return there


def to_numpy(value: Any) -> Any:
    """The same in numpy, where it is an array of another library."""
    if not _is_foreign(value):
        return value
    if hasattr(value, "cpu"):  # PyTorch
        return value.detach().cpu().numpy()
    return np.from_dlpack(value, device="cpu")


def slices(count: int, size: int) -> list[slice]:
    """The numbers below ``count``, so many at a time; none goes beyond the end."""
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def _is_foreign(x: Any) -> bool:
    library = type(x).__module__.partition(".")[0]
    return library == "torch" or (
        hasattr(x, "__array_namespace__") and library != "numpy"
    )
