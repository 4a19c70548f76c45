"""Figures are deterministic, described, themed, and refuse to be otherwise."""

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from lib.figures import COLORS, INK, figure, rate_plot, style

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
