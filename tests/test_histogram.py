"""The live histogram of attention: what the page draws has the laws of lib."""

import math
import re
from functools import cache

import numpy as np
import pytest
from scipy.stats import kstest
from test_live_exhibits import (
    FIRST,
    HISTOGRAM,
    INK,
    NOTE,
    STAGE,
    begun,
    button,
    says,
    slide,
)

from lib import exhibits
from lib.exhibits.histogram import constants, draw_histogram, drawn
from lib.figures.controls import starts
from lib.hierarchical import AttentionLimit, FiniteAttention, orthonormal_constant

CANVAS = FIRST[HISTOGRAM]
TOKENS = np.eye(16)
OPENING = "^60,000 networks, width 1024, H = 1, σ = 2: excess kurtosis"
# The functions of the page with the kernels of the site, on draws of its generator.
PAGE = """async ([site, state, values, seed, what, count]) => {
  const at = (file) => import(`${site}_static/${file}.mjs`);
  const { generator } = await at("random");
  const { source, limit } = await at("histogram");
  const kernels = {};
  for (const [role, file] of Object.entries(
      { variance: "attention-variances", density: "scale-mixture-density" }))
    kernels[role] = (await at(`kernels/${file}`)).default;
  const call = (name, inputs) => {
    const found = kernels[name](inputs);
    if (!found.ok) throw new Error(`${name} is not ok`);
    return found;
  };
  if (what === "limit") {
    const points = Float64Array.from({ length: 41 }, (_, k) => -5 + k / 4);
    const found = limit(state, values, call, generator(seed), points);
    return [found.unit, found.kurtosis, ...found.density];
  }
  const found = [];
  for (let k = 0; k < (what === "many" ? 1 : 300); k++) {
    const { total, draw } = source(state, values, call, generator(seed + k));
    found.push(...draw(count ?? total));
  }
  return found;
}"""


@cache
def opens():
    """The exhibit as its page opens it: it is computed where a test asks."""
    return exhibits.histogram()


def of_page(visit, site, values, what, count=None, seed=3):
    page, _ = visit(HISTOGRAM, reduced_motion="reduce")
    state = {name: np.asarray(each).tolist() for name, each in opens().state.items()}
    return np.array(page.evaluate(PAGE, [site, state, values, seed, what, count]))


@pytest.mark.parametrize(
    ("scale", "heads", "width"),
    [(2.0, 1, 1024), (2.0, 1, 16), (8.0, 1, 20), (0.0, 3, 16), (1.3, 7, 40)],
)
def test_networks_of_the_page_have_the_law_of_lib(visit, site, scale, heads, width):
    values = {"one": 0, "scale": scale, "heads": heads, "width": width}
    sample = of_page(visit, site, values, "many", 20_000)
    law = FiniteAttention(TOKENS, width, heads, scale, nodes=2**14)
    assert len({*sample}) == 20_000
    assert kstest(sample, law.cdf).pvalue > 1e-3
    square = sample**2
    assert abs(square.mean() - law.variance()) < 4 * square.std() / math.sqrt(20_000)
    # Another width or number of heads is another law, where they differ enough.
    if width <= 20 and scale == 2.0:
        other = AttentionLimit(TOKENS, heads, scale, nodes=2**14)
        assert kstest(sample, other.cdf).pvalue < 0.05


@pytest.mark.parametrize(("scale", "heads"), [(2.0, 1), (2.0, 4), (0.0, 1)])
def test_one_network_of_the_page_is_normal_given_its_variance(
    visit, site, scale, heads
):
    width = 100
    values = {"one": 1, "scale": scale, "heads": heads, "width": width}
    networks = of_page(visit, site, values, "one").reshape(300, width)
    squares = (networks**2).mean(axis=1)
    inside = networks / np.sqrt(squares)[:, None]
    within = (inside**4).mean(axis=1) - 3
    assert abs(within.mean() + 6 / width) < 4 * within.std() / math.sqrt(300)
    # Across networks the mean square is v times chi-square over its degrees.
    law = FiniteAttention(TOKENS, width, heads, scale, nodes=2**14)
    rng = np.random.default_rng(1)
    v = law.conditional_variance(50_000, rng=rng) * rng.chisquare(width, 50_000) / width
    draws = np.sort(v)
    assert (
        kstest(squares, lambda x: np.searchsorted(draws, x) / len(draws)).pvalue > 1e-3
    )
    pooled = (networks**4).mean() / (networks**2).mean() ** 2 - 3
    if (scale, heads) == (2.0, 1):
        assert pooled > 0.4


@pytest.mark.parametrize(
    ("scale", "heads"), [(2.0, 1), (0.0, 1), (8.0, 1), (2.06, 16), (1.0, 64)]
)
def test_limit_of_the_page_is_that_of_lib(visit, site, scale, heads):
    values = {"one": 0, "scale": scale, "heads": heads, "width": 77}
    unit, kurtosis, *density = of_page(visit, site, values, "limit")
    law = AttentionLimit(TOKENS, heads, scale, nodes=2**14)
    assert unit == pytest.approx(math.sqrt(law.variance()), rel=0.02, abs=0)
    assert kurtosis == pytest.approx(orthonormal_constant(16, scale) / heads, abs=2e-3)
    points = np.linspace(-5, 5, 41)
    wanted = unit * law.density(unit * points)
    # To the eye, on the axis of the page: its densities are above 3e-5.
    seen = wanted > 3e-5
    assert np.abs(np.log(np.array(density) / wanted))[seen].max() < 0.25
    near = np.abs(points) <= 2
    assert np.abs(np.log(np.array(density) / wanted))[near].max() < 0.03


def test_constants_of_the_page_are_near_enough_for_lines_between_them():
    table = constants()
    second = np.abs(np.diff(table, 2))
    assert table[0] == 0 and second.max() / 8 < 2e-3


def numbers(said):
    """Excess kurtosis, that of the limit, and the share of the variance."""
    share = r"variance ([\d.]+) times"
    if "one network" in said:
        wide = "its mean over networks. Excess kurtosis over networks, in the limit:"
        form = rf"kurtosis ([\u2212\d.]+), {share} {wide} ([\d]+\.[\d]+)\."
    else:
        form = rf"kurtosis ([\u2212\d.]+), in the limit ([\d.]+); {share} the limit's"
    values = [float(x.replace("\u2212", "-")) for x in re.search(form, said).groups()]
    return [values[0], values[2], values[1]] if "one network" in said else values


@pytest.mark.parametrize(
    ("label", "place", "count", "kurtosis"),
    [("σ", 0, "60,000", 0.0), ("σ", 1, "60,000", None), ("heads H", 1, "6,250", None),
     ("width n", 0, "60,000", None), ("width n", 1, "60,000", None)],
)  # fmt: skip
def test_histogram_is_that_of_lib_at_the_ends_of_each_slider(
    visit, label, place, count, kurtosis
):
    _, figure = visit(HISTOGRAM, reduced_motion="reduce")
    begun(figure)
    says(figure, OPENING)
    slide(figure, label, place)
    name = next(n for n, c in opens().controls.items() if c.label == label)
    values = starts(opens().controls) | {name: opens().controls[name].at(place)}
    n, heads, scale = round(values["width"]), round(values["heads"]), values["scale"]
    said = says(figure, f"^{count} networks, width {n}, H = {heads}, σ = {scale:g}:")
    assert figure.locator(STAGE).is_visible() and "stored" not in said
    shown, limit, share = numbers(said)
    law = FiniteAttention(TOKENS, n, heads, scale, nodes=2**14)
    far = AttentionLimit(TOKENS, heads, scale, nodes=2**14)
    wanted = orthonormal_constant(16, scale) / heads
    assert limit == pytest.approx(wanted, abs=0.0051)
    assert shown == pytest.approx(law.excess_kurtosis(), abs=0.35)
    assert share == pytest.approx(law.variance() / far.variance(), abs=0.06)
    if kurtosis is not None:
        assert shown == pytest.approx(kurtosis, abs=0.1)


def test_one_network_shows_a_bell_and_another_one_another(visit):
    """The bell appears and vanishes with the switch; each network has its own."""
    _, figure = visit(HISTOGRAM, reduced_motion="reduce")
    begun(figure)
    first = says(figure, OPENING)
    assert numbers(first)[0] > 0.6
    figure.get_by_label("one network", exact=True).check()
    shares, seen = set(), []
    said = says(figure, "^1,024 coordinates of one network, width 1024, H = 1, σ = 2:")
    for _ in range(4):
        kurtosis, limit, share = numbers(said)
        assert abs(kurtosis) < 0.6 and limit == 0.88
        shares.add(share)
        seen.append(share)
        before = figure.locator(NOTE).inner_text()
        button(figure, "Draw again").click()
        figure.page.wait_for_function(
            "([note, before]) => note.innerText !== before &&"
            " note.innerText.startsWith('1,024 coord')"
            " && note.innerText.includes('kurtosis')",
            arg=[figure.locator(NOTE).element_handle(), before],
        )
        said = figure.locator(NOTE).inner_text()
    assert len(shares) == 4 and max(shares) > 1.3 * min(shares)
    # What the networks before had is still said, and forgotten with the switch.
    last = said.split(" Before: ")[1]
    assert [float(each) for each in last.rstrip(".").split(", ")][:3] == seen[:3]
    slide(figure, "heads H", 0.5)
    other = "^1,024 coordinates of one network, width 1024, H = 8, σ = 2: excess"
    assert "Before" not in says(figure, other)
    button(figure, "Reset").click()
    assert says(figure, OPENING) == first


def test_histogram_grows_step_by_step(visit):
    _, figure = visit(HISTOGRAM, reduced_motion="reduce")
    begun(figure)
    says(figure, OPENING)
    canvas, seen = figure.locator(CANVAS), set()
    for count in ("235", "940", "3,760", "15,040", "60,000"):
        button(figure, "Step").click()
        says(figure, f"^{count} networks, ")
        seen.add(canvas.evaluate(INK))
    assert len(seen) == 5
    button(figure, "Step").click()
    says(figure, "^235 networks, ")


def test_histogram_grows_by_itself_to_its_end(visit):
    page, figure = visit(HISTOGRAM)
    begun(figure)
    button(figure, "Pause").click()
    before = figure.locator(CANVAS).evaluate(INK)
    button(figure, "Play").click()
    page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before",
        arg=[figure.locator(CANVAS).element_handle(), before],
    )
    button(figure, "Play").wait_for()  # it ends by itself
    said = says(figure, OPENING)
    # From there it begins anew, with the same weights.
    button(figure, "Play").click()
    button(figure, "Pause").wait_for()
    button(figure, "Play").wait_for()
    assert says(figure, OPENING) == said


def test_sentence_stands_while_the_histogram_grows(visit):
    """It names what is drawn; the numbers that grow stand in the picture."""
    page, figure = visit(HISTOGRAM)
    begun(figure)
    says(figure, OPENING)
    page.evaluate(
        """figure => {
          window.seen = [];
          const note = figure.querySelector(".exhibit-note");
          const look = () => {
            if (figure.classList.contains("exhibit-plays"))
              window.seen.push([note.innerText, getComputedStyle(note).opacity]);
            requestAnimationFrame(look);
          };
          look();
        }""",
        figure.element_handle(),
    )
    button(figure, "Play").click()
    page.wait_for_function("() => window.seen.some(([text]) => /are being/.test(text))")
    button(figure, "Play").wait_for()
    says(figure, OPENING)
    seen = page.evaluate("window.seen")
    assert {opacity for _, opacity in seen} == {"1"}
    drawing = "60,000 networks of width 1024, H = 1, σ = 2 are being drawn."
    assert {text for text, _ in seen if "excess" not in text} == {drawing}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sentence_stands_next_to_the_picture_on_a_phone(visit, scheme):
    _, figure = visit(
        HISTOGRAM, reduced_motion="reduce", color_scheme=scheme,
        viewport={"width": 390, "height": 844},
    )  # fmt: skip
    begun(figure)
    says(figure, OPENING)
    boxes = [figure.locator(each).bounding_box() for each in (STAGE, NOTE)]
    controls = figure.locator(".exhibit-controls").bounding_box()
    assert 0 <= boxes[1]["y"] - boxes[0]["y"] - boxes[0]["height"] < 20
    assert boxes[1]["y"] + boxes[1]["height"] <= controls["y"]
    assert controls["y"] + controls["height"] <= 844


OPAQUE = """canvas => {
  const [w, h] = [canvas.width, canvas.height], scale = w / canvas.clientWidth;
  const pen = canvas.getContext("2d"), left = 42 * scale, right = w - 10 * scale;
  return Array.from({ length: 30 }, (_, k) => pen.getImageData(
    Math.round(left + ((right - left) * (k + 5.5)) / 40), h - 42 * scale, 1, 1,
  ).data[3]).filter((alpha) => alpha > 0).length;
}"""


def test_bars_of_few_outputs_are_hollow(visit):
    """Single outputs far out are no heavy tail."""
    _, figure = visit(HISTOGRAM, reduced_motion="reduce")
    begun(figure)
    says(figure, OPENING)
    assert figure.locator(CANVAS).evaluate(OPAQUE) == 30
    figure.get_by_label("one network", exact=True).check()
    figure.get_by_label("width n", exact=True).press("Home")
    says(figure, "^16 coordinates of one network, width 16")
    assert figure.locator(CANVAS).evaluate(OPAQUE) == 0
    state = dict(opens().state)
    values = {"one": 1.0, "scale": 2.0, "heads": 1.0}
    for width in (16.0, 1024.0):
        y = drawn(state, width=width, **values)
        unit = math.sqrt(AttentionLimit(TOKENS, 1, 2.0, nodes=2**14).variance())
        counts = np.histogram(y / unit, np.linspace(-5, 5, 41))[0]
        picture = draw_histogram(state, width=width, **values)
        form = 'style="fill: (none|#0072b2; fill-opacity: 0.35); stroke: #0072b2'
        bars = re.findall(form, picture.svg)
        assert len(bars) == 40
        assert bars.count("none") == (counts < 5).sum()


def test_histogram_answers_the_keyboard(visit):
    _, figure = visit(HISTOGRAM, reduced_motion="reduce")
    begun(figure)
    says(figure, OPENING)
    figure.get_by_label("heads H", exact=True).press("ArrowRight")
    says(figure, "^60,000 networks, width 1024, H = 2, σ = 2:")
    figure.get_by_label("width n", exact=True).press("Home")
    says(figure, "width 16, H = 2, σ = 2:")
    figure.get_by_label("σ", exact=True).press("Home")
    said = says(figure, "width 16, H = 2, σ = 0:")
    assert numbers(said)[1] == 0


def test_where_the_kernel_of_the_variance_says_no_the_pictures_stand(visit):
    """At a large score scale this kernel refuses; below, all variances are one."""
    body = (
        "export default ({p, score_scale}) => ({ok: score_scale < 7,"
        " variance: new Float64Array(p).fill(1)});"
    )
    answer = {"content_type": "text/javascript", "body": body}
    routes = [("**/attention-variances.mjs", lambda r: r.fulfill(**answer))]
    _, figure = visit(HISTOGRAM, routes=routes, reduced_motion="reduce")
    begun(figure)
    first = says(figure, OPENING)
    assert abs(numbers(first)[0]) < 0.15  # a bell, whatever the limit is
    slide(figure, "σ", 1)
    said = figure.locator(NOTE, has_text="stored ones")
    said.wait_for()
    assert "At σ = 8 and H = 1 these networks cannot" in said.inner_text()
    assert not figure.locator(STAGE).is_visible()
    for picture in figure.locator(".exhibit-frame svg").all():
        assert picture.is_visible()
    slide(figure, "σ", 0.25)
    assert says(figure, OPENING) == first
    assert figure.locator(CANVAS).is_visible()
