"""The live film of Sinkhorn attention: its layers and its heat are those of lib."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import stats
from test_live_exhibits import (
    FILM,
    FIRST,
    INK,
    NOTE,
    STAGE,
    begun,
    button,
    paused,
    says,
    slide,
)
from test_site import SIZES

from lib import exhibits, heat, sinkhorn
from lib.exhibits.film import LAYERS, film_sees, film_tokens, heat_adds
from lib.figures.controls import starts

LAW = heat.GaussianMixture([-2, 2], [1, 1], [0.5, 0.5])
CANVAS = FIRST[FILM]
CLOSE = 1e-12
# A function of the page with the kernels of the site.
CALLED = """async ([site, kernels, cases, state]) => {
  const at = (file) => import(`${site}_static/${file}.mjs`);
  const made = {};
  for (const [role, file] of kernels)
    made[role] = (await at(`kernels/${file}`)).default;
  const call = (name, inputs) => {
    const found = made[name](inputs);
    if (!found.ok) throw new Error(`${name} is not ok`);
    return found;
  };
  const { layer, densities } = await at("film");
  return cases.map(({ x, values, time }) => {
    const given = Float64Array.from(x);
    const { next, seen, frozen } = layer(state, values, call, given, time);
    const density = [...densities(given)];
    return { next: [...next], seen: seen && [...seen], frozen, density };
  });
}"""


@cache
def opens():
    """The exhibit as its page opens it: it is computed where a test asks."""
    return exhibits.film(LAW)


def plain(state):
    return {name: np.ravel(value).tolist() if np.ndim(value) else value
            for name, value in state.items()}  # fmt: skip


def called(page, site, given):
    kernels = [*opens().kernels.items()]
    return page.evaluate(CALLED, [site, kernels, given, plain(opens().state)])


def cases():
    """Tokens at sizes that were never recorded, on the line and in the plane."""
    rng = np.random.default_rng(8)
    for n in (1, 2, 3, 17, 60):
        for plane in (0, 1):
            x = rng.standard_normal((n, 2)) * [2, plane]
            copies = np.repeat(x[: max(1, n // 3)], 3, axis=0)[:n]
            for tokens in (x, copies, np.tile(x[:1], (n, 1))):
                for eps in (0.002, 0.06, 0.7, 4.0):
                    yield tokens, plane, eps, float(rng.uniform(0, 4))


def layer_of_lib(x, plane, eps, time, kind):
    """Tokens after a layer, the neighbors of each, and whether they are frozen."""
    x = x[:, : 1 + plane]
    if kind == LAYERS["exact score"]:
        laws = LAW.heat(time), heat.GaussianMixture([0], [1], [1]).heat(time)
        pairs = zip(laws, x.T, strict=False)
        scores = np.stack([law.score(each) for law, each in pairs], axis=1)
        return x - eps / 2 * scores, None, False
    softmax = kind == LAYERS["softmax"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        now = sinkhorn.self_transport(x, eps, tol=1e300 if softmax else 1e-8)
        if softmax:
            after = heat.softmax_step(x, eps)
        else:
            after = sinkhorn.bridge_step(x, eps, tol=1e-8)
    return after, now.effective_neighbors(), now.frozen


@pytest.mark.parametrize("name", LAYERS)
def test_layer_of_the_page_is_that_of_lib(visit, site, name):
    page, _ = visit(FILM, reduced_motion="reduce")
    kind, asked, verdicts = LAYERS[name], [*cases()], set()
    given = [
        {
            "x": x.ravel().tolist(), "time": time,
            "values": {"eps": eps, "layer": kind, "plane": plane},
        }
        for x, plane, eps, time in asked
    ]  # fmt: skip
    answers = called(page, site, given)
    for (x, plane, eps, time), answer in zip(asked, answers, strict=True):
        after, seen, frozen = layer_of_lib(x, plane, eps, time, kind)
        next_ = np.reshape(answer["next"], (-1, 2))
        size = np.abs(after).max()
        assert np.abs(next_[:, : 1 + plane] - after).max() <= CLOSE * size
        assert plane or not next_[:, 1].any()
        assert answer["frozen"] is frozen
        verdicts.add(frozen)
        if seen is not None:
            assert np.abs(answer["seen"] - seen).max() <= CLOSE * len(x)
    assert verdicts == ({False} if name == "exact score" else {True, False})


def test_dots_are_the_densities_of_lib(visit, site):
    page, _ = visit(FILM, reduced_motion="reduce")
    asked = [each for each in cases() if len({*each[0][:, 0]}) == len(each[0]) > 1]
    values = {"eps": 1.0, "layer": LAYERS["exact score"], "plane": 0}
    given = [{"x": x.ravel().tolist(), "time": 0, "values": values} for x, *_ in asked]
    answers = called(page, site, given)
    for (x, *_), answer in zip(asked, answers, strict=True):
        wanted = heat.node_density(x[:, :1], np.full(len(x), 1 / len(x)))
        assert np.abs(answer["density"] / wanted - 1).max() < 1e-11


def choose(figure, **changes):
    """Move the controls, each by its name; the values that they have then."""
    values = starts(opens().controls)
    for name, value in changes.items():
        control = opens().controls[name]
        values[name] = value
        if name in ("eps", "time"):
            slide(figure, control.label, control.place(value))
            continue
        label = next(k for k, v in control.options.items() if v == value)
        figure.get_by_role("radio", name=label, exact=True).check()
    return values


@pytest.mark.parametrize("tokens", [25, 50, 100, 200])
def test_heat_adds_to_tokens_what_their_quantiles_gain(tokens):
    """Less than to the law: quantiles leave out what is beyond the last ones."""
    state, levels = opens().state, (np.arange(tokens) + 0.5) / tokens
    for time in (0.0, 0.4, 1.0, 2.3, 4.0):
        gained = LAW.heat(time).ppf(levels).var() - LAW.ppf(levels).var()
        assert heat_adds(state, time, tokens, 0.0) == pytest.approx(gained, abs=2e-3)
        heights = stats.norm.ppf(levels).var() * time
        both = (gained + heights) / 2
        assert heat_adds(state, time, tokens, 1.0) == pytest.approx(both, abs=2e-3)
        assert gained <= time


def numbers(said):
    """Time, layer, tokens, and how much their variance has grown and that of heat."""
    match = re.match(
        r"Time ([\d.]+), (?:between )?layers? (\d+)(?: and \d+)?: (\d+) tokens? .*"
        r" grown by ([\u2212\d.]+); the heat itself would add ([\d.]+)"
        r"(?: \([\u2212\d]+ %\))?\.", said,
    )  # fmt: skip
    return [float(each.replace("\u2212", "-")) for each in match.groups()]


DONE = r"^Time .*the heat itself would add [\d.]+( \([\u2212\d]+ %\))?\."
MOVES = [
    {}, {"time": 1.0}, {"time": 4.0}, {"eps": 0.002, "time": 0.5},
    {"eps": 4.0, "time": 1.0},
    {"eps": 4.0, "time": 4.0}, {"tokens": 25.0, "eps": 0.004, "time": 1.0},
    {"tokens": 200.0, "time": 1.0}, {"plane": 1.0, "time": 1.0},
    {"plane": 1.0, "tokens": 200.0, "eps": 0.2, "time": 1.0},
    {"plane": 1.0, "tokens": 25.0, "eps": 4.0},
]  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_page_says_what_lib_computes(visit, layer):
    _, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    for change in MOVES:
        button(figure, "Reset").click()
        chosen = choose(figure, layer=LAYERS[layer], **change)
        state, values = opens().state, {k: float(v) for k, v in chosen.items()}
        place = f"{values['tokens']:.0f} tokens {'in' if values['plane'] else 'on'} the"
        # How many tokens one sees follows as soon as the page has counted them.
        sees = film_sees(state, **values).strip()
        said = says(
            figure,
            f"^Time {values['time']:.2f}, (between )?layers? .*: {place} .*, {layer}, "
            f"ε = {values['eps']:.2g}[0-9]*\\. Their variance has grown"
            f".*\\.{re.escape(sees and ' ' + sees)}$",
        )
        x = film_tokens(state, **values)
        start = film_tokens(state, **values | {"time": 0.0})
        grown = x.var(axis=0).mean() - start.var(axis=0).mean()
        shown = numbers(said)
        assert shown[:2] == [values["time"], int(values["time"] / values["eps"] + 1e-9)]
        heated = heat_adds(state, values["time"], values["tokens"], values["plane"])
        assert abs(shown[3] - grown) <= 0.00501 and abs(shown[4] - heated) <= 0.00501
        between = values["time"] / values["eps"] % 1
        assert ("between layers" in said) is (1e-9 < between < 1 - 1e-9)
        share = re.search(r"\(([\u2212\d]+) %\)", said)
        assert (share is None) is (values["time"] == 0)
        if share:
            percent = float(share.group(1).replace("\u2212", "-"))
            assert abs(percent - 100 * grown / heated) <= 0.50001


@pytest.mark.parametrize("size", SIZES)
def test_film_and_its_controls_fit_a_first_screen(visit, size):
    width, height = SIZES[size]
    touch = {"has_touch": True, "is_mobile": True} if width < 600 else {}
    _, figure = visit(FILM, viewport={"width": width, "height": height}, **touch)
    begun(figure)
    for part in (CANVAS, ".exhibit-controls"):
        box = figure.locator(part).bounding_box()
        assert box["y"] + box["height"] <= height


def moves_on(figure, before):
    figure.page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before",
        arg=[figure.locator(CANVAS).element_handle(), before],
    )


# What a button says from now on: two looks may miss a tenth of a second of play.
TOGGLED = """(button) => {
  const said = [];
  new MutationObserver(() => said.push(button.textContent))
    .observe(button, { childList: true, characterData: true, subtree: true });
  return said;
}"""


def test_film_plays_to_its_end_and_from_its_beginning(visit):
    _, figure = visit(FILM)
    begun(figure)
    assert button(figure, "Pause").is_visible()
    time = figure.get_by_label("time", exact=True)
    figure.page.wait_for_function(
        "(input) => Number(input.value) > 0", arg=time.element_handle()
    )
    button(figure, "Pause").click()
    slide(figure, "time", 0.99)
    says(figure, "^Time 3.96, ")
    toggle = button(figure, "Play")
    toggled = figure.page.evaluate_handle(TOGGLED, toggle.element_handle())
    toggle.click()
    figure.page.wait_for_function("(said) => said.length >= 2", arg=toggled)
    assert toggled.json_value()[:2] == ["Pause", "Play"]  # it ends by itself
    said = says(figure, "^Time 4.00, between layers 66 and 67")
    assert time.input_value() == "1"
    # From there it begins anew, and comes to the same end.
    button(figure, "Play").click()
    button(figure, "Pause").wait_for()
    figure.page.wait_for_function(
        "(input) => Number(input.value) > 0 && Number(input.value) < 0.5",
        arg=time.element_handle(),
    )
    slide(figure, "time", 1)
    button(figure, "Play").wait_for()  # who moves the time takes it over
    assert says(figure, "^Time 4.00") == said
    button(figure, "Reset").click()
    button(figure, "Pause").wait_for()


def test_film_stands_at_its_beginning_before_it_plays(visit):
    """A clock that the test turns: at rest first, then the time goes on."""
    page, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    page.clock.install(time=0)
    page.clock.pause_at(10)
    button(figure, "Play").click()
    time = figure.get_by_label("time", exact=True)
    for _ in range(20):
        page.clock.run_for(50)
    assert time.input_value() == "0"
    for _ in range(60):
        page.clock.run_for(50)
    assert 0 < float(time.input_value()) < 1
    # What is said is to be read while it moves.
    shown = "e => getComputedStyle(e, '::after').content"
    assert re.search(r"Time \d\.\d\d, ", figure.locator(NOTE).evaluate(shown))


def test_film_that_opens_at_its_end_stands_there(visit):
    page, _ = visit(FILM, whole=True)
    last = begun(page.locator(".book-exhibit").last)
    last.scroll_into_view_if_needed()
    said = says(last, "^Time 4.00, layer 16: 50 tokens in the plane")
    assert button(last, "Play").is_visible()
    assert numbers(said)[3] / numbers(said)[4] == pytest.approx(0.7, abs=0.02)


@pytest.mark.filterwarnings("ignore::lib.sinkhorn.FrozenFlowWarning")
def test_answer_to_the_last_film():
    def share(eps, plane):
        values = starts(opens().controls) | {"eps": eps, "plane": plane, "time": 4.0}
        x, start = (
            film_tokens(opens().state, **values | {"time": t}) for t in (4.0, 0.0)
        )
        grown = (x.var(axis=0) - start.var(axis=0)).mean()
        return grown / heat_adds(opens().state, 4.0, len(x), plane)

    sizes = np.geomspace(0.01, 4, 40)
    plane = np.array([share(eps, 1.0) for eps in sizes])
    assert abs(np.log(sizes[plane.argmax()])) < 0.3 and abs(plane.max() - 0.93) < 0.01
    line = np.array([share(eps, 0.0) for eps in np.geomspace(0.04, 1.4, 15)])
    assert np.abs(line - 1).max() < 0.03
    for eps in (0.01, 2.2):
        assert share(eps, 0.0) < 0.93


def test_layers_pass_one_by_one(visit):
    _, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    for eps, steps in (
        (0.5, [(0.5, 1), (1.0, 2), (1.5, 3)]), (0.01, [(0.01, 1), (0.02, 2)]),
        (4.0, [(4.0, 1), (0.0, 0), (4.0, 1)]),
    ):  # fmt: skip
        choose(figure, eps=eps, time=0.0)
        says(figure, f"^Time 0.00, .*ε = {eps:g}")
        for time, layer in steps:
            button(figure, "Step").click()
            between = f"between layers {layer} and {layer + 1}"
            done = f"layer {layer}" if round(time / eps, 9) % 1 == 0 else between
            says(figure, f"^Time {time:.2f}, {done}:")


def spot(figure, k, n, **changes):
    """Where token k of the line lies in the window, and a unit of the line."""
    box = figure.locator(CANVAS).bounding_box()
    values = starts(opens().controls) | {"tokens": float(n), **changes}
    x = film_tokens(opens().state, **values)[k, 0]
    half = (box["width"] - 44) / 2
    across = box["x"] + 34 + half * (1 + x / opens().state["reach"])
    return across, box["y"] + box["height"] - 36, half / opens().state["reach"]


HELD = f"(figure) => figure.querySelector('{CANVAS}').dataset.held ?? null"


def test_dragged_token_stays_where_it_is_put(visit):
    page, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    choose(figure, tokens=25.0, time=0.96)
    first = says(figure, "^Time 0.96, layer 16: 25 tokens")
    x, y, unit = spot(figure, 24, 25, time=0.96)
    page.mouse.move(x, y)
    page.mouse.down()
    assert figure.evaluate(HELD) == "24"
    page.mouse.move(x + unit, y)
    page.mouse.up()
    assert figure.evaluate(HELD) is None
    # The film stands at a layer that is done, and what a hand moves is no growth.
    said = says(figure, "^Time 0.96, layer 16")
    assert numbers(said) == numbers(first)
    # A pointer that is not down moves nothing.
    after = figure.locator(CANVAS).evaluate(INK)
    page.mouse.move(x - 3 * unit, y)
    assert figure.locator(CANVAS).evaluate(INK) == after
    # Before it nothing has changed; ε computes all anew, with the token where it was.
    choose(figure, time=0.48)
    before = numbers(says(figure, "^Time 0.48"))[3]
    choose(figure, time=0.96)
    assert says(figure, "^Time 0.96") == said
    choose(figure, eps=0.12, time=0.48)
    assert abs(numbers(says(figure, "^Time 0.48.*ε = 0.12"))[3] - before) < 0.1
    choose(figure, eps=0.12, time=0.96)
    again = numbers(says(figure, "^Time 0.96, layer 8: .*ε = 0.12"))
    assert abs(again[3] - numbers(said)[3]) < 0.1
    page.mouse.move(x + unit, y)
    page.mouse.down()
    assert figure.evaluate(HELD) == "24"
    page.mouse.up()
    button(figure, "Reset").click()
    choose(figure, tokens=25.0, time=0.96)
    assert says(figure, "^Time 0.96, layer 16: 25 tokens") == first


def test_tokens_dragged_together_stay_together(visit):
    """Copies of a token are one place: the others see it, and nothing is refused."""
    page, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    choose(figure, tokens=25.0, time=0.0)
    says(figure, "^Time 0.00, .*25 tokens")
    # All to the right end, where the axis stops them.
    for k in range(24):
        page.mouse.move(*spot(figure, k, 25, time=0.0)[:2])
        page.mouse.down()
        assert figure.evaluate(HELD) == str(k)
        x, y, unit = spot(figure, 24, 25, time=0.0)
        page.mouse.move(x + 20 * unit, y)
        page.mouse.up()
    canvas = figure.locator(CANVAS)
    canvas.focus()
    canvas.press(".")
    for _ in range(12):
        canvas.press("Shift+ArrowRight")
    said = says(figure, "^Time 0.00.* A token attends to 25.0 tokens")
    assert numbers(said)[3] == 0  # no layer has moved them
    for kind in LAYERS.values():
        figure.get_by_role("radio", name=[*LAYERS][int(kind)], exact=True).check()
        for eps in (0.002, 0.06, 4.0):
            choose(figure, eps=eps, time=0.5)
            said = says(figure, f"^Time 0.50.*{[*LAYERS][int(kind)]}.*ε = {eps:g}")
            assert figure.locator(STAGE).is_visible() and "stored" not in said


def test_film_answers_the_keyboard(visit):
    _, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    first = says(figure, DONE)
    canvas = figure.locator(CANVAS)
    choose(figure, time=1.0)
    canvas.focus()
    assert "arrow keys" in canvas.get_attribute("aria-label")
    pictures = [canvas.evaluate(INK)]
    for key in (".", ",", "ArrowLeft", "Shift+ArrowRight", "Escape"):
        canvas.press(key)
        moves_on(figure, pictures[-1])
        pictures.append(canvas.evaluate(INK))
    assert says(figure, "^Time 0.96, layer 16") != first
    canvas.press(" ")
    button(figure, "Pause").wait_for()
    assert canvas.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    slider = figure.get_by_label("ε", exact=True)
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext") == "0.002"
    slider.press("ArrowRight")
    assert 0.002 <= float(slider.get_attribute("aria-valuetext")) < 0.0025
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "4"  # one layer, the whole film


def test_token_in_the_plane_is_dragged_both_ways(visit):
    page, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    choose(figure, plane=1.0, eps=1.0)
    says(figure, "^Time 0.00, .*in the plane")
    box = figure.locator(CANVAS).bounding_box()
    unit = box["width"] - 2
    unit /= 2 * opens().state["reach"]
    x, y = opens().state["places"][25]  # the first of 50
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle[0] + unit * x, middle[1] - unit * y)
    page.mouse.down()
    assert figure.evaluate(HELD) == "0"
    page.mouse.move(middle[0] + unit * x, middle[1] - unit * (y + 2))
    page.mouse.up()
    said = says(figure, "grown by 0.00; the heat itself would add 0.00")
    assert numbers(said)[:3] == [0, 0, 50]
    for up, held in ((0, None), (2, "0")):
        page.mouse.move(middle[0] + unit * x, middle[1] - unit * (y + up))
        page.mouse.down()
        assert figure.evaluate(HELD) == held
        page.mouse.up()


def test_frozen_tokens_are_said_to_be_frozen(visit):
    _, figure = visit(FILM, reduced_motion="reduce")
    begun(figure)
    choose(figure, tokens=25.0, time=1.0)
    assert "hardly see each other" not in says(figure, "25 tokens .* attends to ")
    choose(figure, eps=0.004)
    said = says(figure, "ε = 0.004.* tokens hardly see each other")
    assert numbers(said)[3] < 0.05 < numbers(said)[4]


@pytest.mark.parametrize("kernel", ["sinkhorn-layer", "sinkhorn-update"])
def test_where_a_kernel_of_the_film_says_no_the_pictures_stand(visit, kernel):
    """Beyond a number of tokens this kernel refuses."""
    body = (
        "export default ({n, x}) => ({ok: n < 100, error: 0, frozen: false,"
        " next: (x ?? new Float64Array(n)).slice(), seen: new Float64Array(n).fill(2),"
        " received: new Float64Array(n).fill(1)});"
    )
    answer = {"content_type": "text/javascript", "body": body}
    routes = [(f"**/{kernel}.mjs", lambda r: r.fulfill(**answer))]
    _, figure = visit(FILM, routes=routes, reduced_motion="reduce")
    begun(figure)
    says(figure, DONE)
    choose(figure, tokens=200.0)
    said = figure.locator(NOTE, has_text="stored ones")
    said.wait_for()
    assert "At ε = 0.06 a layer on these tokens cannot" in said.inner_text()
    assert not figure.locator(STAGE).is_visible()
    for picture in figure.locator(".exhibit-frame svg").all():
        assert picture.is_visible()
    choose(figure, tokens=25.0)
    says(figure, DONE)
    assert figure.locator(CANVAS).is_visible()


def test_scalings_that_do_not_converge_are_refused(visit):
    body = (
        "export default ({n, u}) => ({ok: true, error: 1, next: u,"
        " received: new Float64Array(n).fill(1)});"
    )
    answer = {"content_type": "text/javascript", "body": body}
    routes = [("**/sinkhorn-update.mjs", lambda r: r.fulfill(**answer))]
    _, figure = visit(FILM, routes=routes, reduced_motion="reduce")
    figure.locator(NOTE, has_text="the scalings of these tokens do not").wait_for()
    choose(figure, layer=LAYERS["softmax"])
    says(figure, DONE)


def test_film_that_plays_is_paused_by_nothing_but_its_reader(visit):
    """ε moves while it plays, and the film goes on from the same time."""
    page, figure = visit(FILM)
    begun(figure)
    button(figure, "Pause").wait_for()
    for eps in (0.02, 1.0):
        choose(figure, eps=eps)
        moves_on(figure, figure.locator(CANVAS).evaluate(INK))
        assert button(figure, "Pause").is_visible()
    paused(figure)
    assert numbers(says(figure, "ε = 1"))[0] > 0


ALPHA = """([canvas, spots]) => spots.map(([x, y]) =>
  [...canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data])"""


@pytest.mark.parametrize("time", [0.0, 1.0, 4.0])
def test_heat_on_the_page_is_the_law_at_that_time(visit, time):
    """Frozen tokens lie elsewhere: what is seen there is the heat alone."""
    _, figure = visit(FILM, reduced_motion="reduce", color_scheme="light")
    begun(figure)
    values = choose(figure, tokens=25.0, eps=0.002, time=time)
    says(figure, f"^Time {time:.2f}, .*25 tokens on the line")
    canvas = figure.locator(CANVAS)
    box, reach = canvas.bounding_box(), opens().state["reach"]
    law, x = LAW.heat(time), np.array([-4.3, 4.3])  # beyond the tokens
    across = 34 + (box["width"] - 44) / 2 * (1 + x / reach)
    foot, head = box["height"] - 50, 22
    for place, p in zip(across, law.pdf(x), strict=True):
        column = [(place, y) for y in range(head, int(foot) - 3)]
        given = [canvas.element_handle(), column]
        pixels = np.array(figure.page.evaluate(ALPHA, given))
        red, _, blue, alpha = pixels.T
        ink = head + np.flatnonzero((alpha > 150) & (blue < 90) & (red < 90))
        row = foot - (foot - head) * p / opens().state["top"]
        assert len(ink) and abs(np.median(ink) - row) <= 4  # a line has a width
    choose(figure, tokens=25.0, eps=0.002, time=time, plane=1.0)
    says(figure, f"^Time {time:.2f}, .*25 tokens in the plane")
    unit = box["width"] - 2
    unit /= 2 * reach
    tokens = film_tokens(opens().state, **values | {"plane": 1.0})
    up = heat.GaussianMixture([0], [1], [1]).heat(time)
    most = law.pdf(np.linspace(-4, 4, 2001)).max() * up.pdf(0)
    levels, spots = np.array([0.0, 0.02, 0.1, 0.25, 0.5, 0.75]), {}
    for x, y in np.random.default_rng(4).uniform([-7, -5], [7, 5], (400, 2)):
        share = law.pdf(x) * up.pdf(y) / most
        clear = np.abs(share / np.maximum(levels, 1e-9) - 1).min() > 0.15
        if clear and np.linalg.norm(tokens - [x, y], axis=1).min() * unit > 9:
            place = box["width"] / 2 + unit * x, box["height"] / 2 - unit * y
            spots[place] = levels[np.searchsorted(levels, share) - 1]
    assert len({*spots.values()}) >= 5
    given = [canvas.element_handle(), [*spots]]
    for pixel, level in zip(
        figure.page.evaluate(ALPHA, given), spots.values(), strict=True
    ):
        assert abs(pixel[3] - 255 * (level > 0) * (0.14 + 0.5 * level)) <= 2
