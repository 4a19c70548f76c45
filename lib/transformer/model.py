"""Transformers that classify images of tokens: parameters, loss and its gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    require_count,
    require_flag,
    require_generator,
    require_number,
    require_positive,
)
from lib.transformer import network
from lib.transformer.classifier import (
    Classifier,
    loss_and_gradient,
    require_images,
    require_logits,
)
from lib.transformer.network import Plan

KINDS = ("softmax", "shaped", "sinkhorn")
NORMS = ("pre", "post", "none")


@dataclass(frozen=True, eq=False)
class Trace:
    """Record of a forward pass, with the batch as the second axis.

    Attributes
    ----------
    logits : ndarray, shape (batch, classes)
    tokens : ndarray, shape (depth + 1, batch, m, width)
        The tokens at the start and after each block.
    outputs : ndarray, shape (depth, batch, m, width)
        What the attention of each block adds to the tokens, before the factor γ.
    scores : ndarray, shape (depth, batch, heads, m, m)
        Scores over their temperature, queries along rows.
    weights : ndarray, shape (depth, batch, heads, m, m)
        The weights of attention; for "shaped" they include the identity, and
        ``lib.attention.softmax(scores)`` is their softmax.
    """

    logits: Array
    tokens: Array
    outputs: Array
    scores: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Transformer(Classifier):
    r"""A transformer, made by :func:`init`.

    Attributes
    ----------
    params : dict of ndarray
        With n the width and L the depth: ``embed`` (features, n), ``position``
        (tokens, n); ``query``, ``key``, ``value``, ``output``, ``inner`` and ``outer``
        (L, n, n); ``readout`` (n, classes) and ``bias`` (classes,).
    plan : Plan
        Everything else.
    """

    params: dict[str, Array] = field(repr=False)
    plan: Plan

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return len(self.params["query"])

    @property
    def width(self) -> int:
        """Coordinates of a token."""
        return int(self.params["embed"].shape[1])

    @overload
    def forward(self, x: npt.ArrayLike, *, trace: Literal[False] = ...) -> Array: ...

    @overload
    def forward(self, x: npt.ArrayLike, *, trace: Literal[True]) -> Trace: ...

    def forward(self, x: npt.ArrayLike, *, trace: bool = False) -> Array | Trace:
        """Logits of images.

        Parameters
        ----------
        x : array_like, shape (batch, tokens, features)
            One image per entry, cut into tokens.
        trace : bool
            Whether the tokens, scores and weights of every layer are wanted too.

        Returns
        -------
        ndarray, shape (batch, classes), or Trace

        Raises
        ------
        ValueError
            For images that are not finite or of another shape.
        OverflowError
            Where the logits leave the float range.
        """
        images = require_images(x, self._image_shape)
        wanted = require_flag("trace", trace)
        with np.errstate(over="ignore", invalid="ignore"):
            done = network.run(self.params, self.plan, images)
        logits = require_logits(done.logits)
        if not wanted:
            return logits
        lists = (done.tokens, done.outputs, done.scores, done.weights)
        return Trace(logits, *map(np.stack, lists))

    def loss_and_gradient(
        self, x: npt.ArrayLike, labels: npt.ArrayLike
    ) -> tuple[float, dict[str, Array]]:
        r"""Mean cross-entropy of images, and its gradient.

        .. math:: -\frac1N \sum_{i=1}^N \log \mathrm{softmax}(\mathrm{logits}_i)_{y_i}

        Parameters
        ----------
        x : array_like, shape (N, tokens, features)
            Images.
        labels : array_like of int, shape (N,)
            The class y of each, from 0 to classes − 1.

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

        def run(images: Array) -> network.Run:
            return network.run(self.params, self.plan, images)

        return loss_and_gradient(run, x, labels, self._image_shape, self._classes)

    @property
    def _image_shape(self) -> tuple[int, ...]:
        return len(self.params["position"]), len(self.params["embed"])


def init(
    *,
    depth: int,
    width: int,
    heads: int,
    tokens: int,
    features: int,
    classes: int,
    attention: str = "softmax",
    norm: str = "pre",
    skip: float = 0.5**0.5,
    branch: float = 0.5**0.5,
    temperature: float | None = None,
    slopes: tuple[float, float] | None = None,
    iterations: int = 9,
    rng: np.random.Generator,
) -> Transformer:
    r"""A transformer with random weights.

    Each of the ``depth`` blocks is attention and a perceptron, both with a skip
    connection: with N the division of a token by its root mean square,
    :math:`X' = \lambda X + \gamma f(N(X))` for ``norm="pre"``,
    :math:`X' = N(\lambda X + \gamma f(X))` for "post" and
    :math:`X' = \lambda X + \gamma f(X)` for "none". With n the width and H the number
    of heads, of n/H coordinates each, the branches are

    .. math:: \tfrac1n \big(A^1 X W^{V,1}, \dots, A^H X W^{V,H}\big) W^O
              \qquad\text{and}\qquad
              \tfrac1n\, \varphi(X W^{\mathrm{in}})\, W^{\mathrm{out}},

    where :math:`A^a` is made of the scores :math:`Y^a/\tau`,
    :math:`Y^a = \frac1n X W^{Q,a} (X W^{K,a})^\top`. Tokens enter as
    :math:`(x W^{\mathrm{embed}}/\sqrt{\text{features}} + P)/\sqrt2` with a row of P for
    each place, and leave, normalized with "pre", by the mean over places, times
    :math:`W^{\mathrm{readout}}/\sqrt n`, plus a bias. All weights are independent
    N(0, 1) and the bias is 0. So the blocks have the law of
    :class:`lib.gram.layers.MultiHeadLayer` (shaped) or
    :class:`lib.gram.layers.PlainLayer`, followed by
    :class:`lib.gram.layers.ResidualReluLayer`.

    Parameters
    ----------
    depth, width, heads, tokens, features, classes : int
        Blocks, coordinates of a token, heads, tokens of an image, numbers in a token
        of an image, and classes, at least 2. ``heads`` divides ``width``.
    attention : {"softmax", "shaped", "sinkhorn"}
        :math:`A = \mathrm{softmax}(Y/\tau)`; :math:`I + \mathrm{softmax}(Y/\tau) -
        \frac1m 11^\top`; or rows and columns of :math:`e^{Y/\tau}` normalized in turn.
    norm : {"pre", "post", "none"}
        Where tokens are normalized.
    skip, branch : float
        λ and γ, by default :math:`\lambda^2 + \gamma^2 = 1`; the usual transformer has
        both equal to 1.
    temperature : float, optional
        τ, by default :math:`\sqrt{n/H}`, and :math:`\sqrt{n \cdot n/H}` for "shaped".
        With n/H the scores are those of maximal update parametrization.
    slopes : (float, float), optional
        :math:`\varphi(x) = \sqrt c\,(s_+ \max(x, 0) + s_- \min(x, 0))` with
        :math:`c = 2/(s_+^2 + s_-^2)`; by default (1, 0), the ReLU, and
        :math:`1 \pm 1/\sqrt n` for "shaped".
    iterations : int
        Normalizations for "sinkhorn": an odd number ends on rows.
    rng : numpy.random.Generator
        Source of the weights.

    Returns
    -------
    Transformer

    Raises
    ------
    ValueError
        For counts below 1, heads that do not divide the width, an unknown attention or
        norm, a temperature that is not positive, or slopes that are both 0.
    """
    counts = dict(
        depth=depth, width=width, heads=heads, tokens=tokens, features=features
    )
    for name, count in counts.items():
        require_count(name, count)
    require_count("classes", classes, least=2)
    if width % heads:
        raise ValueError(f"heads must divide the width {width}, got {heads}")
    shaped = _require_word("attention", attention, KINDS) == "shaped"
    if temperature is None:
        temperature = ((width if shaped else 1) * width / heads) ** 0.5
    if slopes is None:
        slopes = (1 + width**-0.5, 1 - width**-0.5) if shaped else (1.0, 0.0)
    plan = Plan(
        heads=heads,
        attention=attention,
        norm=_require_word("norm", norm, NORMS),
        skip=require_number("skip", skip),
        branch=require_number("branch", branch),
        temperature=require_positive("temperature", temperature),
        slopes=_require_slopes(slopes),
        iterations=require_count("iterations", iterations),
    )
    require_generator("rng", rng)
    square = (depth, width, width)
    names = (*network.ATTENTION, *network.PERCEPTRON)
    shapes: dict[str, tuple[int, ...]] = {
        "embed": (features, width),
        "position": (tokens, width),
        **dict.fromkeys(names, square),
        "readout": (width, classes),
    }
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return Transformer(params | {"bias": np.zeros(classes)}, plan)


def _require_word(name: str, value: str, words: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {value!r}")
    return value


def _require_slopes(slopes: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(slopes, tuple) or len(slopes) != 2:
        raise ValueError(f"slopes must be a pair of numbers, got {slopes!r}")
    up, down = (require_number("slopes", slope) for slope in slopes)
    if not (up or down):
        raise ValueError(f"slopes make the activation 0, got {slopes!r}")
    return up, down
