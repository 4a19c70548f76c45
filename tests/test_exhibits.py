"""Live exhibits in Python: what is stored of them, and how a kernel moves them."""

import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import ks_2samp

from lib import exhibits, gram, sphere, transformer
from lib.attention import softmax
from lib.core import psd
from lib.exhibits.globe import FIRST, LAST, advance_globe, draw_globe
from lib.exhibits.networks import draw_networks, limit_cosines, network_cosines
from lib.exhibits.training import between, draw_training, planes
from lib.figures import BookFigure, Choice, Exhibit, Slider, figure, live, style

RNG = np.random.default_rng(3)
TOKENS = sphere.uniform_tokens(12, 3, rng=RNG)
NOW = {"beta": 6.0, "value": 1.0, "tokens": 12.0}


@pytest.fixture(scope="module")
def globe():
    return exhibits.globe(TOKENS, 6.0, 3.0, seed=5)


@pytest.fixture(scope="module")
def weights():
    tiles = np.linspace(0, 1, 3 * 64).reshape(3, 8, 8)
    return exhibits.weights(
        tiles, np.diag([1.0, 2.0, 3.0]), ["a", "b & c", "d"], order=2
    )


@pytest.fixture(scope="module")
def networks():
    return exhibits.networks(0.3, width=12, networks=300, seed=5)


PATCHES = RNG.uniform(size=(3, 4, 9))
SHAPE = {"depth": 2, "width": 8, "heads": 2, "tokens": 4, "features": 9, "classes": 3}
NAMES = ["hat", "b & c", "shoe"]


def models(*steps):
    return {k: transformer.init(rng=np.random.default_rng(k), **SHAPE) for k in steps}


def trained(saved=None, x=PATCHES, patches=PATCHES, labels=(2, 0, 1), **more):
    saved = models(0, 1, 10, 100) if saved is None else saved
    return exhibits.training(
        saved, x, patches, labels, more.pop("classes", NAMES), **more
    )


@pytest.fixture(scope="module")
def training():
    return trained(step=10, layer=1, image=1)


def described(exhibit):
    text = re.search(r'application/json">(.*?)</script>', exhibit._repr_html_())[1]
    return json.loads(text)


def bars(state, height):
    with style():
        fig = Figure(figsize=(3, 1.5))
        fig.subplots().bar([0, 1], [height, state["other"]])
        fig.axes[0].set(xlim=(-1, 2), ylim=(0, 1))
    return figure(fig, alt=f"Two bars, of which the first has the height {height:g}.")


def small(**changes):
    parts = {
        "state": {"other": 0.5}, "controls": {"height": Slider("h", 0.0, 1.0, 0.25)},
        "kernels": {"step": "sphere-step"},
    }  # fmt: skip
    return live("globe", changes.pop("draw", bars), **{**parts, **changes})


def test_description_holds_what_the_script_needs(globe):
    found = described(globe)
    assert found["script"] == "globe" and found["seed"] == 5
    assert set(found["kernels"].values()) == {"sphere-step", "sphere-crowd"}
    x = np.reshape(found["state"]["x"], (-1, 3))
    # The kernels refuse tokens farther from the sphere than 1e-8.
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-9
    assert np.abs(x - globe.state["x"]).max() < 1e-9
    assert found["state"]["time"] == 3 == found["state"]["times"][-1]
    assert found["controls"]["beta"] == {
        "kind": "slider", "label": "β", "low": 0.1, "high": 100, "start": 6,
        "log": True, "zero": True, "whole": False,
    }  # fmt: skip
    assert len(globe.frames) == 4 and repr(globe) == globe.frames[0].alt


def test_opening_state_is_the_run_of_lib(globe):
    run = sphere.simulate(TOKENS, 6.0, 3.0 - FIRST, 400).states[-1]
    assert np.abs(globe.state["x"] - run).max() < 1e-4
    now = sphere.crowd_state(globe.state["x"], 6.0, globe.state["radius"])
    assert globe.state["heights"][-1] == now["height"]
    assert (np.diff(globe.state["heights"]) > 0).all()
    assert globe.state["times"][0] == FIRST


def test_static_form_is_stable_and_closes_its_script(globe):
    again = exhibits.globe(TOKENS, 6.0, 3.0, seed=5)
    assert again._repr_html_() == globe._repr_html_()
    exhibit = small(state={"other": 0.5, "said": "</script><!-- & <b>"})
    assert described(exhibit)["state"]["said"] == "</script><!-- & <b>"
    assert exhibit._repr_html_().count("</script>") == 1
    forms = exhibit._repr_mimebundle_()
    assert {"text/html", "image/png", "text/plain"} == forms.keys()
    assert "height 0.25" in forms["text/plain"]


def test_state_in_python_goes_on_with_the_same_functions(globe):
    state = advance_globe(globe.state, **NOW)
    span = 3 * (10 ** (1 / 12) - 1)
    assert state["time"] == pytest.approx(3 + span)
    run = sphere.simulate(globe.state["x"], 6.0, span, 40, value=np.eye(3)).states[-1]
    assert np.abs(state["x"] - run).max() < 1e-5
    assert len(state["times"]) == len(globe.state["times"]) + 1
    # It does not touch what it was given, and stops at the end of the axis.
    assert globe.state["time"] == 3
    late = {**globe.state, "time": LAST}
    assert advance_globe(late, **NOW)["time"] == LAST


@pytest.mark.parametrize(
    "change", [{"beta": 0.0}, {"beta": 100.0}, {"value": -1.0}, {"tokens": 1.0},
               {"tokens": 256.0}],
)  # fmt: skip
def test_what_the_reader_changes_begins_the_clock_anew(globe, change):
    after = advance_globe(globe.state, **NOW | change)
    assert after["times"] == [FIRST, after["time"]] and after["time"] > FIRST
    assert len(after["x"]) == round((NOW | change)["tokens"])
    assert np.isfinite(after["x"]).all()
    rises = after["heights"][-1] - after["heights"][0]
    # V = −I makes the energy fall; a single token, and β = 0, leave it.
    assert rises * (NOW | change)["value"] >= -1e-12


@pytest.mark.parametrize("change", [{"beta": 9.0}, {"value": -1.0}, {"tokens": 10.0}])
def test_picture_is_of_the_numbers_beside_it(globe, change):
    """In a kernel too, before anybody has pressed a button."""
    drawn = draw_globe(globe.state, **NOW | change)
    after = advance_globe(globe.state, **NOW | change)
    # And a press of the button moves what is seen.
    assert drawn.caption != draw_globe(after, **NOW | change).caption
    assert f"time {FIRST:.3g}:" in drawn.caption
    assert f"of {(NOW | change)['tokens']:.0f} tokens" in drawn.caption


def test_widget_moves_by_the_same_functions(globe):
    row, *controls, view = globe.widget().children
    player, step, reset, again = row.children
    first = view.value
    assert "time 3:" in first
    step.click()
    assert "time 3.63:" in view.value
    player.value = 1
    assert "time 4.4:" in view.value
    reset.click()
    assert view.value == first
    again.click()
    assert "time 0.1:" in view.value
    drawn = view.value
    again.click()
    assert "time 0.1:" in view.value != drawn
    reset.click()
    beta, tokens, value = controls
    value.value = -1.0
    beta.value = 0.0
    assert "β = 0, V = −I, time 0.1:" in view.value
    step.click()
    assert "β = 0, V = −I, time 0.121:" in view.value
    tokens.value = 1
    step.click()
    assert "of 1 tokens" in view.value and "NaN" not in view.value


def test_what_is_raised_stands_above_the_opening_picture():
    def fragile(state, height):
        if height > 0.5:
            raise ValueError("height must be at most <half>")
        return bars(state, height)

    exhibit = small(draw=fragile)
    slider, view = exhibit.widget().children
    slider.value = 0.75
    assert "at most &lt;half&gt;" in view.value and "height 0.25" in view.value
    slider.value = 0.5
    assert "half" not in view.value and "height 0.5" in view.value


def test_weights_store_pictures_and_logits(weights):
    state = described(weights)["state"]
    assert state["names"] == ["a", "b & c", "d"]
    assert all(each.startswith("data:image/png;base64,") for each in state["pictures"])
    assert (
        np.reshape(state["logits"], (3, 3)).tolist() == weights.state["logits"].tolist()
    )
    temperature, order, query, view = weights.widget().children
    temperature.value = 1.0
    order.value = 0.0
    query.value = 2
    assert "Query: d; τ₀ = 1, order 0" in view.value
    most = softmax(np.array([0.0, 0.0, 3.0])).max()
    assert f"to {most:.2f}" in view.value


SIZE = {"width": 12.0, "depth": 1.0, "temperature": 1.0}


def test_networks_describe_what_the_page_draws(networks):
    found = described(networks)
    assert found["seed"] == 5 and found["state"]["networks"] == 300
    assert found["kernels"] == {
        "layer": "chain-step", "length": "covariance-length",
        "move": "covariance-step",
    }  # fmt: skip
    assert {each["label"] for each in found["controls"].values()} == {
        "width n", "depth T", "τ₀",
    }  # fmt: skip
    assert found["state"]["skip"] ** 2 + found["state"]["branch"] ** 2 == (
        pytest.approx(1)
    )
    assert len(networks.frames) == 3
    assert len({each.svg for each in networks.frames}) == 3


def test_training_stores_what_inspect_measures(training):
    state = described(training)["state"]
    assert state["names"] == ["shoe", "hat", "b & c"] and state["steps"] == [
        0,
        1,
        10,
        100,
    ]
    model = models(100)[100]
    trace = model.forward(PATCHES[1:2], trace=True)
    seen = transformer.inspect(trace.tokens, bins=20)
    shape = (3, 4, 3)  # images, steps, layers
    for name, of in (("cosines", "cosines"), ("clusters", "clusters")):
        stored = np.reshape(state[name], shape)[1, 3]
        assert np.abs(stored - getattr(seen, of)).max() <= 5e-4
    shares = np.reshape(state["shares"], (*shape, 20))[1, 3]
    assert np.abs(shares - seen.histogram).max() <= 5e-5
    assert np.reshape(state["guesses"], (3, 4))[1, 3] == trace.logits.argmax()
    places = np.reshape(state["places"], (*shape, 4, 2))
    assert np.abs(places).max() == state["scale"] == 100
    # One scale for all: where tokens are closer, their tiles are.
    alike = planes(trace.tokens)[:, 0]
    drawn = places[1, 3] / 100
    pairs = [np.linalg.norm(a[:, 0] - a[:, 1], axis=-1) for a in (alike, drawn)]
    assert np.allclose(pairs[0] / pairs[0][0], pairs[1] / pairs[1][0], atol=0.1)


def test_planes_keep_distances_as_well_as_a_plane_can():
    flat = RNG.normal(size=(5, 6, 2)) @ RNG.normal(size=(2, 7))
    units = flat / np.linalg.norm(flat, axis=-1, keepdims=True)
    x = planes(units + [0, 0, 0, 0, 0, 0, 1e-12])

    def gaps(y):
        return np.linalg.norm(y[..., :, None, :] - y[..., None, :, :], axis=-1)

    # Directions in one plane lie on a circle in it, and nothing is lost.
    assert np.allclose(gaps(x), gaps(units), atol=1e-6)
    # Two pictures of the same tokens are turned alike.
    twice = planes(np.stack([units[0], units[0]]))
    assert np.allclose(twice[0], twice[1])


def test_between_saved_steps_and_layers_lie_straight_lines():
    saved = RNG.normal(size=(4, 3, 2))
    steps = [0, 1, 10, 100]
    for k, step in enumerate(steps):
        for layer in range(3):
            assert np.allclose(between(saved, steps, step, layer), saved[k, layer])
    half = (saved[2, 1] + saved[3, 1] + saved[2, 2] + saved[3, 2]) / 4
    assert np.allclose(between(saved, steps, 1000**0.5, 1.5), half)
    quarter = 0.75 * saved[0, 0] + 0.25 * saved[1, 0]
    assert np.allclose(between(saved, steps, 0.25, 0), quarter)


def test_drawing_of_training_and_its_widget(training):
    assert len(training.frames) == 2
    assert "(hat)" in repr(training) and "layer 1 after 10 steps" in repr(training)
    drawn = draw_training(training.state, step=30.0, layer=0.5, image=2.0)
    assert drawn.caption.startswith("B & c, layer 0.5 after 30 steps: mean cosine")
    step, layer, image, view = training.widget().children
    layer.value = 2.0
    assert "layer 2 after 10 steps" in view.value
    image.value = 0.0
    assert "Shoe" in view.value
    step.value = 0.0
    assert "after 0 steps" in view.value


@pytest.mark.parametrize(
    "change", [{}, {"width": 4.0}, {"depth": 0.05}, {"depth": 2.0},
               {"temperature": 0.25}, {"temperature": 4.0}],
)  # fmt: skip
def test_networks_are_those_of_gram_and_the_limit_that_of_sde(networks, change):
    """What is printed beside the picture, recomputed by real weight matrices."""
    values = SIZE | change
    n, tau0 = round(values["width"]), values["temperature"]
    layers = max(1, round(values["depth"] * n))
    state = networks.state | {"networks": 2000}
    after = network_cosines(state, n, layers, tau0)
    x0 = np.zeros((2, n))
    x0[0, 0], x0[1, 0], x0[1, 1] = 1, 0.3, np.sqrt(1 - 0.09)
    layer = gram.ShapedLayer(n, n, np.sqrt(0.5), np.sqrt(0.5), tau0)
    run = gram.dense_simulate(
        np.sqrt(n) * x0, layer, layers, paths=2000, rng=RNG, save_every=layers
    )
    dense = psd.cosines(run.states[-1])[1][:, 0, 1]
    assert ks_2samp(after, dense).pvalue > 1e-4
    drawn = draw_networks(networks.state, **values)
    mine = network_cosines(networks.state, n, layers, tau0)
    assert "in 300 networks" in drawn.caption
    assert f"After {layers} layers of width {n} at" in drawn.caption
    assert f"cosine {mine[0]:.2f} in one".replace("-", "−") in drawn.caption
    assert f"mean {mine.mean():.2f}, standard deviation {mine.std():.2f}" in drawn.alt
    limit = limit_cosines(networks.state, layers / n, tau0)
    assert f"line, standard deviation {limit.std():.2f}" in drawn.alt
    wide = network_cosines(state, 200, round(200 * layers / n), tau0)
    # The pile of a wide network is as wide as the limit.
    assert wide.std() == pytest.approx(limit.std(), rel=0.1)


def test_widget_moves_networks_through_their_layers(networks):
    row, width, depth, temperature, view = networks.widget().children
    _, step, reset, again = row.children
    first = view.value
    assert "After 12 layers of width 12" in first
    step.click()
    assert "After 0 layers of width 12 at τ₀ = 1: cosine 0.30" in view.value
    assert "mean 0.30, standard deviation 0.00" in view.value
    step.click()
    assert "After 2 layers" in view.value
    depth.value = 2.0
    assert "After 3 layers" in view.value
    width.value = 48
    assert "After 12 layers of width 48" in view.value
    temperature.value = 4.0
    assert "τ₀ = 4" in view.value
    again.click()
    assert "After 96 layers of width 48" in view.value
    drawn = view.value
    again.click()
    assert "After 96 layers of width 48" in view.value != drawn
    reset.click()
    width.value, depth.value, temperature.value = 12, 1.0, 1.0
    assert view.value == first


def test_places_of_a_slider_and_its_values_agree():
    for slider in (
        Slider("a", 0.1, 100.0, 0.0, log=True, zero=True),
        Slider("a", -2.0, 5.0, 0.0),
        Slider("a", 1.0, 256.0, 96.0, log=True, whole=True),
    ):
        assert slider.at(1) == slider.high
        assert slider.at(0) == (0 if slider.zero else slider.low)
        for value in (slider.high, slider.at(0.3), slider.at(0)):
            assert slider.at(slider.place(value)) == pytest.approx(value)
        assert slider.widget().value == slider.start


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: small(state={"other": 0.5, "x": np.array([1.0, np.nan])}),
            "'x'.*finite",
        ),
        (
            lambda: small(state={"other": 0.5, "x": {"a": 1}}),
            "'x'.*finite numbers or texts",
        ),
        (lambda: small(kernels={"step": "../x"}), "kernels.'step'.*'../x'"),
        (lambda: small(controls={"height": 3}), "Slider or a Choice, got 3"),
        (
            lambda: small(controls={"width": Slider("w", 0.0, 1.0, 0.5)}),
            "draw must take",
        ),
        (lambda: small(draw=lambda state, height: 3), "return figure.*int"),
        (lambda: small(state={"other": 0.5, "x": np.ones(10**5)}), "bytes, more than"),
        (lambda: Slider("a", 2.0, 1.0, 1.5), "low must be less than high"),
        (lambda: Slider("a", 0.0, 1.0, 0.5, log=True), "low must be positive"),
        (lambda: Slider("a", 0.5, 1.0, 2.0), "start must be from 0.5 to 1, got 2.0"),
        (lambda: Slider("a", 0.5, 1.0, 0.7, zero=True), "zero=True needs log=True"),
        (lambda: Choice("a", {"one": 1.0}, 1.0), "at least two"),
        (lambda: Choice("a", {"one": 1.0, "two": 2.0}, 3.0), "one of the options"),
        (lambda: exhibits.globe(np.eye(4)), r"x0 must have shape \(n, 3\)"),
        (lambda: exhibits.globe(np.eye(3), 101.0), "beta must be from 0 to 100"),
        (lambda: exhibits.globe(np.eye(3), opens=0.01), "opens must be from 0.1"),
        (lambda: exhibits.networks(1.0), "start must be from -0.99 to 0.99, got 1.0"),
        (lambda: exhibits.networks(0.3, width=3), "width must be"),
        (lambda: exhibits.networks(0.3, width=8.5), "width must be"),
        (lambda: exhibits.networks(0.3, depth=3.0), "depth must be from 0.05 to 2"),
        (lambda: exhibits.networks(0.3, temperature=0), "temperature must be from"),
        (lambda: exhibits.networks(0.3, networks=10), "networks must be"),
        (lambda: exhibits.networks(0.3, seed=-1), "seed must be"),
        (lambda: exhibits.networks(0.3, caption=3), "caption must be a text, got 3"),
        (
            lambda: exhibits.weights(np.ones((2, 4, 4)), np.eye(3), ["a", "b", "c"]),
            "pictures, logits and names must be of one length",
        ),
        (
            lambda: exhibits.weights(2 * np.ones((2, 4, 4)), np.eye(2), ["a", "b"]),
            r"pictures must lie in \[0, 1\], got 2 to 2",
        ),
        (lambda: trained(models(1, 2, 3)), "saved must have step 0 and at least two"),
        (lambda: trained(models(0, 1)), "saved must have step 0 and at least two"),
        (lambda: trained(models(0, 9, 3)), "saved must map increasing steps to trans"),
        (lambda: trained({0: 1, 2: 3, 4: 5}), "saved must map increasing steps"),
        (lambda: trained(x=PATCHES[:, :2]), r"x must have shape \(batch, 4, 9\)"),
        (lambda: trained(patches=PATCHES[:, :3]), "patches must be squares, shape"),
        (lambda: trained(patches=PATCHES[:2]), "patches must be those of x, at least"),
        (lambda: trained(patches=9 * PATCHES), r"pictures must lie in \[0, 1\]"),
        (lambda: trained(labels=(0, 1)), r"labels must have shape \(3,\)"),
        (lambda: trained(labels=(0, 1, 7)), "labels must be integers from 0 to 2"),
        (lambda: trained(classes=["a", "b"]), "classes must have 3 names, got 2"),
        (lambda: trained(classes=[1, 2, 3]), "classes must be a list of texts"),
        (lambda: trained(step=101), "step must be from 0 to 100, got 101"),
        (lambda: trained(layer=-1), "layer must be from 0 to 2, got -1"),
        (lambda: trained(image=3), "image must be"),
    ],
)
def test_bad_input_is_one_clear_sentence(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_impure_drawing_is_refused():
    heights = iter([0.2, 0.3, 0.4])
    with pytest.raises(ValueError, match="draw is impure"):
        small(draw=lambda state, height: bars(state, next(heights)))
    assert isinstance(small(), Exhibit) and isinstance(small().frames[0], BookFigure)
