"""Figures are deterministic, described, themed, and refuse to be otherwise."""

import dataclasses
import json
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from lib.figures import (
    COLORS,
    INK,
    animate,
    curve_plot,
    explore,
    figure,
    level_plot,
    rate_plot,
    style,
)

ALT = "A line rises from the lower left corner to the upper right one."
SIZES = np.array([1.0, 2.0, 4.0, 8.0])


def drawn(label="label 0.001"):
    with style():
        fig = Figure()
        ax = fig.subplots()
        ax.plot([0, 1], [0, 1], marker="o", color=COLORS[0])
        ax.plot([0, 1], [0, 0.5], color=INK)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=label)
    return fig


def test_same_figure_same_bytes():
    first, second = figure(drawn(), alt=ALT), figure(drawn(), alt=ALT)
    assert first._repr_html_() == second._repr_html_()
    assert repr(first) == ALT


def test_ids_are_unique_between_figures_and_all_references_resolve():
    page = "".join(figure(drawn(x), alt=ALT)._repr_html_() for x in ("a", "b"))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) and ids
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) == set(ids)


def test_svg_follows_the_theme_and_is_short():
    html = figure(drawn(), alt=ALT, caption="See <that>.")._repr_html_()
    assert "currentColor" in html and INK not in html
    assert not re.search(r"<[^>]*\d\.\d{3,}", html)
    assert "label 0.001" in html  # text is no coordinate
    assert "metadata" not in html and "&lt;that&gt;" in html
    assert f'aria-label="{ALT}"' in html


def test_style_leaves_no_trace():
    before = mpl.rcParams["svg.hashsalt"]
    with style():
        assert mpl.rcParams["svg.hashsalt"] != before
    assert mpl.rcParams["svg.hashsalt"] == before


def test_data_colors_have_contrast_on_both_pages():
    def luminance(color):
        rgb = np.array(mpl.colors.to_rgb(color))
        linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for color in COLORS:
        for page in ("#ffffff", "#14181e"):
            high, low = sorted((luminance(color), luminance(page)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 3


@pytest.mark.parametrize(
    "alt", ["", "short.", "A long description without its full stop at the end", None]
)
def test_figures_must_be_described(alt):
    with pytest.raises(ValueError, match="alt"):
        figure(drawn(), alt=alt)


def test_limits_must_be_explicit():
    fig = drawn()
    fig.axes[0].autoscale(True)
    with pytest.raises(ValueError, match=r"fig.axes\[0\]"):
        figure(fig, alt=ALT)


def test_only_matplotlib_figures():
    with pytest.raises(ValueError, match="fig must be"):
        figure("picture", alt=ALT)


def test_rate_plot_draws_dots_and_predicted_slopes():
    fig = rate_plot(SIZES, {"a": SIZES**-2.0}, {"a": -2}, xlabel="n", ylabel="error")
    line, dots = fig.axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), dots.get_ydata())
    assert figure(fig, alt=ALT)


@pytest.mark.parametrize(
    ("errors", "orders", "message"),
    [
        ({"a": SIZES}, {"b": 1}, "orders"),
        ({}, {}, "orders"),
        ({"a": 0 * SIZES}, {"a": 1}, r"errors\['a'\]"),
        ({"a": SIZES[:2]}, {"a": 1}, r"errors\['a'\]"),
    ],
)
def test_rate_plot_names_bad_input(errors, orders, message):
    with pytest.raises(ValueError, match=message):
        rate_plot(SIZES, errors, orders, xlabel="n", ylabel="error")


def bars(height, label="level", count=2, caption=None):
    values = [height, 0.2, 0.1][:count]
    plot = level_plot(
        values, values[::-1], labels=values, xlabel=label, ylabel="y", top=0.5
    )
    alt = f"Some dots, the left one at a height of {height}, and some lines."
    return figure(plot, alt=alt, caption=caption)


def data(explorer):
    html = explorer._repr_html_()
    return json.loads(re.search(r'json">(.*?)</script>', html, re.S).group(1))


def test_explorer_stores_what_changes_and_is_deterministic():
    explorer = explore(bars, height=[0.1, 0.3, 0.4], label=["a", "b"])
    html = explorer._repr_html_()
    assert html == explore(bars, height=[0.1, 0.3, 0.4], label=["a", "b"])._repr_html_()
    stored = data(explorer)
    assert len(stored["frames"]) == len(stored["alt"]) == 6
    assert {name for _, name in stored["slots"]} >= {"y", "#text"}
    assert html.count("<svg") == 1 and html.count('type="range"') == 2
    assert stored["stops"] == [["0.1", "0.3", "0.4"], ["a", "b"]]


def test_explorer_values_are_those_matplotlib_draws():
    """Every value of a frame stands in that frame's own SVG, under its name."""
    explorer = explore(bars, height=[0.1, 0.3, 0.4])
    stored = data(explorer)
    assert stored["slots"]
    for frame, row in zip(explorer.frames, stored["frames"], strict=True):
        svg = frame.svg.replace("\n", " ")  # as attributes are read
        for (_, name), value in zip(stored["slots"], row, strict=True):
            assert (f">{value}<" if name == "#text" else f'{name}="{value}"') in svg


def test_explorers_that_differ_in_the_drawing_alone_share_no_id():
    def alike(label):
        def draw(height):
            return dataclasses.replace(bars(height, label), alt=ALT)

        return explore(draw, height=[0.1, 0.2])._repr_html_()

    found = [set(re.findall(r' id="([^"]+)"', alike(x))) for x in "ab"]
    assert all(found) and not found[0] & found[1]


def test_explorer_of_different_elements_keeps_whole_frames():
    stored = data(explore(lambda count: bars(0.1, count=count), count=[2, 3]))
    assert stored["slots"] == [] and stored["frames"][1][0].startswith("<svg")


def test_explorer_in_a_kernel_has_continuous_sliders():
    explorer = explore(bars, height=[0.1, 0.2, 0.4], label=["a", "b"])
    height, label, view = explorer.widget().children
    assert type(height).__name__ == "FloatLogSlider"
    assert type(label).__name__ == "SelectionSlider"
    height.value = 0.15
    assert "height of 0.15" in view.value
    linear = explore(bars, height=[0.1, 0.2, 0.3]).widget().children[0]
    assert type(linear).__name__ == "FloatSlider"


def test_animation_is_an_explorer_with_a_button():
    moving, still = animate(bars, height=[0.1, 0.3]), explore(bars, height=[0.1, 0.3])
    button = '<button type="button" class="explorer-play">Play</button>'
    assert moving._repr_html_().replace(button, "") == still._repr_html_()
    with pytest.raises(ValueError, match="one argument that moves, got height, label"):
        animate(bars, height=[0.1, 0.2], label=["a", "b"])


def test_animation_in_a_kernel_plays():
    player, height, view = animate(bars, height=[0.1, 0.2, 0.4]).widget().children
    player.value = 2
    assert height.value == 0.4 and "height of 0.4" in view.value


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "values are missing"),
        ({"height": []}, "height must list at least two"),
        ({"height": 3}, "height must list at least two"),
        ({"height": "ab"}, "height must list at least two"),
        ({"height": [0.1, 0.1]}, "height must list distinct"),
        ({"height": np.linspace(0.1, 0.4, 3), "label": list("abcdefgh" * 1)}, None),
    ],
)
def test_explorer_names_bad_values(values, message):
    if message is None:
        assert len(explore(bars, **values).frames) == 24
        return
    with pytest.raises(ValueError, match=message):
        explore(bars, **values)


def test_explorer_refuses_impure_drawing_other_values_and_excess():
    calls = iter(np.linspace(0.1, 0.4, 50))
    with pytest.raises(ValueError, match="impure"):
        explore(lambda height: bars(next(calls)), height=[1, 2])
    with pytest.raises(ValueError, match="draw must return"):
        explore(lambda height: "text", height=[1, 2])
    with pytest.raises(ValueError, match="frames of [0-9]+ bytes"):
        explore(lambda height: bars(height, caption="x" * 250_000), height=[0.1, 0.2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1]}, "one length"),
        ({"top": 0}, "top"),
        ({"measured": [1]}, "length"),
    ],
)
def test_level_plot_names_bad_input(change, message):
    good = {"measured": [0, 1], "predicted": [0, 1], "labels": [1, 2], "top": 1}
    with pytest.raises(ValueError, match=message):
        level_plot(**{**good, **change}, xlabel="x", ylabel="y")


def curves(**change):
    good = {
        "x": [1, 2, 4], "curves": {"a": [1, 2, 3], "b": [1, 2, 3.01], "c": [3, 2, 0]},
        "xlim": (0, 5), "ylim": (0, 4), "xlabel": "x", "ylabel": "y",
    }  # fmt: skip
    return curve_plot(**{**good, **change})


def test_curve_plot_keeps_names_apart():
    ax = curves().axes[0]
    places = sorted(text.xy[1] for text in ax.texts)
    assert len(places) == 3 and min(np.diff(places)) > 0.08
    assert all(0 <= place <= 1 for place in places)
    # Each name has the color and the marker of its curve beside it.
    drawn, keys = ax.lines[:3], ax.lines[3:]
    styles = {(line.get_color(), line.get_marker()) for line in drawn}
    assert styles == {(line.get_color(), line.get_marker()) for line in keys}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": []}, "x must be"),
        ({"curves": {"a": [1]}}, "one value for each x"),
        ({"curves": {str(k): [1, 2, 3] for k in range(6)}}, "1 to 5 names"),
        ({"xlim": (5, 0)}, "xlim must be an increasing pair"),
        ({"log": "y"}, "ylim must be an increasing pair"),
        ({"log": "z"}, "log must be one of"),
    ],
)
def test_curve_plot_names_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        curves(**change)


def test_powers_of_ten_are_plain_text():
    """Formulas would be glyphs and no text, and take as long as all the rest."""
    x = np.array([1.0, 10.0, 3000.0])
    wide = dict(xlabel="n", ylabel="error", xlim=(1, 5000), log="xy")
    plot = curve_plot(x, {"a": 1 / x}, ylim=(1e-4, 1), **wide)
    svg = figure(plot, alt=ALT)._repr_html_()
    assert all(label in svg for label in ("10⁰", "10³", "10⁻⁴"))
    assert "mathdefault" not in svg
    narrow = curve_plot(x, {"a": 0 * x + 0.05}, ylim=(0.02, 0.09), **wide)
    assert "3×10⁻²" in figure(narrow, alt=ALT)._repr_html_()
