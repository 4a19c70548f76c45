"""Pictures in an exhibit: small, and in the ink of either theme."""

from __future__ import annotations

import base64
import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from lib.core.checks import Array, as_float, require_finite

_LEVELS = 16  # of gray, of a stored picture


def require_gray(name: str, levels: npt.ArrayLike) -> Array:
    """Return gray levels in [0, 1], any shape but an empty one, or raise."""
    gray = require_finite(name, as_float(name, levels))
    if not gray.size:
        raise ValueError(f"{name} must not be empty, got shape {gray.shape}")
    if gray.min() < 0 or gray.max() > 1:
        raise ValueError(
            f"{name} must lie in [0, 1], got {gray.min():g} to {gray.max():g}"
        )
    return gray


def require_pictures(pictures: npt.ArrayLike) -> Array:
    """Return ``pictures`` as (m, side, side) gray levels in [0, 1], or raise."""
    tiles = require_gray("pictures", pictures)
    if tiles.ndim != 3 or tiles.shape[1] != tiles.shape[2]:
        raise ValueError(f"pictures must have shape (m, side, side), got {tiles.shape}")
    return tiles


def stored(tile: Array) -> str:
    """A picture as a small PNG: its gray levels as the opacity of one color.

    It then stands on the paper of either theme.
    """
    levels = np.round(tile * (_LEVELS - 1)).astype(np.uint8)
    image = Image.fromarray(levels, "P")
    image.putpalette([118, 118, 118] * _LEVELS)
    opacity = bytes(round(255 * k / (_LEVELS - 1)) for k in range(_LEVELS))
    file = io.BytesIO()
    image.save(file, "png", bits=4, optimize=True, transparency=opacity)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def pixels(picture: str) -> npt.NDArray[np.uint8]:
    """The pixels of a stored picture, shape (side, side, 4)."""
    data = base64.b64decode(picture.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
