"""Real input: 900 Fashion-MNIST images, checked against a known digest."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_choice,
    require_count,
    require_finite,
    require_generator,
    require_within,
)

#: Environment variable naming a folder that already holds the file.
OFFLINE_FOLDER = "ATTENTION_LIMIT_DATA"

_FILE = "fashion-mnist-sprite.png"
_SHA256 = "a7de0a151f8c68e6e96f157a018ac290d1f6b0e7845892c3d7d85cb64961c3cb"
_URL = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
    f"b2617bb6d3ffa2e429640350f613e3291e10b141/doc/img/{_FILE}"
)
_TILES, _SIDE, _CLASSES = 30, 28, 10

#: What the ten classes are called.
CLASS_NAMES = (
    "T-shirt", "trousers", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


class DataUnavailable(RuntimeError):
    """The images could not be read; the message says what to put where."""

    def _render_traceback_(self) -> list[str]:
        """Give IPython the sentence alone to print."""
        return [f"DataUnavailable: {self}"]


def fashion_mnist() -> tuple[Array, npt.NDArray[np.int64]]:
    """Read 900 Fashion-MNIST images, 90 of each of ten classes.

    The file is read from the folder named by the environment variable
    ``ATTENTION_LIMIT_DATA`` when that is set, else from the user's cache, where it is
    downloaded once (0.8 MB) from the data set's public repository.

    Returns
    -------
    images : ndarray, shape (900, 784)
        Grey levels in [0, 1], one image of 28 × 28 pixels per row.
    labels : ndarray of int, shape (900,)
        Classes 0–9 in increasing order.

    Raises
    ------
    DataUnavailable
        When the file is missing, cannot be downloaded, or has another digest.

    References
    ----------
    Xiao, Rasul, Vollgraf, *Fashion-MNIST*, 2017, arXiv:1708.07747; MIT license.
    """
    from PIL import Image

    with Image.open(_sprite()) as picture:
        sprite = np.asarray(picture.convert("L"), dtype=np.float64) / 255  # (840, 840)
    tiles = sprite.reshape(_TILES, _SIDE, _TILES, _SIDE).swapaxes(1, 2)
    images = tiles.reshape(_TILES**2, _SIDE**2)  # (900, 784)
    return images, np.repeat(np.arange(_CLASSES), _TILES**2 // _CLASSES)


def image_tokens(per_class: int = 1) -> tuple[Array, npt.NDArray[np.int64]]:
    """Tokens made of images: the first ones of each class, centered and normalized.

    The mean of all 900 images is subtracted; each row is then scaled to squared norm
    n = 784, so that the diagonal of V = XXᵀ/n is 1.

    Parameters
    ----------
    per_class : int
        Images taken of each of the ten classes, 1 to 90.

    Returns
    -------
    tokens : ndarray, shape (10 * per_class, 784)
        One token per row, ordered by class.
    labels : ndarray of int, shape (10 * per_class,)
        Class of each token.

    Raises
    ------
    ValueError
        For a number of images that is not an integer from 1 to 90.
    DataUnavailable
        As :func:`fashion_mnist`.
    """
    if require_count("per_class", per_class) > _TILES**2 // _CLASSES:
        raise ValueError(f"per_class must be at most 90, got {per_class}")
    images, labels = fashion_mnist()
    first = images.reshape(_CLASSES, -1, _SIDE**2)[:, :per_class]
    tokens = first.reshape(-1, _SIDE**2) - images.mean(axis=0)  # (10 per_class, 784)
    norms = np.linalg.norm(tokens, axis=1, keepdims=True)
    return _SIDE * tokens / norms, labels.reshape(_CLASSES, -1)[:, :per_class].ravel()


def image_patches(patches: int = 16) -> tuple[Array, npt.NDArray[np.int64]]:
    """The images, cut into square patches: one token for each.

    Parameters
    ----------
    patches : {1, 4, 16, 49, 196, 784}
        Patches of an image, with 784, 196, 49, 16, 4 or 1 pixels.

    Returns
    -------
    images : ndarray, shape (900, patches, 784 / patches)
        Grey levels in [0, 1]. Patches and the pixels in them go row by row.
    labels : ndarray of int, shape (900,)
        Classes 0–9 in increasing order.

    Raises
    ------
    ValueError
        For a number of patches that cannot be cut.
    DataUnavailable
        As :func:`fashion_mnist`.
    """
    sides = {side**2: side for side in range(1, _SIDE + 1) if not _SIDE % side}
    across = sides[require_choice("patches", patches, sides)]
    images, labels = fashion_mnist()
    cut = images.reshape(-1, across, _SIDE // across, across, _SIDE // across)
    return cut.swapaxes(2, 3).reshape(len(images), across**2, -1), labels


def held_out(
    labels: npt.ArrayLike, share: float = 1 / 3, *, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Divide examples at random into those to train on and those held out.

    Of each class the same share is held out, rounded to whole examples.

    Parameters
    ----------
    labels : array_like of int, shape (n,)
        The class of each example.
    share : float
        Share that is held out, from 0 to 1.
    rng : numpy.random.Generator
        Source of the division.

    Returns
    -------
    training, test : ndarray of int
        Places of the examples in ``labels``, each in increasing order.

    Raises
    ------
    ValueError
        For labels that are not a vector of integers, or a share out of range.
    """
    classes = require_finite("labels", as_float("labels", labels))
    if classes.ndim != 1 or not classes.size or (classes % 1).any():
        raise ValueError(f"labels must be a vector of integers, got {labels!r}")
    kept_out = require_within("share", share, 0, 1)
    require_generator("rng", rng)
    test = np.zeros(len(classes), bool)
    for each in np.unique(classes):
        places = rng.permutation(np.flatnonzero(classes == each))
        test[places[: round(kept_out * len(places))]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)


def _sprite() -> Path:
    """Path of the checked file."""
    import pooch

    folder = os.environ.get(OFFLINE_FOLDER)
    if folder:
        path = Path(folder) / _FILE
        if not path.is_file():
            raise DataUnavailable(
                f"{path} is missing: put {_FILE} from {_URL} there, or unset"
                f" {OFFLINE_FOLDER} to download it"
            )
        if pooch.file_hash(str(path)) != _SHA256:
            raise DataUnavailable(
                f"{path} is corrupt: its sha256 is not {_SHA256}; replace it by {_URL}"
            )
        return path
    cache = pooch.os_cache("attention-in-the-limit")
    # Its progress message would stand on the page of a notebook.
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(_URL, f"sha256:{_SHA256}", _FILE, cache))
    except (OSError, ValueError) as error:  # no network, or another digest
        raise DataUnavailable(
            f"{_FILE} could not be downloaded from {_URL}; save it in a folder and"
            f" name that folder in the environment variable {OFFLINE_FOLDER}"
        ) from error
