"""The training: tokens of an image through the layers, before and after training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.attention import softmax
from lib.core.checks import Array, require_count, require_within
from lib.exhibits.pictures import pixels, require_gray, stored
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style
from lib.sphere import cluster_labels
from lib.transformer import Trace, Transformer, inspect
from lib.transformer.classifier import require_labels

State = Mapping[str, Any]
BINS = 20  # of the cosine, from −1 to 1
SCALE = 100  # places are stored in hundredths
RADIUS = 0.5  # largest chord of two neighbors in a cluster, as of inspect
FRAMES = (COLORS[0], COLORS[1], INK, COLORS[4])  # by the rank of the cluster
ALONE = 3
MIDDLE = 0.1  # a tick on the axis of shares, between 0 and its end
SIDE = 0.1  # half the side of a tile, where the farthest place is 1


def training(
    saved: Mapping[int, Transformer],
    x: npt.ArrayLike,
    patches: npt.ArrayLike,
    labels: npt.ArrayLike,
    classes: Sequence[str],
    *,
    step: float | None = None,
    layer: float | None = None,
    image: int = 0,
    caption: str | None = None,
) -> Exhibit:
    """Live exhibit of the tokens of an image, layer by layer, while a model trains.

    Each token is drawn as the patch that it was made of, in the plane that keeps the
    distances of the directions of the tokens best; beside it the cosines of all pairs,
    and as a line those of the same model before training. The reader lets the layers
    play, moves training step and layer, and clicks another image. Between the steps
    that were saved, and between layers, tokens and shares are moved on straight lines,
    which the outlines of the patches and the text say; on the site the sliders come to
    rest at what was saved. The outlines have the colors of clusters, in which chords of
    at most ½ lead from token to token. One axis serves all shares, with a root scale.

    Parameters
    ----------
    saved : mapping of int to Transformer
        One model after some numbers of steps, as ``Training.saved``: 0 and at least
        two others.
    x : array_like, shape (k, tokens, features)
        Images as the model takes them.
    patches : array_like, shape (k, tokens, features)
        The same images as gray levels in [0, 1], as of :func:`lib.data.image_patches`.
    labels : array_like of int, shape (k,)
        Their classes.
    classes : sequence of str
        What the classes of the model are called.
    step, layer : float, optional
        Where it opens; the last ones by default.
    image : int
        Index of the image with which it opens.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For arrays that do not fit, patches that are no squares, or numbers out of
        range.
    """
    models = _require_models(saved)
    tiles = _joined(patches)
    runs = [model.forward(x, trace=True) for model in models]
    names = _names(models[0], labels, classes, len(runs[0].logits))
    if len(tiles) != len(names) or len(names) < 2:
        raise ValueError(
            f"patches must be those of x, at least 2 images, got {len(tiles)} for"
            f" {len(names)}"
        )
    steps = [*saved]
    depth = models[0].depth
    at = require_within("step", steps[-1] if step is None else step, 0, steps[-1])
    layer = require_within("layer", depth if layer is None else layer, 0, depth)
    require_count("image", image, least=0, most=len(names) - 1)
    state = _measured(runs) | {
        "steps": steps,
        "layers": depth + 1,
        "scale": SCALE,
        "side": SIDE,
        "pictures": [stored(tile) for tile in tiles],
        "names": [*names],
        "classes": [*classes],
    }
    opens = {"step": at, "layer": layer, "image": float(image)}
    return live(
        "training",
        draw_training,
        state=state,
        positions=[(state, opens | {"layer": depth if layer < depth / 2 else 0.0})],
        controls={
            "step": Slider(
                "training step", float(steps[1]), float(steps[-1]), at,
                log=True, zero=True,
            ),
            "layer": Slider("layer", 0.0, float(depth), layer),
            "image": Choice(
                "image", {f"{name} {k + 1}": float(k) for k, name in enumerate(names)},
                image,
            ),
        },
        kernels={},
        caption=caption,
    )  # fmt: skip


def _measured(runs: Sequence[Trace]) -> dict[str, Any]:
    """Drawings of runs on the same images, by image first."""
    tokens = np.stack([run.tokens for run in runs])  # (steps, layers, k, m, n)
    images = range(tokens.shape[2])
    seen = [[inspect(each[:, [i]], bins=BINS) for each in tokens] for i in images]
    places = np.stack([planes(tokens[:, :, i]) for i in images])
    units = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    shares = np.array([[each.histogram for each in row] for row in seen])
    guesses = softmax(np.stack([run.logits for run in runs]))  # (steps, k, classes)
    return {
        "bins": BINS,
        "top": float(np.ceil(10 * shares.max()) / 10),
        "places": np.round(SCALE * places / np.abs(places).max()),
        "shares": np.round(shares, 4),
        "cosines": np.round([[each.cosines for each in row] for row in seen], 3),
        "clusters": [[each.clusters for each in row] for row in seen],
        "ranks": np.moveaxis(ranks(cluster_labels(units, RADIUS)), 2, 0),
        "guesses": guesses.argmax(-1).T,
        "sure": np.round(100 * guesses.max(-1).T),
    }


def _require_models(saved: Mapping[int, Transformer]) -> list[Transformer]:
    """The models by increasing step; ValueError unless 0 and two others are there."""
    if not isinstance(saved, Mapping) or [*saved][:1] != [0] or len(saved) < 3:
        given = [*saved] if isinstance(saved, Mapping) else saved
        raise ValueError(
            f"saved must have step 0 and at least two later ones, got {given!r}"
        )
    if sorted(saved) != [*saved] or not all(
        isinstance(each, Transformer) for each in saved.values()
    ):
        raise ValueError(
            f"saved must map increasing steps to transformers, got {[*saved]}"
        )
    return [*saved.values()]


def _joined(patches: npt.ArrayLike) -> Array:
    """Pictures (k, side, side) of square patches (k, tokens, features)."""
    cut = require_gray("patches", patches)
    if cut.ndim != 3 or not all(isqrt(size) ** 2 == size > 0 for size in cut.shape[1:]):
        raise ValueError(
            f"patches must be squares, shape (k, tokens, features), got {cut.shape}"
        )
    across, size = map(isqrt, cut.shape[1:])
    rows = cut.reshape(-1, across, across, size, size).swapaxes(2, 3)
    return rows.reshape(-1, across * size, across * size)


def _names(
    model: Transformer, labels: npt.ArrayLike, classes: Sequence[str], images: int
) -> list[str]:
    """Name the class of each image; ValueError unless every class has a name."""
    if not hasattr(classes, "__len__") or not all(isinstance(n, str) for n in classes):
        raise ValueError(f"classes must be a list of texts, got {classes!r}")
    count = len(model.params["bias"])
    if len(classes) != count:
        raise ValueError(f"classes must have {count} names, got {len(classes)}")
    return [classes[k] for k in require_labels(labels, images, count)]


def planes(tokens: Array) -> Array:
    """Plane pictures of tokens, (..., m, n) to (..., m, 2), that turn little.

    The directions of the tokens, less their mean, in their own two principal
    directions; each picture is turned or mirrored so that it agrees best with one plane
    that is common to all.
    """
    units = tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    centered = units - units.mean(axis=-2, keepdims=True)
    common = np.linalg.svd(centered.reshape(-1, units.shape[-1]))[2][:2].T  # (n, 2)
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    best = left[..., :2] * sizes[..., None, :2]  # (..., m, 2)
    u, _, v = np.linalg.svd(best.swapaxes(-1, -2) @ (centered @ common))
    return np.asarray(best @ u @ v)


def ranks(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ranks of the clusters of tokens by size: 0, 1, 2 for all others, 3 if alone.

    Of clusters of one size the first label comes first. Shape (..., m), as ``labels``.
    """
    m = labels.shape[-1]
    sizes = np.sum(labels[..., None, :] == np.arange(m)[:, None], axis=-1)
    order = np.argsort(-sizes, axis=-1, kind="stable")  # of clusters
    place = np.argsort(order, axis=-1)
    size, rank = (np.take_along_axis(each, labels, -1) for each in (sizes, place))
    return np.where(size > 1, np.minimum(rank, ALONE - 1), ALONE)


def nearest(steps: Sequence[int], step: float) -> int:
    """Index of the saved step that is nearest, in the logarithm of 1 + step."""
    return int(np.argmin(np.abs(np.log1p(steps) - np.log1p(step))))


def between(saved: Array, steps: Sequence[int], step: float, layer: float) -> Array:
    """Interpolate what was saved by step and layer, in log step after step 0."""
    low = int(np.clip(np.searchsorted(steps, step, "right") - 1, 0, len(steps) - 2))
    if low:
        part = np.log(step / steps[low]) / np.log(steps[low + 1] / steps[low])
    else:
        part = step / steps[1]
    at = saved[low] + part * (saved[low + 1] - saved[low])
    floor = min(int(layer), len(at) - 2)
    return np.asarray(at[floor] + (layer - floor) * (at[floor + 1] - at[floor]))


def _steps(step: float) -> str:
    return f"{step:.3g} step" + "s" * (step != 1)


def draw_training(
    state: State, *, step: float, layer: float, image: float
) -> BookFigure:
    """The patches of an image where their tokens are, and the cosines of all pairs."""
    i, steps = round(image), state["steps"]
    places = between(state["places"][i] / state["scale"], steps, step, layer)
    shares = between(state["shares"][i], steps, step, layer)
    before = between(state["shares"][i], steps, 0, layer)
    cosine = float(between(state["cosines"][i], steps, step, layer))
    frames = state["ranks"][i][nearest(steps, step)][int(layer + 0.5)]
    picture = pixels(state["pictures"][i])
    exact = step in steps and layer == round(layer)
    with style():
        # Placed by hand: the plane is a square as high as the figure.
        fig = Figure(figsize=(4.6, 2.3))
        fig.set_layout_engine("none")
        plane = fig.add_axes((0.0, 0.0, 0.5, 1.0))
        pile = fig.add_axes((0.6, 0.2, 0.37, 0.75))
        _draw_plane(
            plane, places, picture, state["side"], frames, "-" if exact else ":"
        )
        _draw_pile(pile, shares, before, state["top"])
    name, at = state["names"][i], f"layer {layer:.3g} after {_steps(step)}"
    at += "" if exact else " (interpolated)"
    return figure(
        fig,
        alt=f"The {len(places)} patches of an image ({name}) where their tokens are in"
        f" {at}, and the cosines of all pairs as bars, mean {cosine:.2f}; as a line"
        " those of the same layer before training.",
        caption=f"{name.capitalize()}, {at}: mean cosine {cosine:.2f}.",
    )


def _draw_plane(
    ax: Axes,
    places: Array,
    picture: npt.NDArray[np.uint8],
    side: float,
    frames: npt.NDArray[np.int64],
    outline: str,
) -> None:
    """Patches at the places of their tokens, framed by rank in a style of lines."""
    ax.set(xlim=(-1.13, 1.13), ylim=(-1.13, 1.13), aspect="equal")
    ax.axis("off")
    across = round(len(places) ** 0.5)
    size = len(picture) // across
    for k, (a, b) in enumerate(places):
        row, column = divmod(k, across)
        patch = picture[row * size : (row + 1) * size, column * size :][:, :size]
        box = (a - side, a + side, b - side, b + side)
        ax.imshow(patch, extent=box, interpolation="none", zorder=k + 2)
        ax.plot(
            [box[0], box[1], box[1], box[0], box[0]],
            [box[2], box[2], box[3], box[3], box[2]],
            color=FRAMES[frames[k]], linewidth=0.8 if frames[k] == ALONE else 1.4,
            linestyle=outline, zorder=k + 2,
        )  # fmt: skip
    ax.set(xlim=(-1.13, 1.13), ylim=(-1.13, 1.13))
    ax.text(-1.1, 1.12, "tokens, two directions", size=11, va="top")


def _draw_pile(ax: Axes, shares: Array, before: Array, top: float) -> None:
    """Shares of the pairs by their cosine, and as a line those before training."""
    edges = np.linspace(-1, 1, len(shares) + 1)
    ax.set(xlim=(-1, 1), ylim=(0, np.sqrt(top)), xticks=[-1, 0, 1])
    ticks = [0, MIDDLE, top]  # on a root scale, where small shares are seen too
    ax.set_yticks(np.sqrt(ticks), [f"{tick:g}" for tick in ticks])
    ax.tick_params(labelsize=11)
    ax.set_xlabel("cosine", labelpad=1)
    key = (
        ("share of pairs, √ scale", INK),
        ("bars: now", COLORS[0]),
        ("line: untrained", INK),
    )
    for k, (words, color) in enumerate(key):
        ax.text(
            -0.95,
            (0.92 - 0.15 * k) * np.sqrt(top),
            words,
            color=color,
            va="center",
            size=11,
        )
    ax.bar(
        edges[:-1], np.sqrt(shares), np.diff(edges) * 0.9, align="edge", color=COLORS[0]
    )
    ax.stairs(np.sqrt(before), edges, color=INK, linewidth=1.5, baseline=None)
