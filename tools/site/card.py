"""The picture of a shared link: the title beside a measured rate of the book."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lib.attention import softmax, softmax_expansion
from lib.claims import generator

INK, GRAY, COLORS = "#1f2933", "#767676", ("#0072b2", "#d55e00", "#00664a")
DPI = 100


def draw(path: Path, title: str, size: tuple[int, int]) -> None:
    """Write the picture: remainders of the softmax expansion over the temperature."""
    width, height = size
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
    figure.text(
        0.06,
        0.56,
        title.replace(" in ", "\nin "),
        size=50,
        color=INK,
        family="serif",
        weight="bold",
        linespacing=1.2,
    )
    figure.text(
        0.06,
        0.29,
        "Executable lecture notes on\nwide, deep, long and hot\ntransformers",
        size=25,
        color=INK,
        family="serif",
        linespacing=1.35,
    )
    axes = figure.add_axes((0.64, 0.13, 0.31, 0.74), xscale="log", yscale="log")
    logits = generator(0).standard_normal(6)
    temperatures = np.geomspace(2, 40, 9)
    for order, color, marker in zip((1, 2, 3), COLORS, "osD", strict=True):
        scaled = logits / temperatures[:, None]
        errors = np.abs(softmax(scaled) - softmax_expansion(scaled, order)).max(-1)
        line = errors[-1] * (temperatures / temperatures[-1]) ** -(order + 1.0)
        axes.plot(temperatures, line, color=INK, lw=1.5)
        axes.plot(temperatures, errors, marker, color=color, ms=9)
    axes.set(xlim=(1.7, 47), ylim=(1e-10, 1), xticks=[], yticks=[])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
