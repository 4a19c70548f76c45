"""The live exhibit of random networks: what the page draws has the laws of lib."""

import math
import re
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp, kstest
from test_live_exhibits import (
    FIRST,
    INK,
    NETWORKS,
    NOTE,
    STAGE,
    begun,
    button,
    says,
    slide,
)

from lib import exhibits, sde
from lib.core.psd import cosines
from lib.exhibits.networks import limit_cosines, network_cosines
from lib.figures.controls import starts

PILE = FIRST[NETWORKS]
DONE = "^Layer {} of .* in this network"
V0 = np.array([[1.0, 0.3], [0.3, 1.0]])
# The functions of the page with the kernels of the site, on draws of its generator.
DRAWN = """async ([site, what, state, values, seed, times]) => {
  const at = (file) => import(`${site}_static/${file}.mjs`);
  const { generator } = await at("random");
  const kernels = {};
  for (const [role, file] of Object.entries(
      { layer: "chain-step", length: "covariance-length", move: "covariance-step" }))
    kernels[role] = (await at(`kernels/${file}`)).default;
  const call = (name, inputs) => {
    const found = kernels[name](inputs);
    if (!found.ok) throw new Error(`${name} is not ok`);
    return found;
  };
  const made = (await at("networks"))[what](state, values, call, generator(seed));
  for (let k = 0; k < times; k++) (made.layer ?? made.step)();
  return Array.from(what === "chain" ? made.past.at(-1) : made.now);
}"""


@cache
def opens():
    """The exhibit as its page opens it: it is computed where a test asks."""
    return exhibits.networks(0.3, networks=100)


def drawn(visit, site, what, values, seed, times):
    """20,000 cosines of the exhibit: of networks, or of paths of the limit."""
    page, _ = visit(NETWORKS, reduced_motion="reduce")
    state = opens().state | {"networks": 20_000, "paths": 20_000}
    given = [site, what, state, values, seed, times]
    return np.array(page.evaluate(DRAWN, given))


def agree(one, other):
    """Mean, variance and law of two samples, by four standard errors."""
    for power in (1, 2):
        a, b = one**power, other**power
        noise = math.sqrt(a.var() / len(a) + b.var() / len(b))
        assert abs(a.mean() - b.mean()) < 4 * noise, power
    assert ks_2samp(one, other).pvalue > 1e-4


@pytest.mark.parametrize(
    ("n", "layers", "tau0"),
    [(4, 1, 1.0), (4, 8, 1.0), (5, 4, 0.25), (7, 14, 0.5), (16, 12, 1.0),
     (64, 40, 4.0)],
)  # fmt: skip
def test_networks_of_the_page_have_the_law_of_gram(visit, site, n, layers, tau0):
    values = {"width": n, "temperature": tau0}
    sample = drawn(visit, site, "chain", values, 100 + n, layers)
    state = opens().state | {"networks": 40_000}
    wanted = network_cosines(state | {"weights": n}, n, layers, tau0)
    assert len({*sample}) == len(sample)  # no two networks are one
    agree(sample, wanted)


@pytest.mark.parametrize("tau0", [0.3, 1.0])
def test_limit_of_the_page_has_the_law_of_sde(visit, site, tau0):
    values = {"width": 32, "temperature": tau0}
    sample = drawn(visit, site, "limit", values, 7, 32)
    run = sde.simulate(
        sde.CovarianceSDE(opens().state["branch"], tau0), V0, 0.5, 32, paths=40_000,
        rng=np.random.default_rng(3), save_every=32, level=opens().state["level"],
    )  # fmt: skip
    agree(sample, cosines(run.states[-1])[1][:, 0, 1])


@pytest.mark.parametrize("degrees", [0.4, 1, 2, 3, 15, 85.3])
def test_chi_square_draws_have_their_law(visit, site, degrees):
    page, _ = visit(NETWORKS, reduced_motion="reduce")
    sample = page.evaluate(
        """async ([site, degrees]) => {
          const { generator } = await import(site + '_static/random.mjs');
          const random = generator(11);
          return Array.from({length: 40000}, () => random.chiSquare(degrees)); }""",
        [site, degrees],
    )
    assert kstest(sample, chi2(degrees).cdf).pvalue > 1e-3
    halves = np.reshape(sample, (-1, 2))
    assert abs(np.corrcoef(halves.T)[0, 1]) < 4 / math.sqrt(len(halves))


def numbers(said):
    """The layer, how many there are, the cosine, and mean and deviation of both."""
    plain = re.sub(r"width [^:]*:|(?<=\d),(?=\d)", "", said)
    digits = re.findall(r"[-\u2212]?\d+\.?\d*", plain)
    return [float(each.replace("\u2212", "-")) for each in digits]


@pytest.mark.parametrize(
    ("label", "place", "layers"),
    [("width n", 0, 4), ("width n", 1, 256), ("depth T", 0, 2), ("depth T", 1, 64),
     ("temperature τ₀", 0, 32), ("temperature τ₀", 1, 32)],
)  # fmt: skip
def test_pile_is_that_of_lib_at_the_ends_of_each_slider(visit, label, place, layers):
    _, figure = visit(NETWORKS, reduced_motion="reduce")
    begun(figure)
    says(figure, DONE.format(32))
    slide(figure, label, place)
    name = next(n for n, c in opens().controls.items() if c.label == label)
    values = starts(opens().controls) | {name: opens().controls[name].at(place)}
    n, tau0 = round(values["width"]), values["temperature"]
    said = says(figure, f"^Layer {layers} of {layers}, width {n}, τ₀ = {tau0:g}:")
    assert figure.locator(STAGE).is_visible() and "stored" not in said
    at, total, cosine, mean, spread, count, limit_mean, limit_spread = numbers(said)
    assert at == total == layers and count == 1000 and -1 <= cosine <= 1
    near = network_cosines(opens().state | {"networks": 4000}, n, layers, tau0)
    far = limit_cosines(opens().state, layers / n, tau0)
    for shown, wanted, size in (
        ((mean, spread), near, count), ((limit_mean, limit_spread), far, len(far))
    ):  # fmt: skip
        noise = wanted.std() * math.sqrt(1 / size + 1 / len(wanted))
        assert abs(shown[0] - wanted.mean()) < 5 * noise + 0.005
        assert abs(shown[1] - wanted.std()) < 5 * noise + 0.005
    # The pile stays wide, as the limit is; at a small depth it is not yet.
    assert (spread > 0.4) == (limit_spread > 0.4) == (label != "depth T" or place == 1)


def test_the_limit_keeps_up_with_the_layers(visit):
    """What is said of the limit is of the same time, from the first layer on."""
    page, figure = visit(NETWORKS)
    begun(figure)
    slide(figure, "width n", 1)
    button(figure, "Play").click()
    texts = figure.evaluate(
        """async (figure) => {
          const note = figure.querySelector('.exhibit-note'), texts = new Set();
          while (texts.size < 12) {
            await new Promise(requestAnimationFrame);
            texts.add(note.dataset.now);
          }
          return [...texts]; }"""
    )
    told = [numbers(text) for text in texts if re.match("Layer [1-9]", text)]
    assert len(told) > 5
    for at, total, *_, spread in told:
        # The standard deviation of the limit is 0.91 √(¾ t) at small times t, which a
        # straight line between two of its steps can only miss from below.
        small = 0.91 * math.sqrt(0.75 * at / 256)
        assert at < total == 256 and 0.1 * small < spread < 1.2 * small + 0.01


def test_layers_pass_and_the_pile_spreads(visit):
    _, figure = visit(NETWORKS, reduced_motion="reduce")
    begun(figure)
    says(figure, DONE.format(32))
    button(figure, "Step").click()
    first = numbers(says(figure, "^Layer 0 of 32"))
    assert first[2:5] == [0.3, 0.3, 0.0]
    spreads = [0.0]
    for layer in (2, 4, 6):
        button(figure, "Step").click()
        spreads.append(numbers(says(figure, f"^Layer {layer} of 32"))[4])
    assert (np.diff(spreads) > 0).all()
    button(figure, "Reset").click()
    says(figure, DONE.format(32))


def test_networks_move_by_themselves_to_their_last_layer(visit):
    page, figure = visit(NETWORKS)
    begun(figure)
    button(figure, "Pause").click()
    before = figure.locator(PILE).evaluate(INK)
    button(figure, "Play").click()
    page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before",
        arg=[figure.locator(PILE).element_handle(), before],
    )
    button(figure, "Play").wait_for()  # it ends by itself
    said = says(figure, DONE.format(32))
    # From there it begins anew, with the same weights.
    button(figure, "Play").click()
    button(figure, "Pause").wait_for()
    button(figure, "Play").wait_for()
    assert says(figure, DONE.format(32)) == said


def test_weights_are_drawn_again_and_come_back(visit):
    _, figure = visit(NETWORKS, reduced_motion="reduce")
    begun(figure)
    first, seen = says(figure, DONE.format(32)), set()
    for _ in range(3):
        before = figure.locator(NOTE).inner_text()
        button(figure, "Draw again").click()
        figure.page.wait_for_function(
            "([note, before]) => note.innerText !== before &&"
            " note.innerText.startsWith('Layer')",
            arg=[figure.locator(NOTE).element_handle(), before],
        )
        seen.add(figure.locator(NOTE).inner_text())
    assert len({numbers(each)[2] for each in {first, *seen}}) == 4
    # The limit is no matter of weights.
    assert len({tuple(numbers(each)[6:]) for each in {first, *seen}}) == 1
    assert all(abs(numbers(each)[4] - numbers(first)[4]) < 0.1 for each in seen)
    button(figure, "Reset").click()
    figure.locator(NOTE, has_text=first).wait_for()


def test_depth_goes_back_and_forth_on_the_same_weights(visit):
    _, figure = visit(NETWORKS, reduced_motion="reduce")
    begun(figure)
    first = says(figure, DONE.format(32))
    depth = opens().controls["depth"]
    for value, layers in ((0.25, 8), (2.0, 64), (1.0, 32)):
        slide(figure, "depth T", depth.place(value))
        last = says(figure, f"^Layer {layers} of {layers}, ")
    assert last == first


def test_networks_answer_the_keyboard(visit):
    _, figure = visit(NETWORKS, reduced_motion="reduce")
    begun(figure)
    says(figure, DONE.format(32))
    width = figure.get_by_label("width n", exact=True)
    width.press("Home")
    says(figure, "width 4,")
    width.press("ArrowRight")
    says(figure, "width 5,")
    figure.get_by_label("temperature τ₀", exact=True).press("End")
    says(figure, "width 5, τ₀ = 4:")


def test_where_the_kernel_of_a_layer_says_no_the_pictures_stand(visit):
    """At a high temperature this kernel refuses; below, its tokens stay apart."""
    body = (
        "export default ({p, root, tau0}) => ({ok: tau0 < 3, next: root.slice(),"
        " cosine: new Float64Array(p)});"
    )
    answer = {"content_type": "text/javascript", "body": body}
    routes = [("**/chain-step.mjs", lambda r: r.fulfill(**answer))]
    _, figure = visit(NETWORKS, routes=routes, reduced_motion="reduce")
    begun(figure)
    says(figure, "cosine 0.00 in this network. Mean 0.00 and standard deviation 0.00")
    slide(figure, "temperature τ₀", 1)
    said = figure.locator(NOTE, has_text="stored ones")
    said.wait_for()
    assert "At width 32 and τ₀ = 4 these networks" in said.inner_text()
    assert not figure.locator(STAGE).is_visible()
    for picture in figure.locator(".exhibit-frame svg").all():
        assert picture.is_visible()
    slide(figure, "temperature τ₀", 0.5)
    says(figure, DONE.format(32))
    assert figure.locator(PILE).is_visible()
