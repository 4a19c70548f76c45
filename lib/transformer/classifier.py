"""Common parts of classifiers: checks, loss, accuracy, and a linear one.

A transformer is to be read beside the simplest classifiers of the same images. They
have the same methods, so that :func:`lib.transformer.train` trains them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    as_float,
    require_count,
    require_finite,
    require_generator,
)
from lib.transformer import layers

Labels = npt.NDArray[np.int64]
Self = TypeVar("Self", bound="Classifier")


class Classifier(ABC):
    """A classifier of images with a dict of parameters."""

    params: dict[str, Array]

    @abstractmethod
    def forward(self, x: npt.ArrayLike) -> Any:
        """Logits of images, shape (batch, classes)."""

    @abstractmethod
    def loss_and_gradient(
        self, x: npt.ArrayLike, labels: npt.ArrayLike
    ) -> tuple[float, dict[str, Array]]:
        """Mean cross-entropy, and its gradient with respect to the parameters."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(array.size for array in self.params.values())

    @property
    @abstractmethod
    def _image_shape(self) -> tuple[int, ...]:
        """Shape of one image."""

    def _images(self, x: npt.ArrayLike) -> Array:
        """Return ``x`` as finite images that the classifier takes, or raise."""
        return require_images(x, self._image_shape)

    def replace(self: Self, params: Mapping[str, npt.ArrayLike]) -> Self:
        """The same architecture with other parameters.

        Parameters
        ----------
        params : dict of array_like
            Keys and shapes of ``self.params``; the arrays are copied.

        Returns
        -------
        A classifier of the same type.

        Raises
        ------
        ValueError
            For other keys or shapes, or numbers that are not finite.
        """
        if not isinstance(params, Mapping) or {*params} != {*self.params}:
            listed = ", ".join(self.params)
            given = [*params] if isinstance(params, Mapping) else params
            raise ValueError(f"params must be a dict of {listed}, got {given!r}")
        copies = {}
        for name, old in self.params.items():
            new = as_float(f"params[{name!r}]", params[name])
            if new.shape != old.shape:
                raise ValueError(
                    f"params[{name!r}] must have shape {old.shape}, got {new.shape}"
                )
            copies[name] = require_finite(f"params[{name!r}]", new).copy()
        return replace(self, params=copies)  # type: ignore[type-var]

    def accuracy(self, x: npt.ArrayLike, labels: npt.ArrayLike) -> float:
        """Share of the images whose largest logit is that of their label.

        Parameters
        ----------
        x, labels
            As for ``loss_and_gradient``.

        Raises
        ------
        ValueError, OverflowError
            As ``loss_and_gradient``.
        """
        logits = self.forward(x)
        right = require_labels(labels, len(logits), self._classes)
        return float(np.mean(logits.argmax(axis=1) == right))

    @property
    def _classes(self) -> int:
        return len(self.params["bias"])


class Pass(Protocol):
    """A forward pass: logits, and the way back to the parameters."""

    @property
    def logits(self) -> Array:
        """Logits of images, shape (batch, classes)."""

    @property
    def back(self) -> Callable[[Array], dict[str, Array]]:
        """The gradient with respect to the parameters, of that to the logits."""


def loss_and_gradient(
    run: Callable[[Array], Pass],
    x: npt.ArrayLike,
    labels: npt.ArrayLike,
    shape: tuple[int, ...],
    classes: int,
) -> tuple[float, dict[str, Array]]:
    """Mean cross-entropy and its gradient, after the checks, by a forward pass."""
    images = require_images(x, shape)
    right = require_labels(labels, len(images), classes)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        done = run(images)
        loss, grad = layers.cross_entropy(require_logits(done.logits), right)
        gradient = done.back(grad)
    for name, array in gradient.items():
        if not np.isfinite(array).all():
            raise OverflowError(
                f"the gradient of params[{name!r}] at x leaves the float range"
            )
    return float(loss), gradient


def require_images(x: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return ``x`` as finite images of this shape, at least one."""
    images = require_finite("x", as_float("x", x))
    if images.shape[1:] != shape or images.ndim != 1 + len(shape) or not len(images):
        asked = ", ".join(map(str, shape))
        raise ValueError(f"x must have shape (batch, {asked}), got {images.shape}")
    return images


def require_labels(labels: npt.ArrayLike, batch: int, classes: int) -> Labels:
    """Return ``labels`` as integers from 0 to ``classes`` − 1, one for each image."""
    given = require_finite("labels", as_float("labels", labels))
    if given.shape != (batch,):
        raise ValueError(
            f"labels must have shape ({batch},), one for each image, got {given.shape}"
        )
    whole = given.astype(np.int64)
    off = (whole != given) | (whole < 0) | (whole >= classes)
    if off.any():
        place = int(np.argmax(off))
        raise ValueError(
            f"labels must be integers from 0 to {classes - 1}, but labels[{place}] is"
            f" {given[place]:g}"
        )
    return whole


def require_logits(logits: Array) -> Array:
    """Return ``logits``; raise OverflowError unless they are finite."""
    if not np.isfinite(logits).all():
        raise OverflowError("x and params are too large: the logits are not finite")
    return logits


@dataclass(frozen=True)
class _Run:
    logits: Array
    back: Callable[[Array], dict[str, Array]]


@dataclass(frozen=True, eq=False)
class Perceptron(Classifier):
    r"""Logits that are linear in an image, or in ReLU of it; see :func:`perceptron`.

    Attributes
    ----------
    params : dict of ndarray
        ``inner`` (features, hidden) and ``shift`` (hidden,) where there is a hidden
        layer, ``readout`` and ``bias``.
    """

    params: dict[str, Array]

    def forward(self, x: npt.ArrayLike) -> Array:
        """Logits of images.

        Parameters
        ----------
        x : array_like, shape (batch, features)
            One image per row.

        Returns
        -------
        ndarray, shape (batch, classes)

        Raises
        ------
        ValueError
            For images that are not finite or of another shape.
        OverflowError
            Where the logits leave the float range.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            done = self._run(require_images(x, self._image_shape))
        return require_logits(done.logits)

    def loss_and_gradient(
        self, x: npt.ArrayLike, labels: npt.ArrayLike
    ) -> tuple[float, dict[str, Array]]:
        """Mean cross-entropy of images, and its gradient.

        Parameters
        ----------
        x : array_like, shape (N, features)
            Images.
        labels : array_like of int, shape (N,)
            The class of each, from 0 to classes − 1.

        Returns
        -------
        loss : float
        gradient : dict of ndarray
            Keys and shapes of ``params``.

        Raises
        ------
        ValueError
            For images that are not finite, labels that are no classes, or arrays that
            do not fit.
        OverflowError
            Where the loss or its gradient leaves the float range.
        """
        return loss_and_gradient(self._run, x, labels, self._image_shape, self._classes)

    @property
    def _image_shape(self) -> tuple[int, ...]:
        return (len(next(iter(self.params.values()))),)

    def _run(self, x: Array) -> _Run:
        params, active = self.params, x
        if "inner" in params:
            hidden, _ = layers.product(x, params["inner"])
            active, from_active = layers.leaky(hidden + params["shift"], (1.0, 0.0))
        logits, from_readout = layers.product(active, params["readout"])

        def back(grad: Array) -> dict[str, Array]:
            to_active, to_readout = from_readout(grad)
            gradients = {"readout": to_readout, "bias": grad.sum(axis=0)}
            if "inner" in params:
                to_hidden = from_active(to_active)
                gradients["inner"] = layers.to_weights(x, to_hidden)
                gradients["shift"] = to_hidden.sum(axis=0)
            return {name: gradients[name] for name in params}

        return _Run(logits + params["bias"], back)


def perceptron(
    *, features: int, hidden: int, classes: int, rng: np.random.Generator
) -> Perceptron:
    r"""A perceptron with one hidden layer, or a linear classifier without one.

    .. math:: \varphi(x W^{\mathrm{in}}/\sqrt{\text{features}} + c)\,
              W^{\mathrm{readout}}/\sqrt{\text{hidden}} + b,
              \qquad \varphi(x) = \sqrt2 \max(x, 0)

    with independent N(0, 1) weights, and c = b = 0; for ``hidden=0`` the logits are
    :math:`x W^{\mathrm{readout}}/\sqrt{\text{features}} + b`.

    Parameters
    ----------
    features : int
        Numbers in an image.
    hidden : int
        Neurons of the hidden layer; 0 for none.
    classes : int
        At least 2.
    rng : numpy.random.Generator
        Source of the weights.

    Returns
    -------
    Perceptron

    Raises
    ------
    ValueError
        For counts out of range.
    """
    require_count("features", features)
    require_count("hidden", hidden, least=0)
    require_count("classes", classes, least=2)
    require_generator("rng", rng)
    params = {}
    if hidden:
        params["inner"] = rng.standard_normal((features, hidden))
        params["shift"] = np.zeros(hidden)
    params["readout"] = rng.standard_normal((hidden or features, classes))
    return Perceptron(params | {"bias": np.zeros(classes)})
