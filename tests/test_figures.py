"""Figures are deterministic, described, themed, and refuse to be otherwise."""

import base64
import dataclasses
import hashlib
import inspect
import io
import json
import re
import sys
from html import escape, unescape

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from nbclient import NotebookClient
from PIL import Image

from lib import figures
from lib.figures import (
    COLORS,
    INK,
    BookFigure,
    compare_plot,
    curve_plot,
    explore,
    figure,
    level_plot,
    rate_plot,
    style,
)
from lib.figures.svg import render
from lib.figures.theme import saving
from tools.command import ROOT
from tools.digests import digests
from tools.site.finish import drop_stills
from tools.site.markup import parsed
from tools.texts import read_text, texts

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

    for color in (*COLORS, *figures.theme._MORE):
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


def test_caption_that_changes_is_stored_for_each_frame():
    def told(height):
        return bars(height, caption=f"At {height} & more.")

    explorer = explore(told, height=[0.1, 0.3])
    assert data(explorer)["captions"] == ["At 0.1 & more.", "At 0.3 & more."]
    html = explorer._repr_html_()
    assert '<figcaption aria-live="polite">At 0.1 &amp; more.</figcaption>' in html
    same = explore(lambda height: bars(height, caption="Same."), height=[0.1, 0.3])
    assert "captions" not in data(same)
    assert "<figcaption>Same.</figcaption>" in same._repr_html_()


def test_letter_with_a_digit_is_labeled_as_it_is_printed():
    explorer = explore(lambda τ0: bars(τ0), τ0=[0.1, 0.3])
    assert re.findall("<label.*?>(.*?)<", explorer._repr_html_()) == ["τ₀"]


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

    ids = [set(re.findall(r' id="([^"]+)"', alike(x))) for x in "ab"]
    assert all(ids) and not ids[0] & ids[1]


def test_explorer_of_different_elements_keeps_whole_frames():
    stored = data(explore(lambda count: bars(0.1, count=count), count=[2, 3]))
    assert stored["slots"] == [] and stored["frames"][1][0].startswith("<svg")


def positions(slider):
    """Every value that a control of a widget can take."""
    match type(slider).__name__:
        case "SelectionSlider":
            return list(slider._options_values)
        case "IntSlider":
            return list(range(slider.min, slider.max + 1))
        case "FloatLogSlider":
            steps = round((slider.max - slider.min) / slider.step)
            return list(slider.base ** np.linspace(slider.min, slider.max, steps + 1))
        case "FloatSlider":
            steps = round((slider.max - slider.min) / slider.step)
            return list(np.linspace(slider.min, slider.max, steps + 1))


def moved(explorer):
    """Each control at each position, the others where they were: values, and HTML."""
    *controls, view = explorer.widget().children
    for control in controls:
        first = control.value
        for position in positions(control):
            control.value = position
            values = [each.value for each in controls]
            yield dict(zip(explorer.values, values, strict=True)), view.value
        control.value = first


def written(**values):
    """A figure that takes no time: its values, as a text."""
    text = ", ".join(f"{name} is {value}" for name, value in values.items())
    return BookFigure(f"<svg><text>{text}</text></svg>", f"A text that says: {text}.")


@pytest.mark.parametrize("continuous", [False, True])
def test_every_position_in_a_kernel_shows_its_own_picture(continuous):
    stops = dict(height=[0.1, 0.3, 0.4], label=["a", "b"], count=[2, 4])
    explorer = explore(written, continuous=continuous, **stops)
    seen = list(moved(explorer))
    for values, shown in seen:
        assert shown == written(**values)._repr_html_()
    heights = {values["height"] for values, _ in seen}
    assert len(heights) > 50 if continuous else heights == {0.1, 0.3, 0.4}


def test_without_a_word_a_kernel_offers_the_stops_alone():
    """A function that looks its values up is never asked for another one."""
    table = {0.1: 0.2, 0.2: 0.1, 0.4: 0.4}
    explorer = explore(lambda height: bars(table[height]), height=[*table])
    assert [p for p in moved(explorer) if "raised" in p[1]] == []
    slider, _ = explorer.widget().children
    assert slider.options == (("0.1", 0.1), ("0.2", 0.2), ("0.4", 0.4))


@pytest.mark.parametrize(
    ("stops", "kind"),
    [
        ([0.1, 0.2, 0.4], "FloatLogSlider"),
        ([0.4, 0.1, 0.2, 0.05, 0.025], "FloatLogSlider"),
        ([0.5, 1.0, 2.0, 4.0, 16.0], "FloatLogSlider"),
        ([0.1, 0.2, 0.3], "FloatSlider"),
        ([0.125, 0.25, 0.5, 0.75, 1.0], "FloatSlider"),
        ([0.0, 0.5, 2.0], "FloatSlider"),
        ([-1, 0.5], "FloatSlider"),
        ([0, 1, 2, 3], "IntSlider"),
        ([400, 100], "IntSlider"),
        ([64, 256, 1024, 65536], "SelectionSlider"),  # integers in equal ratios
        ([True, False], "SelectionSlider"),
        ([1, "many"], "SelectionSlider"),
    ],
)
def test_continuous_sliders_are_as_the_stops_are(stops, kind):
    control = figures.widgets.control("x", tuple(stops), True)
    assert type(control).__name__ == kind
    assert control.value == pytest.approx(stops[0]) or kind == "SelectionSlider"
    offered = positions(control)
    if kind != "SelectionSlider":
        assert offered[0] == pytest.approx(min(stops))
        assert offered[-1] == pytest.approx(max(stops))
    if kind == "SelectionSlider" and 65536 in stops:
        assert set(stops) < set(offered) and len(offered) < 70
        assert min(offered) == 64 and max(offered) == 65536
    assert control.readout_format == ".4g" if kind.startswith("Float") else True


def fragile(height):
    if height == 0.2:
        raise RuntimeError("two <i>lines</i>\nof trouble")
    return bars(height)


def test_what_draw_raises_stands_where_the_picture_was():
    explorer = explore(fragile, continuous=True, height=[0.1, 0.4])
    slider, view = explorer.widget().children
    slider.value = 0.2
    assert "<svg" not in view.value and 'role="alert"' in view.value
    said = unescape(re.sub("<[^>]*>", "", view.value))
    assert said == (
        "draw raised RuntimeError: two <i>lines</i> of trouble at height = 0.2"
    )
    slider.value = 0.3
    assert view.value == bars(0.3)._repr_html_()


def test_a_drawing_that_fails_between_the_stops_is_not_continuous():
    table = {0.1: 0.2, 0.4: 0.4}

    def look_up(height, count):
        return bars(table[height], count=count)

    assert explore(look_up, height=[0.1, 0.4], count=[2, 3])
    said = r"KeyError: 0\.25 at height = 0\.25, count = 2, .* the stops: .*continuous=T"
    with pytest.raises(ValueError, match=said):
        explore(look_up, continuous=True, height=[0.1, 0.4], count=[2, 3])
    moving = {2: 0.1, 4: 0.2}
    with pytest.raises(ValueError, match="KeyError: 3 at height = 3"):
        explore(lambda height: bars(moving[height]), continuous=True, height=[2, 4])
    with pytest.raises(ValueError, match="needs an argument whose stops are numbers"):
        explore(lambda label: bars(0.1, label), continuous=True, label=["a", "b"])


def test_draw_that_raises_at_a_stop_is_one_sentence():
    with pytest.raises(
        ValueError, match=r"^draw raised RuntimeError: .* height = 0.2$"
    ):
        explore(fragile, height=[0.1, 0.2])
    with pytest.raises(ValueError, match="^draw raised KeyError at height = 1$"):
        explore(lambda height: {}.popitem() if height < 0 else _raise(KeyError),
                height=[1, 2])  # fmt: skip
    with pytest.raises(ValueError, match=r"^draw raised ValueError: x{10,}… at height"):
        explore(lambda height: _raise(ValueError("x" * 999)), height=[1, 2])
    with pytest.raises(KeyboardInterrupt):
        explore(lambda height: _raise(KeyboardInterrupt), height=[1, 2])


def _raise(error):
    raise error


@pytest.mark.parametrize("caption", [None, "See."])
def test_explorer_opens_where_it_is_told_to(caption):
    """Stored, printed and in a kernel; the frames are in the same order as ever."""

    def draw(height, label):  # frames of other elements where the label is long
        return bars(height, label, count=3 if label == "long" else 2, caption=caption)

    stops = {"height": [0.1, 0.3, 0.45], "label": ["a", "b"]}
    for labels in (["a", "b"], ["a", "long"]):
        stops["label"] = labels
        plain = explore(draw, **stops)
        told = explore(draw, start={"label": labels[1], "height": 0.3}, **stops)
        opening = draw(0.3, labels[1])
        assert told.frames == plain.frames and told.opening == opening
        assert repr(told) == opening.alt
        html = told._repr_html_()
        assert f'aria-label="{opening.alt}"' in html[: html.index("json")]
        assert re.findall(r'<input .*? value="(.)"', html) == ["1", "1"]
        assert re.findall("<output.*?>(.*?)<", html) == ["0.3", labels[1]]
        stills = (each._repr_mimebundle_()["image/png"] for each in (told, opening))
        one, two = (np.asarray(opened(png).convert("RGB")) for png in stills)
        assert (one == two).all()
        controls = told.widget().children
        assert [each.value for each in controls[:2]] == [0.3, labels[1]]
        assert controls[2].value == opening._repr_html_()
        one, two = (
            re.sub("[0-9a-f]{8}-", "", json.dumps(data(each))) for each in (told, plain)
        )
        assert one == two  # what is written for each frame


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (0.3, "^start must map names to stops, got 0.3"),
        ({"depth": 0.3}, r"^start names 'depth', which is none of \['height'\]"),
        ({"height": 0.2}, r"^start\['height'\] must be one of its stops .* got 0.2"),
    ],
)
def test_explorer_says_what_is_no_start(start, message):
    with pytest.raises(ValueError, match=message):
        explore(bars, start=start, height=[0.1, 0.3])


def test_start_is_no_argument_of_draw():
    with pytest.raises(ValueError, match="argument named start, .* rename it"):
        explore(lambda start: bars(start), height=[0.1, 0.2])


def test_positions_for_paper_are_stored_as_indices_of_their_stops():
    stops = {"height": [0.1, 0.3, 0.4], "label": ["a", "b"]}
    made = explore(bars, paper=[{"label": "b", "height": 0.4}], **stops)
    assert data(made)["paper"] == [[2, 1]]
    assert "paper" not in data(explore(bars, **stops))


@pytest.mark.parametrize(
    ("paper", "sentence"),
    [
        (
            [{"height": 0.2}],
            r"paper has height = 0.2, which is no stop: there are 0.1, 0.3",
        ),
        ([{}], "paper must give a stop of height in each position, got {}"),
        ([{"height": 0.1, "T": 1}], "a stop of height in each position"),
        ([0.1], "in each position, got 0.1"),
        ("height", "paper must be a list of positions, got 'height'"),
        ({"height": 0.1}, "paper must be a list of positions"),
    ],
)
def test_position_that_is_none_is_refused(paper, sentence):
    with pytest.raises(ValueError, match=sentence):
        explore(bars, paper=paper, height=[0.1, 0.3])


def test_paper_is_no_argument_of_draw():
    with pytest.raises(ValueError, match="argument named paper"):
        explore(lambda height, paper=1: bars(height), height=[0.1, 0.2])


@pytest.mark.parametrize("wrong", [1, "yes", None, [True, False], np.True_])
def test_continuous_is_a_bool_and_no_argument_of_draw(wrong):
    with pytest.raises(ValueError, match="^continuous must be True or False, "):
        explore(bars, continuous=wrong, height=[0.1, 0.2])
    with pytest.raises(ValueError, match="argument named continuous"):
        explore(lambda height, continuous=False: bars(height), height=[0.1, 0.2])


def test_stops_that_would_print_alike_are_told_apart():
    explorer = explore(bars, height=[0.3, 0.30000001, 0.1 + 0.2, 1 / 3])
    shown = data(explorer)["stops"][0]
    assert shown == ["0.3", "0.30000001", "0.30000000000000004", "0.3333333333333333"]
    slider, _ = explorer.widget().children
    assert [label for label, _ in slider.options] == shown
    mixed = explore(lambda x: bars(0.1, str(x)), x=[1, "1"])
    assert data(mixed)["stops"] == [["1", "'1'"]]
    alike = explore(lambda height: bars(0.1), height=[1, 2])  # one picture is no error
    assert len(data(alike)["frames"]) == 2 and data(alike)["slots"] == []


def test_texts_of_stops_are_no_markup():
    wild = ["<!--<script>", "</script><img src=x onerror=alert(1)>", 'a & "b"']

    def draw(law):
        return figure(drawn(escape(law)), alt=f"A line with a label below, {law} at x.")

    html = explore(draw, law=wild)._repr_html_()
    assert data(explore(draw, law=wild))["stops"] == [wild]
    assert "<!--" not in html and html.count("</script>") == 1
    assert "<img" not in re.sub(r"<script.*?</script>", "", html)


def test_numpy_scalars_and_large_numbers_are_stops():
    explorer = explore(
        lambda n, x: bars(0.1, f"{n} {x}"),
        n=np.array([2, 10**15]), x=[np.float32(0.5), np.float64(1e300)],
    )  # fmt: skip
    assert {type(x) for stops in explorer.values.values() for x in stops} == {
        int,
        float,
    }
    assert data(explorer)["stops"] == [["2", "1000000000000000"], ["0.5", "1e+300"]]
    with pytest.raises(ValueError, match=r"integers of at most 2\^53"):
        explore(lambda n: bars(0.1), continuous=True, n=[1, 2**53 + 1])


def test_a_drawing_with_one_figure_for_all_frames_is_stored_as_its_first():
    fig = drawn()

    def draw(height):
        fig.axes[0].lines[0].set_ydata([0, height])
        return figure(fig, alt=f"A line that rises to the height {height:g} in a box.")

    explorer = explore(draw, continuous=True, height=[0.25, 1.0])
    assert len({frame.svg for frame in explorer.frames}) == 2
    assert explorer._repr_mimebundle_()["image/png"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "values are missing"),
        ({"height": []}, "height must list at least two"),
        ({"height": 3}, "height must list at least two"),
        ({"height": "ab"}, "height must list at least two"),
        ({"height": [0.1, 0.1]}, "height must list distinct"),
        ({"height": [1, True]}, "height must list distinct"),
        ({"height": {0.1, 0.2}}, "height must list at least two"),
        ({"height": np.array(3.0)}, "height must list at least two"),
        ({"height": np.ones((2, 2))}, "height must list finite numbers or texts"),
        ({"height": [0.1, np.nan]}, "height must list finite numbers or texts"),
        ({"height": [0.1, np.inf]}, "height must list finite numbers or texts"),
        ({"height": [0.1, 10**400]}, "height must list finite numbers or texts"),
        ({"height": [0.1, None]}, "height must list finite numbers or texts"),
        ({"height": [0.1, 1j]}, "height must list finite numbers or texts"),
        ({"height": np.linspace(0.1, 0.4, 3), "label": list("abcdefgh")}, None),
    ],
)
def test_explorer_names_bad_values(values, message):
    if message is None:
        assert len(explore(written, **values).frames) == 24
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


def test_a_curve_is_dashed_and_so_is_its_sample():
    lines = curves(dashed=["b"]).axes[0].lines
    assert [line.is_dashed() for line in lines[:3]] == [False, True, False]
    # Samples stand in the order in which the curves end, from below.
    assert [line.is_dashed() for line in lines[3:]] == [False, False, True]


def test_a_line_leads_from_the_end_of_a_curve_to_its_name():
    ax = curves(curves={"a": [1, 2, 1], "b": [1, 2, 3], "c": [1, 2, 2]}).axes[0]
    ends = {line.get_color(): (x[-1], y[-1]) for line in ax.lines[:3]
            for x, y in [line.get_data()]}  # fmt: skip
    for leader, name in zip(ax.lines[3:], ax.texts, strict=True):
        start, stop = leader.get_xydata()
        at = (ax.transData - ax.transAxes).transform(ends.pop(leader.get_color()))
        assert start == pytest.approx(np.clip(at, 0, 1))
        assert stop[0] < name.xy[0] and stop[1] == name.xy[1]
    assert not ends


def test_where_ends_meet_samples_stand_before_the_names():
    x = [0, 1, 2, 3, 4]
    names = ["dots", "dashes", "solid"]  # from below
    plot = compare_plot(
        {"dots": (x, x)}, {"solid": (x, [0, 1, 2, 3, 4.2]), "dashes": (x, x)},
        dashed=["dashes"], xlabel="x", ylabel="y", xlim=(0, 4), ylim=(0, 5),
    )  # fmt: skip
    ax = plot.axes[0]
    assert [text.get_text() for text in ax.texts] == names
    dashes, solid, dots = (ax.lines[k] for k in (1, 0, 2))
    for curve, sample, name in zip(
        (dots, dashes, solid), ax.lines[3:], ax.texts, strict=True
    ):
        for look in ("color", "marker", "linestyle", "linewidth"):
            assert plt.getp(sample, look) == plt.getp(curve, look)
        at = sample.get_xydata()
        assert (at[:, 1] == name.xy[1]).all() and 1 < at[0, 0] < at[-1, 0] < name.xy[0]
    assert dashes.is_dashed() and not solid.is_dashed()


def test_curves_that_look_alike_have_leaders_even_where_they_meet():
    x = [0, 1, 2]
    lines = {"up": (x, [0, 1, 2]), "higher": (x, [0, 1, 2.1])}
    plot = compare_plot(
        {"dot": (x[:1], x[:1])}, lines, xlabel="x", ylabel="y", xlim=(0, 2),
        ylim=(0, 4),
    )  # fmt: skip
    starts = [line.get_xydata()[0] for line in plot.axes[0].lines[3:]]
    np.testing.assert_allclose(starts, [(1, 0.5), (1, 2.1 / 4)])


@pytest.mark.parametrize("dashed", ["line", 1, ["dots"], ["none"], [["line"]]])
def test_only_predicted_lines_are_dashed(dashed):
    x = [0, 1]
    with pytest.raises(ValueError, match="dashed must name some of"):
        compare_plot({"dots": (x, x)}, {"line": (x, x)}, xlabel="x", ylabel="y",
                     xlim=(0, 1), ylim=(0, 1), dashed=dashed)  # fmt: skip


def test_names_stand_at_ends_that_are_far_from_the_edge():
    x = np.arange(5.0)
    plot = compare_plot(
        {"short": (x[:3], x[:3]), "long": (x, x / 2)},
        {"long": (x[::-1], x[::-1] / 2), "line": (x[:2], x[:2])},
        xlabel="x", ylabel="y", xlim=(0, 4), ylim=(0, 4),
    )  # fmt: skip
    ax = plot.axes[0]
    places = {text.get_text(): text.xy for text in ax.texts}
    assert places["short"] == pytest.approx((0.5, 0.5))
    assert places["line"] == pytest.approx((0.25, 0.25))
    # Named where its line ends at the right, in whatever order the values are.
    (leader,) = [line for line in ax.lines if line.get_linewidth() == 0.8]
    assert leader.get_xydata()[0] == pytest.approx((1, 0.5))
    assert places["long"] == pytest.approx((1.06, 0.5))


def test_a_curve_that_ends_outside_keeps_its_name_at_the_edge():
    ax = curves(curves={"far": [1, 2, 99], "low": [1, 1, -5]}).axes[0]
    assert [text.xy[1] for text in ax.texts] == [0, 1]
    assert all(0 <= y <= 1 for line in ax.lines[2:] for y in line.get_ydata())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": []}, "x must be"),
        ({"curves": {"a": [1]}}, "one value for each x"),
        ({"curves": {str(k): [1, 2, 3] for k in range(6)}}, "1 to 5 names"),
        ({"xlim": (5, 0)}, "xlim must be an increasing pair"),
        ({"log": "y"}, "ylim must be an increasing pair"),
        ({"log": "z"}, "log must be one of"),
        ({"dashed": ["d"]}, r"dashed must name some of \['a', 'b', 'c'\]"),
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


@pytest.mark.parametrize("scale", ["log", "symlog"])
def test_no_label_of_an_ordinary_logarithmic_axis_is_a_small_exponent(scale):
    fig = Figure()
    ax = fig.subplots()
    ax.plot([1, 10, 1000], [0.02, 0.03, 0.05])
    ax.set(xscale=scale, xlim=(1, 1000), yscale="log", ylim=(0.02, 0.05))
    svg = figure(fig, alt=ALT).svg
    assert "10³" in svg and "3×10⁻²" in svg
    sizes = re.findall(r"font(?:-size)?: ?([\d.]+)px", svg)
    assert sizes and min(map(float, sizes)) >= 10  # of an ordinary figure


# PNG beside the HTML, for programs that show no SVG.


def opened(png):
    if isinstance(png, str):
        png = base64.b64decode(png)
    return Image.open(io.BytesIO(png))


def still_in(html):
    """The PNG in a stored form, its alternative text, and the form without it."""
    stills = re.findall(
        r'<template>(<img alt="([^"]*)" src="([^"]*)">)</template>', html
    )
    ((image, alt, source),) = stills
    assert source.startswith("data:image/png;base64,")
    return source[22:], unescape(alt), html.replace(image, f"<p>{alt}</p>")


def test_stored_forms_are_html_png_and_text():
    made = figure(drawn(), alt=f"{ALT[:-1]}, as “x < y & z”.", caption="See.")
    forms = made._repr_mimebundle_()
    assert list(forms) == ["text/plain", "text/html", "image/png"]
    assert forms["text/plain"] == made.alt
    png, alt, html = still_in(forms["text/html"])
    assert (png, alt, html) == (forms["image/png"], made.alt, made._repr_html_())
    assert opened(png).text["Source"] == hashlib.sha256(html.encode()).hexdigest()
    assert forms == made._repr_mimebundle_()
    assert forms == figure(drawn(), alt=made.alt, caption="See.")._repr_mimebundle_()
    shown = parsed(forms["text/html"])
    drop_stills(shown)
    assert shown == parsed(re.sub("<template.*?/template>", "", html))


def test_png_is_dark_ink_on_a_white_page():
    shown = opened(figure(drawn(), alt=ALT)._repr_mimebundle_()["image/png"])
    assert shown.size == (691, 446)  # 4.8 by 3.1 inches, 1.5 pixels for each of CSS
    pixels = np.asarray(shown.convert("RGB")).reshape(-1, 3).astype(int)
    assert (pixels[0] == 255).all() and (pixels == 255).all(axis=1).mean() > 0.8
    assert (pixels.max(axis=1) < 16).sum() > 500  # axes, labels, a line
    blue = np.array(mpl.colors.to_rgb(COLORS[0])) * 255
    assert (np.abs(pixels - blue).max(axis=1) < 16).sum() > 500


def test_explorer_carries_the_png_of_its_first_frame():
    explorer = explore(bars, height=[0.1, 0.3], label=["a", "b"])
    forms = explorer._repr_mimebundle_()
    png, alt, html = still_in(forms["text/html"])
    assert html == explorer._repr_html_() and alt == forms["text/plain"] == repr(
        explorer
    )
    assert png == forms["image/png"]
    alone = bars(0.1, "a")._repr_mimebundle_()["image/png"]
    assert (np.asarray(opened(png)) == np.asarray(opened(alone))).all()


def test_frames_are_drawn_as_png_only_where_they_are_displayed(monkeypatch):
    drawn_stills = []
    draw = figures.png._drawn
    monkeypatch.setattr(
        figures.png, "_drawn", lambda *a: drawn_stills.append(a) or draw(*a)
    )
    explorer = explore(
        lambda count: bars(0.1, count=count), continuous=True, count=[1, 3]
    )
    assert len(list(moved(explorer))) == 3
    assert explorer._repr_html_() and drawn_stills == []
    assert explorer._repr_mimebundle_() and len(drawn_stills) == 1
    assert [frame.source is None for frame in explorer.frames] == [False, True]


@pytest.mark.parametrize("made", [bars(0.1), explore(bars, height=[0.1, 0.2])])
def test_forms_are_those_that_are_asked_for(made, monkeypatch):
    def kinds(**asked):
        return set(made._repr_mimebundle_(**asked))

    assert kinds(include={"text/plain"}) == {"text/plain"}
    assert kinds(include=["image/png", "text/html"]) == {"image/png", "text/html"}
    assert kinds(exclude={"image/png"}) == {"text/plain", "text/html"}
    assert kinds(include={"text/html", "image/png"}, exclude={"text/html"}) == {
        "image/png"
    }
    assert kinds(include=set()) == set()
    monkeypatch.setattr(figures.png, "_drawn", None)
    assert kinds(include={"text/plain"}) == kinds(exclude={"text/html", "image/png"})


def test_png_is_of_the_figure_as_it_was_or_there_is_none():
    fig = drawn()
    made = figure(fig, alt=ALT)
    before = made._repr_mimebundle_()
    fig.axes[0].set_xlabel("something else")
    assert set(made._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert f"<template><p>{ALT}</p></template>" in made._repr_mimebundle_()["text/html"]
    fig.axes[0].set_xlabel("label 0.001")
    assert made._repr_mimebundle_() == before
    by_hand = BookFigure("<svg><text>x</text></svg>", ALT)
    assert set(by_hand._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert made == BookFigure(made.svg, made.alt)  # the source is no part of it


def test_png_of_the_busiest_figure_stays_within_the_budget():
    rng = np.random.default_rng(1)
    fig = Figure(figsize=(8, 6))
    ax = fig.subplots()
    ax.imshow(rng.random((150, 200, 3)), aspect="auto")
    ax.set(xlim=(0, 200), ylim=(0, 150))
    png = figure(fig, alt=ALT)._still("note")
    assert 1_000 < len(png) <= figures.png.BUDGET == 40_000


def test_what_is_rendered_is_drawn_once_and_stays_as_it_was(monkeypatch):
    fig, drawings = drawn(), []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda *a: (drawings.append(1), draw(*a))[1])
    fig.set_layout_engine("constrained")
    before = fig.get_layout_engine(), fig.canvas, fig.dpi
    once = render(fig)
    assert len(drawings) == 1 and render(fig) == once
    assert (fig.get_layout_engine(), fig.canvas, fig.dpi) == before
    # It is placed where matplotlib places it by itself.
    places = [ax.get_position().bounds for ax in fig.axes]
    with saving():
        fig.savefig(io.StringIO(), format="svg")
    assert np.allclose([ax.get_position().bounds for ax in fig.axes], places)


def test_png_of_a_drawing_made_by_hand_comes_with_it():
    given = figure(drawn(), alt=ALT)._still("of the SVG")
    by_hand = BookFigure("<svg><text>x</text></svg>", ALT, None, given)
    png, _, html = still_in(by_hand._repr_mimebundle_()["text/html"])
    assert opened(png).text["Source"] == hashlib.sha256(html.encode()).hexdigest()
    assert (np.asarray(opened(png)) == np.asarray(opened(given))).all()


@pytest.mark.parametrize(
    "path", (ROOT / "lib" / "figures").glob("*.png"), ids=lambda path: path.stem
)
def test_png_of_a_drawing_is_of_its_svg(path):
    """As ``python -m tools.drawings`` leaves it."""
    svg = path.with_suffix(".svg").read_bytes()
    assert opened(path.read_bytes()).text["Source"] == hashlib.sha256(svg).hexdigest()
    assert path.stat().st_size <= figures.png.BUDGET


def stored_figures(text):
    """The stored outputs of a notebook that are figures."""
    cells = nbformat.read(text.with_suffix(".ipynb"), 4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    data = [output.get("data", {}) for output in outputs]
    return [each for each in data if "book-figure" in each.get("text/html", "")]


@pytest.mark.parametrize("text", texts(), ids=lambda path: path.stem)
def test_stored_png_belongs_to_the_stored_drawing_and_is_small(text):
    """nbval compares the SVG and no pixel, which may differ between processors."""
    total = 0
    for forms in stored_figures(text):
        png, alt, html = still_in(forms["text/html"])
        assert png == forms["image/png"].strip() and alt == forms["text/plain"]
        assert opened(png).text["Source"] == hashlib.sha256(html.encode()).hexdigest()
        assert len(base64.b64decode(png)) <= figures.png.BUDGET
        total += 2 * len(png)
    assert total <= 600_000


# What a reader draws with plain matplotlib.


@pytest.fixture
def ordinary():
    """A figure of pyplot in which nothing is of the book."""
    fig, (ax, other) = plt.subplots(1, 2)
    for k in range(10):
        ax.plot([0, 1], [k, k + 1], label=f"line {k}")
    ax.plot([0, 1], [3, 3], "ko")
    ax.plot([0, 1], [4, 4], "o", markerfacecolor="white")
    ax.legend()
    ax.annotate(
        "here", (0, 0), (0.5, 5), arrowprops=dict(color="C1"), bbox=dict(fc="w")
    )
    other.bar([0, 1], [1, 2])
    other.scatter([0, 1], [1, 2], c=["C3", "black"], alpha=0.5)
    other.errorbar([0, 1], [2, 1], 0.3, fmt="s", color="tab:green")
    other.fill_between([0, 1], [0, 0], [1, 1], color="C8")
    ax.set(xlim=(0, 1), ylim=(0, 11))
    other.set(xlim=(0, 1), ylim=(0, 3), title="black, #000000 in hexadecimal")
    yield fig
    plt.close(fig)


def painted(svg):
    """Every color in a drawing, but those of its backgrounds and texts."""
    return set(re.findall(r"(?:fill|stroke|color): ([^;\"]+)", svg))


def test_ordinary_figures_follow_the_theme(ordinary):
    svg = figure(ordinary, alt=ALT).svg
    book = {color.lower() for color in (*COLORS, *figures.theme._MORE)}
    # The frame of the legend is gray.
    assert painted(svg) == {"none", "currentColor", "#cccccc"} | book
    assert "black, #000000 in hexadecimal" in svg
    # What has no color of its own has that of the ink, and not black.
    assert svg.startswith('<svg fill="currentColor" ')
    assert re.search(r'<text style="(?:(?!fill)[^"])*"', svg)


def test_numbered_colors_are_those_of_the_cycle_in_which_they_were_drawn():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1], color="C7")
    ax.fill_between([0, 1], [0, 0], [1, 1], color="C8")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    brown = figures.theme._MORE[3].lower()
    assert painted(figure(fig, alt=ALT).svg) == {
        "none", "currentColor", figures.theme._MORE[2].lower(), brown
    }  # fmt: skip


def test_ordinary_figures_look_the_same_as_png(ordinary):
    shown = opened(figure(ordinary, alt=ALT)._repr_mimebundle_()["image/png"])
    colors = {color for _, color in shown.convert("RGB").getcolors()}

    def nearest(color):
        target = np.array(mpl.colors.to_rgb(color)) * 255
        return min(np.abs(np.array(each) - target).max() for each in colors)

    default = mpl.rcParamsDefault["axes.prop_cycle"].by_key()["color"]
    assert all(nearest(color) < 12 for color in (*COLORS, "white", "black"))
    assert all(nearest(color) > 12 for color in default[:4])


def test_ordinary_figures_are_shown_once_and_keep_their_contract(ordinary):
    ordinary.axes[1].autoscale(True)
    with pytest.raises(ValueError, match=r"fig.axes\[1\] has no .* limits.*xlim="):
        figure(ordinary, alt=ALT)
    assert plt.fignum_exists(ordinary.number)
    ordinary.axes[1].autoscale(False)
    first = figure(ordinary, alt=ALT)
    assert not plt.fignum_exists(ordinary.number)  # a notebook would show it again
    assert figure(ordinary, alt=ALT) == first


def test_colors_of_a_color_map_are_data():
    fig = Figure()
    ax = fig.subplots()
    ax.pcolormesh([[0.0, 0.5, 1.0]], cmap="gray", vmin=0, vmax=1)
    ax.scatter([1, 2], [0.5, 0.5], c=[0.0, 1.0], cmap="tab10")
    ax.set(xlim=(0, 3), ylim=(0, 1))
    svg = figure(fig, alt=ALT).svg
    assert svg.count('<g fill="#000">') == 2  # black is not written on its cell
    assert {"#808080", "#ffffff", "#1f77b4", "#17becf"} < painted(svg)


def test_style_of_the_book_is_untouched():
    fig = drawn()
    before = fig.axes[0].lines[0].get_color(), fig.axes[0].lines[1].get_color()
    svg = figure(fig, alt=ALT).svg
    assert (
        fig.axes[0].lines[0].get_color(),
        fig.axes[0].lines[1].get_color(),
    ) == before
    assert painted(svg) == {"none", "currentColor", COLORS[0].lower()}


# The house.


def test_a_public_name_is_defined_where_it_is_imported_from():
    for name in figures.__all__:
        thing = getattr(figures, name)
        if callable(thing):
            assert thing.__module__.startswith("lib.figures.")
            assert getattr(sys.modules[thing.__module__], name) is thing
    assert not (ROOT / "lib" / "_figures").exists()
    beside = {path.name for path in (ROOT / "lib" / "figures").iterdir()}
    assert {"explorer.py", "explorer.mjs", "book.mplstyle"} <= beside


def test_style_is_among_what_makes_a_notebook_stale():
    chapter = next(path for path in texts() if path.stem.startswith("2-"))
    made_of = digests(chapter)
    parts = {
        "axes.py",
        "book_figure.py",
        "explorer.py",
        "plots.py",
        "svg.py",
        "theme.py",
    }
    for part in {*parts, "book.mplstyle"}:
        assert f"lib/figures/{part}" in made_of


# Every drawing function of the book at every position of its controls: minutes long.

WALK = """
from lib.figures import Explorer

for explorer in [x for x in Out.values() if isinstance(x, Explorer)]:
    *controls, view = explorer.widget().children
    for control in controls:
        first, tried = control.value, positions(control)
        for position in tried:
            control.value = position
            assert "alert" not in view.value, view.value
            assert "<svg" in view.value
        control.value = first
        print(explorer.draw.__name__, control.description, len(tried))
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", texts(), ids=lambda path: path.stem)
def test_every_drawing_function_answers_at_every_position(text):
    notebook = read_text(text)
    source = "\n".join(cell.source for cell in notebook.cells)
    calls = len(re.findall(r"^(?:figures\.)?explore\(", source, re.M))
    if not calls:
        pytest.skip("there is no explorer")
    walk = f"import numpy as np\n{inspect.getsource(positions)}\n{WALK}"
    notebook.cells.append(nbformat.v4.new_code_cell(walk))
    resources = {"metadata": {"path": str(text.parent)}}
    NotebookClient(notebook, timeout=None, resources=resources).execute()
    said = "".join(each.text for each in notebook.cells[-1].outputs)
    assert len({line.split()[0] for line in said.splitlines()}) == calls
    print(said)
