"""The exhibits of the last pages: gauges of a model, and the planes of the map."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect
from test_live_exhibits import MODELS, NOTE, STAGE, begun, says, slide
from waits import until

from lib import exhibits
from lib.exhibits.planes import PLANES, SIDE, draw_planes, mesh, place_of, value_at
from lib.exhibits.regimes import GAUGES, draw_regimes, readings, verdict, zone_of
from lib.figures.controls import starts
from lib.regimes import PRESETS, describe
from tools.command import ROOT

MAP = "chapters/6-map-of-limits.html"
WIDE = "logits σ"
OWN = "your own, with normalization", "your own, without normalization"


@pytest.fixture(scope="module")
def gauges():
    return exhibits.regimes("gpt2", other="bloom")


@pytest.fixture(scope="module")
def planes():
    return exhibits.planes(edge=5)


# What the book says of the rows.


def test_sources_of_sizes_are_in_the_bibliography():
    bibliography = (ROOT / "chapters/reference/references.bib").read_text("utf-8")
    for name in PRESETS:
        assert f"{{{PRESETS[name].family.source}," in bibliography


def test_labels_are_those_of_statements():
    text = "".join(p.read_text("utf-8") for p in (ROOT / "chapters").glob("[0-9]*.md"))
    labels = {*re.findall(r"^:label: (\S+)", text, flags=re.M)}
    sizes = dict(width=768, depth=12, heads=12, tokens=1024)
    others = {"layers_shared": True}, {"temperature": 1e-6}, {"temperature": 1e9}
    for case in ({}, *others):
        for each in describe(**sizes, **case):
            assert each.statement in labels or each.statement == ""
            assert each.statement or each.value is None or "layers_shared" in case


# In Python.


@pytest.mark.parametrize("name", PRESETS)
def test_gauges_show_what_describe_says(gauges, name):
    sizes = PRESETS[name].sizes
    rows = {row.quantity: row.value for row in describe(**sizes)}
    moved = {k: float(sizes[k]) for k in ("width", "depth", "heads", "tokens")}
    levels = readings(gauges.state, **moved, spread=1.0)
    for quantity in ("depth/width", "excess kurtosis", "β/log m", "m/d"):
        # The nodes of an exhibit are for the three digits that it prints.
        near = 2e-4 if quantity == "excess kurtosis" else 1e-8
        assert levels[quantity] == pytest.approx(rows[quantity], rel=near), quantity
    assert levels["softmax orders"] == rows["softmax order"]


def bold(drawn):
    return drawn.svg.count("font-weight: 700")


def test_gauges_are_drawn_with_their_numbers(gauges):
    drawn = draw_regimes(gauges.state, **starts(gauges.controls))
    assert "GPT-2" in drawn.caption and "spread 0.051" in drawn.alt
    other = draw_regimes(
        gauges.state, width=100.0, depth=3.0, heads=2.0, tokens=50.0, spread=0.5
    )
    assert other.svg != drawn.svg and "GPT-2" not in other.caption
    assert all(name in drawn.alt for name, *_ in GAUGES)
    limit = "for the limit of infinite width first"
    assert f"calls, normalized before each branch, {limit}, its" in drawn.caption
    assert "calls, without normalization, for the joint" in other.caption
    for model, words in (
        ("bert-base", "normalizes each token after each branch, so that lengths"),
        ("albert-xxlarge", "repeats one layer, which no limit"),
    ):
        k = [*PRESETS].index(model)
        sizes = dict(zip(gauges.controls, gauges.state["sizes"][k], strict=True))
        fixed = draw_regimes(gauges.state | {"chosen": k}, **sizes)
        assert words in fixed.caption and ": lengths are fixed, excess" in fixed.alt
        # Of the first gauge no zone is bold.
        assert bold(drawn) == bold(fixed) + 1 == len(GAUGES)


def test_a_head_keeps_four_coordinates(gauges):
    sizes = dict(width=64.0, depth=3.0, tokens=50.0, spread=0.5)
    drawn = draw_regimes(gauges.state, heads=128.0, **sizes)
    assert "16 heads" in drawn.caption
    assert drawn.svg == draw_regimes(gauges.state, heads=16.0, **sizes).svg


def test_the_verdict_follows_the_zones():
    levels = {
        "spread": 0.05, "excess kurtosis": 0.2, "β/log m": 0.9, "m/d": 1.0,
        "softmax orders": 2.0, "cosine of shared layers": 0.0, "least cosine": 0.0,
        "heads": 12.0,
    }  # fmt: skip
    assert verdict(levels) == (
        "calls, without normalization, for the limit of infinite width first, its"
        " outputs are visibly non-Gaussian, no token can single itself out, and, were"
        " all layers alike, its tokens would stay apart"
    )
    others = verdict(levels).partition("first")[2]
    for more, words in (
        ({"shared": True}, "repeats one layer, which no limit"),
        ({"fixed": True}, "normalizes each token after each branch"),
        ({"fixed": True, "shared": True}, "repeats one layer, which no limit"),
    ):
        said = verdict(levels, published=True, **more)
        assert said.startswith(words) and said.endswith(others)
    joint = levels | {"spread": 0.2}
    assert "without normalization, for the joint limit" in verdict(joint)
    assert "normalized before each branch, for the joint limit" in verdict(
        joint, published=True
    )
    assert [gauge.zone(3) for gauge in GAUGES] == [2, 1, 1, 1, 1, 2]
    assert all(len(gauge.named()) == len(gauge.zones) + 1 for gauge in GAUGES)
    # That tokens meet is not said of few heads, whatever the cosine.
    met = levels | {"cosine of shared layers": 0.95, "least cosine": 0.91}
    assert [zone_of(GAUGES[-1], met | {"heads": H}) for H in (4, 3)] == [2, 1]
    assert verdict(met | {"heads": 3.0}).endswith("might stay apart or meet")
    assert zone_of(GAUGES[-1], met | {"least cosine": 0.89}) == 1


def test_normalized_branches_have_a_mark_of_their_own(gauges):
    values = starts(gauges.controls)  # GPT-2
    levels = readings(gauges.state, **values)
    assert levels["pre_norm"] < levels["spread"] / 2
    published = draw_regimes(gauges.state, **values).svg.count("<use")
    own = draw_regimes(gauges.state, **values | {"depth": 13.0}).svg.count("<use")
    assert published - own == 1


def test_planes_of_every_edge(planes):
    seen = set()
    for k, plane in enumerate(PLANES):
        drawn = draw_planes(planes.state, edge=float(k), across=0.3, up=0.9)
        assert plane.measured.rstrip(",") in drawn.alt
        assert plane.decides in drawn.caption
        assert ("front" in drawn.alt) == (plane.front is not None)
        kind = "wide" if plane.wide else "sharp" if plane.front else "none"
        assert planes.state["kinds"][k] == kind
        seen.add(drawn.svg)
        grid = planes.state["grids"][k]
        assert grid.shape == (SIDE, SIDE) and grid.min() >= 0
        assert plane.half or grid.max() <= 100
    assert len(seen) == len(PLANES) == 8
    assert sum(plane.front is None for plane in PLANES) == 2


@pytest.mark.parametrize("k", [k for k, plane in enumerate(PLANES) if plane.front])
def test_a_front_parts_what_it_says(planes, k):
    """Where a column has both sides, the value crosses its middle near the front."""
    stored = planes.state["grids"][k]  # whose rows may follow the front
    grid, places = mesh(k) if PLANES[k].along else stored, planes.state["fronts"][k]
    within = [j for j in range(SIDE) if 0.1 < places[j] < 0.9]
    assert len(within) >= 5
    apart = []
    for j in within:
        lines = [abs(value - 50) for value in grid[:, j]]
        apart.append(abs(np.argmin(lines) / (SIDE - 1) - places[j]))
    # Of these three the order is known, and a factor is not 1.
    rough = PLANES[k].decides in ("L/n", "εm²", "t/log m")
    assert np.median(apart) < (0.16 if rough else 0.05)


@pytest.mark.parametrize("k", range(len(PLANES)))
def test_a_wide_front_is_drawn_from_nine_tenths_to_one(planes, k):
    shifts = planes.state["shifts"][k]
    if not PLANES[k].wide:
        assert np.array_equal(shifts, [0, 0])
        return
    shares = {"L/n": (90, 10), "εm²": (10, 90)}[PLANES[k].decides]
    for shift, share in zip(shifts, shares, strict=True):
        places = planes.state["fronts"][k] + shift
        within = [j for j in range(SIDE) if 0.1 < places[j] < 0.9]
        assert len(within) >= 5
        found = [value_at(k, j / (SIDE - 1), places[j]) for j in within]
        assert np.median(np.abs(np.array(found) - share)) < 6, (share, found)


def test_the_kurtosis_and_the_error_of_a_plane_are_shown_themselves(planes):
    from lib.hierarchical import FiniteAttention

    name = [plane.decides for plane in PLANES].index("n and H")
    grid = planes.state["grids"][name]
    exact = FiniteAttention(np.eye(4), 4096, 1).excess_kurtosis()
    assert grid[-1, 0] / 100 == pytest.approx(exact, rel=2e-3)
    said = draw_planes(planes.state, edge=1.0, across=0.0, up=1.0).alt
    shown = float(said.rpartition(" is ")[2].rstrip("."))
    assert shown == pytest.approx(exact, abs=0.006)


def test_a_network_stands_on_the_planes_whose_numbers_it_has():
    shown = exhibits.planes(network={"L": 32, "n": 1024, "β": 8}, up=0.1, edge=5)
    assert shown.state["homes"][0] == pytest.approx((0.5, 1))
    # No heads, no tokens: there the point is where it is told to be.
    assert all(home[0] < 0 for home in shown.state["homes"][1:])
    assert starts(shown.controls) == {"edge": 5.0, "across": 0.7, "up": 0.1}
    opened = exhibits.planes(network={"L": 32, "n": 1024})
    assert list(starts(opened.controls).values()) == pytest.approx([0, 0.5, 1])
    # There it is full, and elsewhere hollow.
    at = [draw_planes(opened.state, edge=0.0, across=0.5, up=up).svg for up in (1, 0.9)]
    assert ["fill: #d55e00" in text for text in at] == [True, False]
    # Heads and width have their plane, which GPT-2 on the page does not ask for.
    heads = exhibits.planes(network={"H": 32, "n": 128}).state["homes"][1]
    assert heads == pytest.approx((0.5, 0.5))
    # A number beyond the plane is on none of its places.
    wide = exhibits.planes(network={"L": 32, "n": 1025}).state["homes"][0]
    assert wide[0] < 0


@pytest.mark.parametrize(
    ("network", "message"),
    [({"L": 1, "x": 2}, "letters of 1/ε, H, L, d, m, n, t, β, got 'x'"),
     ({"L": 0}, r"network\['L'\] must be"), ({"L": np.nan}, r"network\['L'\] must be")],
)  # fmt: skip
def test_a_network_with_senseless_numbers_is_refused(network, message):
    with pytest.raises(ValueError, match=message):
        exhibits.planes(network=network)


def test_whole_numbers_are_shown_whole():
    axis = ("width n", 1, 1024)
    assert 1024 ** place_of(axis, 0.55) == pytest.approx(45)
    assert place_of(("β", 1, 32), 0.55) == 0.55


@pytest.mark.parametrize(
    ("edge", "right_then_up", "up_then_right"),
    # The corners that the iterated limits reach; where they commute, they are alike.
    [("L/n", 0, 100), ("εm²", 100, 0), ("(log t)/β", 0, 100), ("β/log m", 0, 100),
     ("m/d", 100, 0), ("t/log m", 100, 0)],
)  # fmt: skip
def test_fronts_part_the_corners(planes, edge, right_then_up, up_then_right):
    k = [plane.decides for plane in PLANES].index(edge)
    grid = mesh(k)
    # One number is large while the other stays small: the lower right, the upper left.
    assert grid[0, -1] == pytest.approx(right_then_up, abs=12)
    assert grid[-1, 0] == pytest.approx(up_then_right, abs=12)


def test_value_between_the_points_of_a_grid(planes):
    grid = planes.state["grids"][0]
    assert value_at(0, 0, 0) == grid[0, 0] and value_at(0, 1, 1) == grid[-1, -1]
    half = 0.5 / (SIDE - 1)
    assert value_at(0, half, 0) == pytest.approx((grid[0, 0] + grid[0, 1]) / 2)


@pytest.mark.parametrize("k", [k for k, plane in enumerate(PLANES) if plane.along])
def test_beside_a_sharp_front_the_value_is_that_of_the_function(planes, k):
    """There rows of one height would be off by half of all that there is."""
    plane, rng, off = PLANES[k], np.random.default_rng(6600 + k), []
    for across in rng.uniform(0, 1, 400):
        along = np.interp(across * (SIDE - 1), range(SIDE), planes.state["along"][k])
        places = across, along + 0.05 * rng.normal()
        if 0 <= places[1] <= 1:
            axes = plane.across, plane.up
            places = [place_of(*each) for each in zip(axes, places, strict=True)]
            numbers = [
                np.array([[low * (high / low) ** place]])
                for (_, low, high), place in zip(axes, places, strict=True)
            ]
            exact = 100 * plane.values(*numbers)[0, 0]
            off.append(abs(value_at(k, *places) - exact))
    assert len(off) > 200
    # The angle of two clusters falls to 0 along a vertical tangent: there few are off.
    assert np.quantile(off, 0.9) < 1 and np.quantile(off, 0.98) < 6


def test_half_of_the_hemispheres_at_twice_the_dimension():
    k = [plane.decides for plane in PLANES].index("m/d")
    for d in (3, 16, 294, 1000):
        places = np.log(d / 2) / np.log(512), np.log(2 * d / 2) / np.log(1024)
        assert value_at(k, *places) == pytest.approx(50, abs=0.6)


# In a browser.


ROW = ".exhibit-rows button"


def asked(figure, name):
    """Click the gauge of a number."""
    figure.locator(ROW).nth([gauge.name for gauge in GAUGES].index(name)).click()


def numbers(text):
    return [float(x) for x in re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))]


def test_the_page_computes_what_lib_computes(visit, gauges):
    page, figure = visit(MODELS)
    begun(figure)
    places = {
        "width n": 0.4,
        "depth L": 0.3,
        "heads H": 0.2,
        "tokens m": 0.8,
        WIDE: 0.7,
    }
    for label, place in places.items():
        slide(figure, label, place)
    values = {
        name: gauges.controls[name].at(place)
        for name, place in zip(gauges.controls, places.values(), strict=True)
    }
    levels = readings(gauges.state, **values)
    asked(figure, "spread")
    says(figure, rf"T = L/n = {levels['depth/width']:.2g}\)")
    levels["spread"] = levels["pre_norm"]  # of a model that normalizes
    levels["percent"] = 100 * levels["spread"]
    rows = figure.locator(ROW)
    for k, gauge in enumerate(GAUGES):
        heard = rows.nth(k).get_attribute("aria-label")
        zone = gauge.zones[zone_of(gauge, levels)]
        assert heard.startswith(f"{gauge.question} {zone}: {gauge.symbol}"), heard
        shown = float(heard.split()[-1])
        assert shown == pytest.approx(levels[gauge.name], rel=0.05), heard
    for gauge, pattern, name in (
        ("spread", r"varies by ([\d.]+)\s% between", "percent"),
        ("excess kurtosis", r"kurtosis over networks is ([\d.]+) ", "excess kurtosis"),
        ("excess kurtosis", r"would leave ([\d.]+)\.", "limit"),
        ("cosine of shared layers", r"from 0 to ([\d.]+);", "cosine of shared layers"),
        ("softmax orders", r"after (\d+) orders", "softmax orders"),
    ):
        asked(figure, gauge)
        said = says(figure, pattern)
        # Two digits, the last one rounded.
        shown = float(re.search(pattern, said)[1])
        assert shown == pytest.approx(levels[name], rel=0.05), name
        assert len(said.splitlines()) == 2
        assert said.splitlines()[1].startswith("Not covered: trained weights, learned")
    asked(figure, "β/log m")
    last = f"sees {levels['seen']:,.0f} of {values['tokens']:,.0f}"
    share = numbers(says(figure, rf"{last} tokens\."))[0]
    assert share == pytest.approx(100 * levels["tied"], rel=0.01)
    asked(figure, "m/d")
    says(figure, "lie in one hemisphere with probability")
    assert figure.locator(f"{ROW}[aria-pressed=true]").count() == 1


def test_few_heads_are_not_said_to_meet_where_they_may_stay_apart(visit, gauges):
    """Four heads of width 16 end at a cosine of 0.3 where the formula says 0.92."""
    page, figure = visit(MODELS)
    begun(figure)
    sizes = {"width n": 64, "depth L": 12, "heads H": 4, "tokens m": 64}
    sliders = {slider.label: slider for slider in gauges.controls.values()}
    for label, size in sizes.items():
        slide(figure, label, sliders[label].place(size))
    for spread, zone, few in ((1.8, "unclear", True), (1.0, "met", False)):
        slide(figure, WIDE, sliders[WIDE].place(spread))
        places = map(float, [*sizes.values(), spread])
        moved = dict(zip(gauges.controls, places, strict=True))
        levels = readings(gauges.state, **moved)
        assert levels["cosine of shared layers"] > 0.9
        assert GAUGES[-1].zones[zone_of(GAUGES[-1], levels)] == zone
        expect(figure.locator(ROW).last).to_have_attribute(
            "aria-label", re.compile(f"meet[?] {zone}: cosine")
        )
        asked(figure, "cosine of shared layers")
        says(figure, "may keep it far smaller" if few else "heads keep it smaller[.]")


def test_no_size_of_a_deep_network_is_refused(visit):
    page, figure = visit(MODELS)
    begun(figure)
    slide(figure, "depth L", 1.0)
    slider = figure.get_by_label("tokens m", exact=True)
    slider.focus()
    for _ in range(60):
        slider.press("ArrowRight")
        assert figure.locator(".exhibit-gauges").is_visible()
    assert "cannot be computed" not in figure.inner_text()


def test_the_menu_sets_the_sliders(visit, gauges):
    page, figure = visit(MODELS)
    begun(figure)
    says(figure, r"^Width may go first: [\s\S]*T = L/n = 0.016\)")
    figure.get_by_label("model", exact=True).select_option(label="BLOOM 176B")
    said = says(figure, r"^Width may go first: [\s\S]*T = L/n = 0.0049\)")
    assert "ALiBi" in said and "trained weights" in said
    outputs = figure.locator("output").all_inner_texts()
    assert outputs[:4] == ["14336", "70", "112", "2048"]
    # Other sizes leave what else is known of a model.
    slide(figure, "depth L", 0.2)
    menu = figure.get_by_label("model", exact=True)
    assert menu.locator("option:checked").inner_text() == "BLOOM 176B, sizes changed"
    assert "ALiBi" in figure.locator(NOTE).inner_text()
    menu.select_option(label="your own, without normalization")
    says(
        figure, r"layers are linear, [\s\S]*normalized before[\s\S]*and normalization\."
    )
    menu.select_option(label="your own, with normalization")
    says(figure, r"linear and normalized [\s\S]*nonlinearity, attention with norm")
    menu.select_option(label="GPT-2")
    says(figure, "learned positions")
    assert menu.locator("option").filter(has_text="sizes changed").count() == 0


@pytest.mark.parametrize(
    ("model", "heard"),
    [
        ("GPT-2", "Which limit of depth and width? width first: spread 0.051"),
        ("BERT base", "Which limit of depth and width? lengths are fixed"),
        (OWN[0], "Which limit of depth and width? width first: spread 0.051"),
        (OWN[1], "Which limit of depth and width? together: spread 0.15"),
    ],
)
def test_normalization_decides_about_lengths(visit, model, heard):
    """Of a published model; one's own may have the sizes of another, and stays so."""
    page, figure = visit(MODELS)
    begun(figure)
    menu = figure.get_by_label("model", exact=True)
    menu.select_option(label=model)
    expect(figure.locator(ROW).first).to_have_attribute("aria-label", heard)
    assert menu.locator("option:checked").inner_text() == model


def test_it_opens_with_the_gauge_that_it_is_told(gauges):
    last = GAUGES[-1].name
    assert exhibits.regimes("gpt2", told=last).state["told"] == len(GAUGES) - 1
    assert gauges.state["told"] == 0
    with pytest.raises(ValueError, match="told must be one of spread, .*'T'"):
        exhibits.regimes("gpt2", told="T")


def test_a_word_and_a_sentence_are_about_the_bar_that_changes_sides(visit):
    page, figure = visit(MODELS)
    begun(figure)
    pressed = figure.locator(f"{ROW}[aria-pressed=true]")
    slide(figure, WIDE, 0.8)  # σ = 0.95: no side changes
    says(figure, "^Width may go first")
    slide(figure, WIDE, 0.5)
    expect(pressed).to_have_attribute("aria-label", re.compile("^Q = K"))
    # Who looks at a bar that moves keeps it.
    asked(figure, "excess kurtosis")
    slide(figure, WIDE, 1.0)
    says(figure, "^An output is ")


def test_it_opens_with_other_logits_beside_the_usual_ones(visit, gauges):
    opened = exhibits.regimes("gpt2", other="bloom", spread=0.31)
    values = starts(opened.controls)
    assert values == starts(gauges.controls) | {"spread": 0.31}
    drawn = draw_regimes(opened.state, **values)
    assert "GPT-2: " in drawn.caption and "cosine of shared layers > 0.99" in drawn.alt
    # Gray marks where the usual logits are: all numbers but two depend on these.
    usual = draw_regimes(gauges.state, **starts(gauges.controls))
    assert drawn.svg.count("<use") - usual.svg.count("<use") == len(GAUGES) - 2
    page, _ = visit(MODELS, whole=True)
    figure = page.locator('[data-exhibit="regimes"]').last
    figure.scroll_into_view_if_needed()
    begun(figure)
    heard = figure.locator(ROW).last
    expect(heard).to_have_attribute(
        "aria-label", f"{GAUGES[-1].question} met: cosine > 0.99"
    )
    menu = figure.get_by_label("model", exact=True)
    assert menu.locator("option:checked").inner_text() == "GPT-2, σ changed"
    for spread in (0.0, 2.1, np.nan):
        with pytest.raises(ValueError, match=r"spread must be from 0\.05 to 2, got"):
            exhibits.regimes("gpt2", spread=spread)


def test_width_and_heads_move_each_other(visit, gauges):
    page, figure = visit(MODELS)
    begun(figure)
    asked(figure, "excess kurtosis")
    outputs = figure.locator("output")
    slide(figure, "heads H", 1.0)
    slide(figure, "width n", 0.0)
    until(lambda: outputs.all_inner_texts()[:3] == ["64", "12", "16"])
    says(figure, r"with heads of width 4;")
    slide(figure, "heads H", 1.0)
    until(lambda: outputs.all_inner_texts()[:3] == ["512", "12", "128"])


def test_tokens_move_in_fine_steps(visit, gauges):
    page, figure = visit(MODELS)
    begun(figure)
    slider = figure.get_by_label("tokens m", exact=True)
    slider.press("ArrowRight")
    until(lambda: 1024 < float(figure.locator("output").nth(3).inner_text()) < 1300)


def test_the_menu_keeps_one_of_two_models_of_equal_sizes(visit, gauges):
    page, figure = visit(MODELS)
    begun(figure)
    menu = figure.get_by_label("model", exact=True)
    for title in ("ALBERT large", "BERT large", "Mistral 7B"):
        menu.select_option(label=title)
        says(figure, "normalization fixes" if "BERT" in title else "layers are linear")
        assert menu.locator("option:checked").inner_text() == title
    assert "window of 4,096" in figure.locator(NOTE).inner_text()


def test_layers_that_are_all_alike_have_no_depth_over_width(visit, gauges):
    page, figure = visit(MODELS)
    begun(figure)
    figure.get_by_label("model", exact=True).select_option(label="ALBERT large")
    says(figure, r"no theorem here uses T = L/n\.")
    opened = exhibits.regimes("albert-large")
    drawn = draw_regimes(opened.state, **starts(opened.controls))
    assert "this network repeats one layer, " in drawn.caption


def test_of_models_of_equal_sizes_the_chosen_one_is_named(gauges):
    for name in ("albert-large", "bert-large", "mistral-7b"):
        opened = exhibits.regimes(name)
        drawn = draw_regimes(opened.state, **starts(opened.controls))
        assert drawn.caption.startswith(PRESETS[name].title)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_planes_open_and_move(visit, planes, theme):
    page, figure = visit(MAP, whole=True, color_scheme=theme)
    begun(figure)
    state = json.loads(figure.locator("script").text_content())["state"]
    grids = np.reshape(state["grids"], (len(PLANES), SIDE, SIDE))
    assert np.array_equal(grids, planes.state["grids"])
    for k in (6, 2):
        figure.get_by_label(PLANES[k].decides, exact=True).check(force=True)
        said = says(figure, f"^{re.escape(PLANES[k].decides)}: at")
        assert PLANES[k].measured in said and PLANES[k].across[0] in said
    box = figure.locator(".exhibit-plane").bounding_box()
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.3 * box["height"]
    before = figure.locator(NOTE).inner_text()
    page.mouse.click(x, y)
    until(lambda: figure.locator(NOTE).inner_text() != before)
    across, up = (
        float(each.input_value())
        for each in figure.locator('input[type="range"]').all()
    )
    said = figure.locator(NOTE).inner_text()
    axes = PLANES[2].across, PLANES[2].up
    places = [place_of(axis, at) for axis, at in zip(axes, (across, up), strict=True)]
    wanted = value_at(2, *places)
    assert numbers(said.rsplit(" is ", 1)[1])[0] == pytest.approx(wanted, abs=0.51)
    assert 0.5 < across < 0.7 and 0.6 < up < 0.85
    # A walk ends where the first limit is, and a section leads to its plane.
    figure.get_by_role("button", name="Up first").click()
    said = says(figure, "^εm², up first: at the end")
    assert numbers(said.rsplit(" is ", 1)[1])[::2] == [0, 0, 0]
    openers = page.locator(".exhibit-opener")
    assert openers.count() == len(PLANES)
    openers.nth(5).click()
    says(figure, "^m/d: at")


def test_a_walk_shows_the_numbers_of_the_plane_and_no_places(visit, planes):
    page, figure = visit(MAP)
    begun(figure)
    figure.evaluate("""(figure) => {
      window.seen = new Set();
      const look = () => {
        for (const { textContent } of figure.querySelectorAll("output"))
          seen.add(textContent);
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }""")
    figure.get_by_role("button", name="Right first").click()
    says(figure, "^L/n, right first: at the end")
    seen = page.evaluate("[...seen]")
    assert len(seen) > 9 and all(each.replace(",", "").isdigit() for each in seen), seen


def test_the_dot_of_a_network_goes_home_on_its_planes(visit, planes):
    page, first = visit(MAP, whole=True)
    figure = page.locator('[data-exhibit="planes"]').last
    figure.scroll_into_view_if_needed()
    begun(figure)
    says(figure, "^L/n: at depth L = 12 and width n = 768 ")
    for decides, numbers_of in (
        ("β/log m", "tokens m = 1,024 and β = 8"),
        ("m/d", "dimension d = 768 and tokens m = 1,024"),
        ("L/n", "depth L = 12 and width n = 768"),
    ):
        figure.get_by_label(decides, exact=True).check(force=True)
        says(figure, f"^{re.escape(decides)}: at {numbers_of} ")


def test_sections_that_come_in_after_the_exhibit_have_openers_too(visit, planes):
    late = "Object.defineProperty(Document.prototype, 'readyState', {value: 'loading'})"
    page, figure = visit(MAP, init=late)
    begun(figure)
    page.evaluate(
        """(names) => {
          for (const id of names) {
            const section = document.createElement('section');
            Object.assign(section, { id, innerHTML: '<h2>Section</h2>' });
            document.querySelector('article').append(section);
          }
          document.dispatchEvent(new Event('DOMContentLoaded'));
        }""",
        planes.state["sections"],
    )
    assert page.locator(".exhibit-opener").count() == len(PLANES)


@pytest.mark.parametrize("name", [MODELS, MAP])
def test_words_are_legible_and_fit_a_phone(visit, name):
    page, figure = visit(name, viewport={"width": 390, "height": 844})
    begun(figure)
    assert figure.locator(f"{STAGE} canvas").first.is_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    sizes = figure.evaluate(
        """(figure) => [...figure.querySelectorAll('*')].filter((e) =>
          e.checkVisibility() && !e.closest('svg, script') &&
          [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
          .map((e) => parseFloat(getComputedStyle(e).fontSize))"""
    )
    assert min(sizes) >= 11
