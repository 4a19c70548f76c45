"""Live exhibits in Python: what is stored of them, and how a kernel moves them."""

import json
import re
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import ks_2samp, norm

from lib import exhibits, gram, heat, hierarchical, sinkhorn, sphere, transformer
from lib.attention import softmax
from lib.core import psd
from lib.exhibits.film import LAYERS, draw_film, film_sees, film_tokens
from lib.exhibits.globe import FIRST, LAST, advance_globe, draw_globe
from lib.exhibits.histogram import draw_histogram, drawn
from lib.exhibits.networks import draw_networks, limit_cosines, network_cosines
from lib.exhibits.training import between, draw_training, nearest, planes, ranks
from lib.figures import BookFigure, Choice, Exhibit, Slider, figure, live, style
from lib.sphere import cluster_labels

RNG = np.random.default_rng(3)
TOKENS = sphere.uniform_tokens(12, 3, rng=RNG)
MIXTURE = heat.GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])
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


@pytest.fixture(scope="module")
def film():
    return exhibits.film(MIXTURE, eps=0.1, time=0.5, tokens=30)


@pytest.fixture(scope="module")
def histogram():
    return exhibits.histogram(2.0, width=200, seed=5)


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
    description = described(globe)
    assert description["script"] == "globe" and description["seed"] == 5
    assert set(description["kernels"].values()) == {"sphere-step", "sphere-crowd"}
    x = np.reshape(description["state"]["x"], (-1, 3))
    # The kernels refuse tokens farther from the sphere than 1e-8.
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-9
    assert np.abs(x - globe.state["x"]).max() < 1e-9
    assert description["state"]["time"] == 3 == description["state"]["times"][-1]
    assert description["controls"]["beta"] == {
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


def test_one_that_rests_goes_back_to_its_start():
    rests = exhibits.globe(TOKENS, 6.0, 8.0, rests=True)
    assert described(rests)["state"]["rests"] == 1
    counts = [
        float(re.search(r"([\d.]+) clusters", f.caption)[1]) for f in rests.frames[1:]
    ]
    first, late, back = counts
    assert first == back > late
    assert rests.frames[-1].caption.endswith("8 forward, then 8 back: the start again.")


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
    description = described(networks)
    assert description["seed"] == 5 and description["state"]["networks"] == 300
    assert description["kernels"] == {
        "layer": "chain-step", "length": "covariance-length",
        "move": "covariance-step",
    }  # fmt: skip
    assert {each["label"] for each in description["controls"].values()} == {
        "width n", "depth T", "temperature τ₀",
    }  # fmt: skip
    assert description["state"]["skip"] ** 2 + description["state"]["branch"] ** 2 == (
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
    shares = np.reshape(state["shares"], (*shape, 20))
    assert np.abs(shares[1, 3] - seen.histogram).max() <= 5e-5
    # One axis has room for all, and a tenth less would not do.
    assert 0 <= state["top"] - shares.max() < 0.1
    assert np.reshape(state["guesses"], (3, 4))[1, 3] == trace.logits.argmax()
    units = trace.tokens / np.linalg.norm(trace.tokens, axis=-1, keepdims=True)
    frames = np.reshape(state["ranks"], (*shape, 4))
    assert (frames[1, 3] == ranks(cluster_labels(units, 0.5))[:, 0]).all()
    places = np.reshape(state["places"], (*shape, 4, 2))
    assert np.abs(places).max() == state["scale"] == 100
    # One scale for all: where tokens are closer, their tiles are.
    alike = planes(trace.tokens)[:, 0]
    drawn = places[1, 3] / 100
    pairs = [np.linalg.norm(a[:, 0] - a[:, 1], axis=-1) for a in (alike, drawn)]
    assert np.allclose(pairs[0] / pairs[0][0], pairs[1] / pairs[1][0], atol=0.1)


def test_clusters_are_ranked_by_size_then_by_their_first_token():
    labels = np.array([[0, 0, 1, 2, 2, 2, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7], [0] * 8])
    wanted = [[1, 1, 3, 0, 0, 0, 2, 2], [3] * 8, [0] * 8]
    assert ranks(labels).tolist() == wanted
    # Further clusters share a rank.
    assert ranks(np.array([0, 1, 2, 3, 0, 1, 2, 3])).tolist() == [0, 1, 2, 2] * 2


def test_frames_are_those_of_the_nearest_saved_step():
    saved = [0, 1, 10, 100]
    given = [0, 0.3, 0.5, 1, 3, 4, 10, 40, 100]
    assert [nearest(saved, step) for step in given] == [0, 0, 1, 1, 1, 2, 2, 3, 3]


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
    assert "(hat)" in repr(training) and "layer 1 after 10 steps," in repr(training)
    drawn = draw_training(training.state, step=30.0, layer=0.5, image=2.0)
    assert drawn.caption.startswith(
        "B & c, layer 0.5 after 30 steps (interpolated): mean cosine"
    )
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


def test_film_describes_what_the_page_computes(film):
    description = described(film)
    assert description["kernels"] == {
        "kernel": "sinkhorn-kernel", "update": "sinkhorn-update",
        "layer": "sinkhorn-layer", "score": "mixture-step", "heat": "mixture-density",
    }  # fmt: skip
    assert description["state"]["counts"] == [25, 30, 50, 100, 200]
    places = np.reshape(description["state"]["places"], (-1, 2))
    assert places.shape == (405, 2) and len(film.frames) == 3
    for n, start in ((25, 0), (30, 25), (200, 205)):
        x = places[start : start + n]
        levels = (np.arange(n) + 0.5) / n
        assert np.abs(MIXTURE.cdf(x[:, 0]) - levels).max() < 1e-9
        assert np.abs(norm.cdf(np.sort(x[:, 1])) - levels).max() < 1e-9
        # Heights have nothing to do with the places below them.
        assert abs(np.corrcoef(x.T)[0, 1]) < 0.1
    assert (
        description["controls"]["eps"]["log"]
        and description["controls"]["time"]["high"] == 4
    )


def film_start(film, n, plane):
    counts = film.state["counts"]
    first = sum(counts[: counts.index(n)])
    return film.state["places"][first : first + n, : 1 + plane]


@pytest.mark.filterwarnings("ignore::lib.sinkhorn.FrozenFlowWarning")
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("plane", [0, 1])
@pytest.mark.parametrize(
    ("eps", "n"), [(0.002, 25), (0.03, 30), (0.5, 100), (2.0, 200)]
)
def test_film_is_the_flow_of_lib(film, layer, plane, eps, n):
    x = film_start(film, n, plane)
    laws = MIXTURE, heat.GaussianMixture([0], [1], [1])
    for k in range(4):
        place = eps, LAYERS[layer], n, plane
        tokens = film_tokens(film.state, k * eps, *place)
        assert np.abs(tokens - x).max() < 1e-12 * np.abs(x).max()
        before = x
        if layer == "Sinkhorn":
            x = sinkhorn.bridge_step(x, eps, tol=film.state["tol"])
        elif layer == "softmax":
            x = heat.softmax_step(x, eps)
        else:
            scores = [
                law.heat(k * eps).score(each)
                for law, each in zip(laws, x.T, strict=False)
            ]
            x = x - eps / 2 * np.stack(scores, axis=1)
        between = film_tokens(film.state, (k + 0.25) * eps, *place)
        assert np.abs(between - (0.75 * before + 0.25 * x)).max() < 1e-11


@pytest.mark.parametrize("plane", [0, 1])
@pytest.mark.parametrize("layer", ["Sinkhorn", "softmax"])
def test_film_says_that_tokens_are_frozen_where_lib_warns(film, plane, layer):
    said = []
    for n in (25, 50, 200):
        x = film_start(film, n, plane)
        for eps in (0.002, 0.004, 0.008, 0.016, 0.06, 0.12, 0.25, 16):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                # The softmax is the attention before any update.
                tol = 1e-8 if layer == "Sinkhorn" else 1e300
                plan = sinkhorn.self_transport(x, eps, tol=tol)
            warned = sinkhorn.FrozenFlowWarning in {each.category for each in caught}
            words = film_sees(film.state, 0.0, eps, LAYERS[layer], n, plane)
            assert ("hardly see each other" in words) is warned
            seen = plan.effective_neighbors().mean()
            assert warned or f"attends to {seen:.1f} tokens" in words
            said.append(warned)
    assert {True, False} == {*said}


def test_film_of_one_token():
    one = exhibits.film(MIXTURE, tokens=1, caption="One.")
    assert one.caption == "One."
    for layer, kind in LAYERS.items():
        for place, plane in (("on the line", 0.0), ("in the plane", 1.0)):
            for eps, time in ((0.002, 0.0), (0.02, 4.0), (4.0, 4.0), (4.0, 3.0)):
                said = draw_film(
                    one.state, time=time, eps=eps, layer=kind, tokens=1.0, plane=plane
                ).caption
                whole = round(time / eps, 9) % 1 == 0
                done = f"layer {time / eps:.0f}" if whole else "between layers 0 and 1"
                begins = f"Time {time:.2f}, {done}: 1 token"
                assert said.startswith(f"{begins} {place}, {layer}, ε = {eps:g}.")
                assert ("single token has nobody" in said) is (layer != "exact score")
                assert "variance has grown by 0.00" in said


def test_widget_plays_the_time_of_the_film(film):
    row, time, eps, layer, tokens, plane, view = film.widget().children
    player, step, reset = row.children
    first = view.value
    assert "Time 0.50, layer 5: 30 tokens on the line, Sinkhorn" in first
    step.click()
    assert time.value == pytest.approx(0.6) and "Time 0.60, layer 6:" in view.value
    player.value = 1
    assert time.value == pytest.approx(0.7) and "Time 0.70, layer 7:" in view.value
    time.value = 4.0
    assert "layer 40:" in view.value
    step.click()
    assert time.value == 0 and "Time 0.00, layer 0:" in view.value
    # Short layers pass several at a time.
    eps.value = 0.01
    step.click()
    assert "Time 0.12, layer 12:" in view.value
    tokens.value, plane.value, layer.value = 200.0, 1.0, 1.0
    assert "200 tokens in the plane, softmax, ε = 0.01." in view.value
    assert view.value.count("hardly see each other") == 1
    reset.click()
    assert view.value == first and (tokens.value, eps.value) == (30, 0.1)


def test_picture_of_tokens_in_one_place(film):
    """Nothing of a density is drawn where there is none."""
    state = {**film.state, "places": 0 * film.state["places"] + 1.0}
    for plane in (0.0, 1.0):
        drawn = draw_film(state, time=0.5, eps=0.1, layer=0.0, tokens=30.0, plane=plane)
        assert "grown by 0.00" in drawn.caption
        assert "attends to 30.0 tokens" in drawn.caption


OUTPUT = {"one": 0.0, "scale": 2.0, "heads": 1.0, "width": 200.0}


def test_histogram_describes_what_the_page_draws(histogram):
    description = described(histogram)
    assert description["kernels"] == {
        "variance": "attention-variances", "density": "scale-mixture-density",
    }  # fmt: skip
    assert [each["label"] for each in description["controls"].values()] == [
        "draw", "σ", "heads H", "width n",
    ]  # fmt: skip
    assert description["controls"]["scale"]["start"] == 2.0
    assert description["controls"]["heads"]["start"] == 1.0
    table = description["state"]["table"]
    for place, scale in ((16, 1.0), (32, 2.0), (128, 8.0)):
        wanted = hierarchical.orthonormal_constant(16, scale)
        assert table[place] == pytest.approx(wanted, rel=1e-9)
    assert table[0] == 0
    assert len({each.svg for each in histogram.frames}) == 3


@pytest.mark.parametrize(
    "change", [{}, {"width": 16.0}, {"scale": 0.0}, {"scale": 8.0}, {"heads": 5.0},
               {"one": 1.0}, {"one": 1.0, "heads": 64.0}],
)  # fmt: skip
def test_histogram_is_that_of_real_networks(histogram, change):
    """What is printed beside the picture, and the law by real weight matrices."""
    values = OUTPUT | change
    n, heads, scale = round(values["width"]), round(values["heads"]), values["scale"]
    y = drawn(histogram.state, **values)
    if values["one"]:
        assert len(y) == n
        assert abs(kurtosis(y)) < 5 * np.sqrt(24 / n)
    else:
        x = np.sqrt(16) * np.eye(16) if n == 16 else np.sqrt(n) * np.eye(16, n)
        size = 3000 if n == 16 else 300
        real = hierarchical.dense(x, heads, size, score_scale=scale, rng=RNG)[:, 0, 0]
        assert ks_2samp(y, real).pvalue > 1e-4
        assert len(y) == len({*y}) == min(60_000, 400_000 // heads)
    drawing = draw_histogram(histogram.state, **values)
    limit = hierarchical.AttentionLimit(np.eye(16), heads, scale, nodes=2**14)
    wanted = hierarchical.orthonormal_constant(16, scale) / heads
    mine = f"{round(kurtosis(y), 2) + 0.0:.2f}".replace("-", "\u2212")
    said = f". Excess kurtosis over networks, in the limit: {wanted:.2f}."
    if not values["one"]:
        said = f": excess kurtosis {mine}, in the limit {wanted:.2f};"
    assert said in drawing.caption and f": excess kurtosis {mine}," in drawing.caption
    assert f"{len(y):,} " in drawing.caption
    assert f"width {n}, H = {heads}, σ = {scale:g}:" in drawing.caption
    share = (y**2).mean() / limit.variance()
    whose = "its mean over networks." if values["one"] else "the limit's."
    assert f" variance {share:.2f} times {whose}" in drawing.caption


def kurtosis(y):
    return (y**4).mean() / (y**2).mean() ** 2 - 3


def test_widget_of_the_histogram_grows(histogram):
    row, draw, scale, heads, width, view = histogram.widget().children
    _, step, reset, again = row.children
    first = view.value
    assert "60,000 networks, width 200, H = 1, σ = 2" in first
    for count in ("234", "937", "3,750", "15,000", "60,000"):
        step.click()
        assert f"{count} networks" in view.value.replace("\n", " ")
    assert view.value == first
    draw.value = 1.0
    assert "200 coordinates of one network" in view.value
    one = view.value
    again.click()
    assert "200 coordinates of one network" in view.value != one
    width.value, heads.value, scale.value = 64, 4, 0.5
    assert "64 coordinates of one network, width 64, H = 4, σ = 0.5" in view.value
    reset.click()
    draw.value, width.value, heads.value, scale.value = 0.0, 200, 1, 2.0
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
        (lambda: exhibits.film(3), "law must be a GaussianMixture, got 3"),
        (lambda: exhibits.film(MIXTURE, eps=0.001), "eps must be from 0.002 to 4"),
        (lambda: exhibits.film(MIXTURE, time=4.5), "time must be from 0 to 4, got 4.5"),
        (lambda: exhibits.film(MIXTURE, tokens=201), "tokens must be .* to 200"),
        (lambda: exhibits.film(MIXTURE, tokens=0), "tokens must be .* from 1 to"),
        (lambda: exhibits.film(MIXTURE, layer="sinkhorn"), "layer must be one of Sink"),
        (lambda: exhibits.film(MIXTURE, layer=0), "layer must be one of .*, got 0"),
        (lambda: exhibits.film(MIXTURE, plane=1), "plane must be True or False, got 1"),
        (lambda: exhibits.film(MIXTURE, caption=3), "caption must be a text, got 3"),
        (lambda: exhibits.histogram(8.5), "score_scale must be from 0 to 8, got 8.5"),
        (lambda: exhibits.histogram(heads=0), "heads must be"),
        (lambda: exhibits.histogram(heads=65), "heads must be"),
        (lambda: exhibits.histogram(width=15), "width must be"),
        (lambda: exhibits.histogram(width=100.5), "width must be"),
        (lambda: exhibits.histogram(one=1), "one must be True or False"),
        (lambda: exhibits.histogram(seed=-1), "seed must be"),
        (lambda: exhibits.histogram(caption=3), "caption must be a text, got 3"),
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
        (lambda: trained(patches=9 * PATCHES), r"patches must lie in \[0, 1\]"),
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
