"""Live exhibits in a browser: what moves, what is said, what stands when it cannot."""

import gzip
import json
import math
import re
from functools import cache

import numpy as np
import pytest
from test_narrow import CHAPTERS
from test_site import SITE, SIZES, opened, soup_of
from waits import frames, until

from lib import attention
from lib.exhibits.training import between

GLOBES = ("chapters/index.html", "chapters/4-mean-field-sphere.html")
# What both pages have alike is tried on that which has no formulas to be set.
GLOBE, WEIGHTS = GLOBES[0], "chapters/1-softmax-expansion.html"
NETWORKS = "chapters/2-proportional-limits.html"
FILM = "chapters/3-sinkhorn-to-heat-flow.html"
MODELS = "chapters/8-which-limit.html"
HISTOGRAM = "chapters/5-non-gaussian-attention.html"
TRAINING = "chapters/7-after-training.html"
# The first thing to be seen of each.
FIRST = {each: ".exhibit-globe" for each in GLOBES}
FIRST |= {WEIGHTS: ".exhibit-garments", NETWORKS: ".exhibit-pile"}
FIRST |= {FILM: ".exhibit-film", HISTOGRAM: ".exhibit-histogram"}
FIRST[TRAINING] = ".exhibit-cloud"
PAGES = (*FIRST,)
NOTE, STAGE = ".exhibit-note", ".exhibit-stage"
TIME = """(figure) => Number(/^Time ([^,]+),/.exec(
  figure.querySelector('.exhibit-note').textContent)?.[1])"""
# A picture of a canvas that two equal drawings share.
INK = "(canvas) => canvas.toDataURL()"


def begun(figure):
    """The exhibit once its script runs."""
    figure.locator(STAGE + " *").first.wait_for(state="attached")
    return figure


def button(figure, name):
    return figure.get_by_role("button", name=name, exact=True)


def paused(figure):
    begun(figure)
    if button(figure, "Pause").count():
        button(figure, "Pause").click()
    button(figure, "Play").wait_for()
    return figure


def says(figure, pattern):
    """Wait until the sentence below the stage has a pattern; the sentence."""
    sentence = figure.locator(NOTE, has_text=re.compile(pattern))
    sentence.wait_for()
    text = sentence.inner_text()
    assert not re.search("NaN|undefined|Infinity|null", text)
    return text


def passed(figure, time):
    """Wait until the clock of a globe has passed a time."""
    figure.page.wait_for_function(
        f"([figure, time]) => ({TIME})(figure) > time",
        arg=[figure.element_handle(), time],
    )


def slide(figure, label, place):
    """Move a slider to a place between its ends, as the pointer does."""
    figure.get_by_label(label, exact=True).evaluate(
        """(input, place) => { input.value = place;
        input.dispatchEvent(new Event('input', {bubbles: true})); }""",
        place,
    )


def center(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"]


def splitmix(seed):
    """SplitMix64, as Steele, Lea and Flood print it."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield z ^ (z >> 31)


def test_draws_are_those_of_the_published_generator(visit, site):
    page, _ = visit(WEIGHTS)
    bits, uniform, normal = page.evaluate(
        """async (site) => {
          const { generator } = await import(site + '_static/random.mjs');
          const make = (of) => { const g = generator(1234567);
            return Array.from({length: 2000}, () => of(g)); };
          return [make((g) => String(g.bits())).slice(0, 5),
            make((g) => g.uniform()), make((g) => g.normal())];
        }""",
        site,
    )
    # The values that implementations of this generator are checked against.
    assert bits == [
        "6457827717110365317", "3203168211198807973", "9817491932198370423",
        "4593380528125082431", "16408922859458223821",
    ]  # fmt: skip
    source = splitmix(1234567)
    expected = [(next(source) >> 11) / 2**53 for _ in range(2000)]
    assert uniform == expected
    pairs = [
        math.sqrt(-2 * math.log(1 - u)) * turn(2 * math.pi * v)
        for u, v in zip(expected[::2], expected[1::2], strict=True)
        for turn in (math.cos, math.sin)
    ]
    assert np.allclose(normal, pairs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", GLOBES)
def test_globe_moves_by_itself_and_says_so(visit, name):
    _, figure = visit(name)
    begun(figure)
    assert button(figure, "Pause").is_visible()
    first = figure.evaluate(TIME)
    globe = figure.locator(".exhibit-globe")
    before = globe.evaluate(INK)
    passed(figure, first + 0.5)
    assert globe.evaluate(INK) != before
    assert figure.locator(NOTE).get_attribute("role") == "status"
    assert "clusters; energy" in says(figure, "^Time")


def test_one_that_rests_waits_for_its_reversal_and_comes_back(visit):
    page, _ = visit(GLOBES[1], whole=True)
    figure = page.locator(".book-exhibit[data-exhibit=globe]").last
    figure.scroll_into_view_if_needed()
    begun(figure)
    assert button(figure, "Play").is_visible()
    assert "4 clusters" in says(figure, "^Time 12, β = 9, V = .I")
    figure.get_by_label("−I repels", exact=True).check()
    button(figure, "Pause").wait_for()
    # There and back: it stops at its start, and goes on if it is told to.
    assert int(re.search(r"(\d+) clusters", says(figure, "The start is back"))[1]) > 30
    button(figure, "Play").click()
    passed(figure, 13)
    assert "back" not in paused(figure).locator(NOTE).inner_text()
    # Back to its rest: nothing plays until the reader asks.
    button(figure, "Reset").click()
    assert button(figure, "Play").is_visible()
    says(figure, "^Time 12, β = 9, V = .I: 64 tokens, 4 clusters")


def test_tokens_that_cannot_part_begin_where_the_picture_opened(visit):
    _, figure = visit(GLOBE)
    begun(figure)
    passed(figure, 30)  # when those of a cluster are equal to nearly the last digit
    few = float(re.search(r"([\d.]+) cluster", says(figure, "^Time"))[1])
    figure.get_by_label("−I repels", exact=True).check()
    says(figure, "Tokens in one place cannot part")
    passed(figure, 12)
    now = float(re.search(r"([\d.]+) cluster", says(paused(figure), "^Time"))[1])
    assert now > 2 * few
    # Those that can part go on from where they are.
    figure.get_by_label("+I attracts", exact=True).check()
    figure.get_by_label("−I repels", exact=True).check()
    assert "cannot part" not in says(figure, "^Time 0.1, .*V = −I")


def test_what_moves_is_said_at_a_bounded_rate(visit):
    """A clock that the test turns: sentences are seconds apart while it moves."""
    page, figure = visit(GLOBE, reduced_motion="reduce")
    begun(figure)
    page.clock.install()
    page.evaluate(
        """() => { window.said = [];
        new MutationObserver(() => window.said.push(performance.now())).observe(
          document.querySelector('.exhibit-note span'), {childList: true}); }"""
    )
    button(figure, "Play").click()
    for _ in range(200):
        page.clock.run_for(50)
    said = page.evaluate("window.said")
    # Real time passes as well: sentences are counted by what lies between them.
    assert len(said) >= 2 and np.diff(said).min() >= 2900


DRAWN = ".exhibit-stage :is(canvas, .exhibit-garments), .book-figure svg, .limits-map"
# Where things are that are shown, and which part of each is on the first screen. One
# question: asked of each element by itself, a long page that moves takes seconds.
PLACES = """(kinds) => kinds.map((kind) => [...document.querySelectorAll(kind)]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }))
  .map((e) => e.getBoundingClientRect()).filter((box) => box.width && box.height)
  .map(({ top, bottom, height }) => [top,
    (Math.min(bottom, innerHeight) - Math.max(top, 0)) / height]))"""


@pytest.fixture(scope="module")
def first_screen(site, browser):
    """Places on a page as it opens; it is opened once for the tests that ask."""

    @cache
    def look(name, size):
        width, height = SIZES[size]
        seen = []
        options = {"viewport": {"width": width, "height": height}}
        with browser.new_context(**options) as context:
            page = opened(context, site + name, seen)
            page.wait_for_function(
                "() => !document.querySelector('.book-exhibit:not(.exhibit-moves)')"
            )
            frames(page, 4)
            first = f".book-exhibit {FIRST.get(name, STAGE)}"
            kinds = [first, f"article :is({DRAWN})", "article pre"]
            return page.evaluate(PLACES, kinds), seen

    return look


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", SIZES)
def test_first_screen_shows_the_exhibit(first_screen, name, size):
    """No open code above it, and the larger part of what moves in sight."""
    ([(top, inside), *_], _, code), complaints = first_screen(name, size)
    assert inside > 0.75
    assert all(place > top for place, _ in code)
    assert complaints == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CHAPTERS)
def test_first_screen_shows_a_picture_and_no_code(first_screen, name, size):
    (_, [(top, inside), *_], code), _ = first_screen(name, size)
    assert inside >= 2 / 3
    assert all(place > top for place, _ in code)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("label", ["β", "tokens"])
@pytest.mark.parametrize("sign", ["+I attracts", "−I repels"])
def test_globe_at_the_ends_of_its_sliders(visit, label, place, sign):
    _, figure = visit(GLOBE)
    begun(figure)
    figure.get_by_label(sign).check()
    slide(figure, label, place)
    value = {"β": ("0,", "100,"), "tokens": ("1 token,", "256 tokens,")}[label][place]
    said = says(figure, value)
    assert figure.locator(STAGE).is_visible() and "stored" not in said
    # It goes on: nothing is refused and nothing stands still on the way.
    after = figure.evaluate(TIME)
    passed(figure, after)
    if (label, place) == ("tokens", 0):
        assert "it stays where it is" in says(figure, "1 token")
    if (label, place) == ("β", 0):
        assert "energy constant" in says(figure, "β = 0,")


HELD = "(figure) => figure.querySelector('.exhibit-globe').dataset.held ?? null"


# Where a globe is colored, as tokens in front alone are, some pixels apart, nearest to
# its middle first. A mouse that tries places on a grid redraws it hundreds of times.
IN_FRONT = """(globe) => {
  const { width, height } = globe, { x, y } = globe.getBoundingClientRect();
  const { data } = globe.getContext('2d').getImageData(0, 0, width, height);
  const found = [];
  for (let k = 0; k < width * height; k++) {
    const [red, green, blue] = data.subarray(4 * k, 4 * k + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 90)
      found.push([k % width, Math.floor(k / width)]);
  }
  const far = ([a, b]) => Math.hypot(a - width / 2, b - height / 2);
  const apart = [];
  for (const [a, b] of found.sort((p, q) => far(p) - far(q)))
    if (apart.every(([c, d]) => Math.hypot(a - c, b - d) > 8)) apart.push([a, b]);
  return apart.map(([a, b]) =>
    [x + a / devicePixelRatio, y + b / devicePixelRatio]);
}"""


def grasp(figure):
    """Take hold of a token with the mouse, which stays down; which one."""
    mouse = figure.page.mouse
    for place in figure.locator(".exhibit-globe").evaluate(IN_FRONT):
        mouse.move(*place)
        mouse.down()
        held = figure.evaluate(HELD)
        if held is not None:
            return held
        mouse.up()
    raise AssertionError("no token was found")


def test_dragged_token_moves_and_the_clock_begins_anew(visit):
    page, figure = visit(GLOBE)
    paused(figure)
    globe = figure.locator(".exhibit-globe")
    before = globe.evaluate(INK)
    assert figure.evaluate(TIME) > 4
    grasp(figure)
    says(figure, "^Time 0.1,")
    x, y, width = center(globe)
    for to in (
        (0, 0),
        (0.3, 0.1),
        (0, -0.43),
        (2, 2),
        (0, 0),
    ):  # beyond the rim as well
        page.mouse.move(x + width * to[0], y + width * to[1])
    page.mouse.up()
    assert figure.evaluate(HELD) is None and globe.evaluate(INK) != before
    # A pointer that is not down moves nothing.
    after = globe.evaluate(INK)
    page.mouse.move(x + width * 0.2, y)
    assert globe.evaluate(INK) == after
    button(figure, "Play").click()
    passed(figure, 0.2)


def test_tokens_dragged_onto_one_another_and_a_pole_stay_tokens(visit):
    """Two tokens in one point, which is then turned onto the pole of the globe."""
    page, figure = visit(GLOBE)
    begun(figure)
    slide(figure, "tokens", math.log(2) / math.log(256))
    says(figure, "2 tokens")
    paused(figure)
    globe = figure.locator(".exhibit-globe")
    globe.focus()
    # Up and up along the globe, past its pole; both take the same way from the front.
    for _ in range(2):
        globe.press(".")
        for key, times in (("Shift+ArrowDown", 40), ("Shift+ArrowUp", 60)):
            for _ in range(times):
                globe.press(key)
    said = says(figure, "2 tokens")
    assert re.search(r"[12] clusters?;", said)
    for _ in range(3):
        button(figure, "Step").click()
    says(figure, "2 tokens")
    # Reset and a drag of one token onto another by the mouse.
    button(figure, "Reset").click()
    paused(figure)
    grasp(figure)
    x, y, width = center(globe)
    for k in range(24):
        page.mouse.move(x + width * 0.4 * np.cos(k), y + width * 0.4 * np.sin(k))
    page.mouse.up()
    button(figure, "Step").click()
    says(figure, "96 tokens")


@pytest.mark.parametrize("event", ["pointercancel", "lostpointercapture"])
def test_lost_pointer_lets_go(visit, event):
    page, figure = visit(GLOBE)
    paused(figure)
    grasp(figure)
    globe = figure.locator(".exhibit-globe")
    globe.dispatch_event(event, {"pointerId": 1, "isPrimary": True})
    assert figure.evaluate(HELD) is None
    before = globe.evaluate(INK)
    x, y, width = center(globe)
    page.mouse.move(x + 0.3 * width, y)
    frames(page, 1)
    assert globe.evaluate(INK) == before
    page.mouse.up()


def test_globe_answers_the_keyboard(visit):
    _, figure = visit(GLOBE)
    paused(figure)
    globe = figure.locator(".exhibit-globe")
    globe.focus()
    assert "Arrow keys" in globe.get_attribute("aria-label")
    pictures = [globe.evaluate(INK)]

    def pressed(key):
        globe.press(key)
        figure.page.wait_for_function(
            "([canvas, old]) => canvas.toDataURL() !== old",
            arg=[globe.element_handle(), pictures[-1]],
        )
        pictures.append(globe.evaluate(INK))

    for key in ("ArrowLeft", "ArrowUp", ".", ",", "Shift+ArrowLeft"):
        pressed(key)
    says(figure, "^Time 0.1,")
    pressed("Escape")
    globe.press(" ")
    button(figure, "Pause").wait_for()
    style = globe.evaluate("e => getComputedStyle(e).outlineStyle")
    assert style != "none"
    slider = figure.get_by_label("β", exact=True)
    value = slider.get_attribute("aria-valuetext")
    slider.press("ArrowRight")
    assert float(slider.get_attribute("aria-valuetext")) > float(value)
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext") == "0"


# A page that can be hidden.
HIDDEN = """
let hidden = false;
Object.defineProperty(document, 'hidden', {get: () => hidden});
window.hide = (value) => { hidden = value;
  document.dispatchEvent(new Event('visibilitychange')); };
"""
# Frames that were asked for.
COUNTED = f"""{HIDDEN}
window.frames_asked = 0;
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (f) => {{ window.frames_asked += 1; return ask(f); }};
"""
# Frames that come when the test says so, and a clock that moves when it is read.
BY_HAND = f"""{HIDDEN}
let clock = 0;
window.waiting = [];
performance.now = () => (clock += 0.01);
window.requestAnimationFrame = (f) => window.waiting.push(f);
window.turn = (milliseconds) => {{ clock += milliseconds;
  window.waiting.splice(0).forEach((f) => f(performance.now())); }};
"""


def still(page):
    """No frame is asked for while more pass than a pause of the exhibit is long."""
    for _ in range(50):
        rest = page.evaluate(
            """() => new Promise((done) => { const before = window.frames_asked;
            setTimeout(() => done(window.frames_asked === before), 900); })"""
        )
        if rest:
            return
    raise AssertionError("frames are asked for without an end")


def test_nothing_is_drawn_out_of_sight_or_in_a_hidden_tab(visit):
    page, figure = visit(GLOBE, whole=True, init=COUNTED)
    begun(figure)
    moving = "(figure) => window.frames_asked > 3"
    page.wait_for_function(moving, arg=figure.element_handle())
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    still(page)
    page.evaluate("window.scrollTo(0, 0); window.frames_asked = 0")
    page.wait_for_function(moving, arg=figure.element_handle())
    page.evaluate("window.hide(true)")
    still(page)
    page.evaluate("window.frames_asked = 0; window.hide(false)")
    page.wait_for_function(moving, arg=figure.element_handle())


def test_an_hour_in_a_hidden_tab_is_not_made_up_for(visit):
    page, figure = visit(GLOBE, init=BY_HAND, reduced_motion="reduce")
    begun(figure)
    element = figure.element_handle()

    def played(milliseconds):
        """Time of the tokens after one frame, which the browser kept that long."""
        before = page.evaluate(TIME, element)
        button(figure, "Play").click()
        page.evaluate("window.hide(true)")
        page.evaluate("window.hide(false)")
        until(lambda: page.evaluate("window.waiting.length"))
        page.evaluate("window.turn", milliseconds)
        button(figure, "Pause").click()
        until(lambda: page.evaluate(TIME, element) > before)
        return page.evaluate(TIME, element) / before

    # A frame stands for 0.05 seconds at most, of which five are a decade of time.
    for milliseconds in (16, 10_000, 3_600_000):
        assert 1 < played(milliseconds) < 10 ** (0.06 / 5)


def test_resized_window_keeps_canvas_and_box_together(visit):
    page, figure = visit(GLOBE)
    begun(figure)
    for width, height in ((390, 844), (1600, 900), (320, 480), (844, 390)):
        page.set_viewport_size({"width": width, "height": height})
        figure.scroll_into_view_if_needed()
        for name in (".exhibit-globe", ".exhibit-charts"):
            page.wait_for_function(
                """(canvas) => canvas.width === Math.round(canvas.clientWidth *
                devicePixelRatio) && canvas.height === Math.round(
                canvas.clientHeight * devicePixelRatio)""",
                arg=figure.locator(name).element_handle(),
            )
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        box = figure.locator(".exhibit-globe").bounding_box()
        assert abs(box["width"] - box["height"]) < 1 and box["width"] > 150


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_the_stored_pictures_stand(visit, name):
    # What is asked for at once is then refused.
    _, figure = visit(name, java_script_enabled=False, fails=True)
    pictures = figure.locator(".exhibit-frame svg")
    assert pictures.count() >= 2
    for picture in pictures.all():
        assert picture.is_visible()
    assert figure.locator(NOTE).inner_text().startswith("Stored pictures")
    for hidden in (STAGE, ".exhibit-controls"):
        assert not figure.locator(hidden).is_visible()


def test_without_modules_the_first_picture_stands(visit):
    """A browser that runs scripts but not these."""
    _, figure = visit(
        GLOBE, routes=[("**/exhibit.mjs", lambda r: r.abort())], fails=True
    )
    assert figure.locator(".exhibit-frame svg").first.is_visible()
    assert figure.locator(NOTE).inner_text().startswith("Stored pictures")
    assert not figure.locator(".exhibit-controls").is_visible()


def test_missing_kernel_is_said(visit):
    _, figure = visit(
        GLOBE, routes=[("**/sphere-step.mjs", lambda r: r.abort())], fails=True
    )
    says(figure, "^Stored pictures: what would move them was not loaded")
    for picture in figure.locator(".exhibit-frame svg").all():
        assert picture.is_visible()


@pytest.mark.parametrize(
    "made", ["{ok: false, next: x}", "{ok: true, next: x.map(() => NaN)}"]
)
def test_where_a_kernel_says_no_the_pictures_stand(visit, made):
    """Beyond β = 50 this kernel refuses; below it is one at rest."""
    body = (
        "export default ({x, beta}) =>"
        f" beta > 50 ? {made} : {{ok: true, next: x.slice()}};"
    )
    answer = {"content_type": "text/javascript", "body": body}
    routes = [("**/sphere-step.mjs", lambda r: r.fulfill(**answer))]
    _, figure = visit(GLOBE, routes=routes)
    begun(figure)
    slide(figure, "β", 1)
    said = figure.locator(NOTE, has_text="stored ones")
    said.wait_for()
    assert "With β = 100 these tokens cannot be moved" in said.inner_text()
    assert not figure.locator(STAGE).is_visible()
    for picture in figure.locator(".exhibit-frame svg").all():
        assert picture.is_visible()
    # Back where it can, the exhibit is back.
    slide(figure, "β", 0.5)
    says(figure, "^Time")
    assert figure.locator(".exhibit-globe").is_visible()
    assert not figure.locator(".exhibit-frame svg").first.is_visible()


@pytest.mark.parametrize("name", GLOBES)
def test_under_reduced_motion_it_moves_on_demand_alone(visit, name):
    page, figure = visit(name, init=COUNTED, reduced_motion="reduce")
    begun(figure)
    assert button(figure, "Play").is_visible()
    still(page)
    first = figure.evaluate(TIME)
    button(figure, "Step").click()
    passed(figure, first)
    button(figure, "Draw again").click()
    says(figure, "^Time 0.1,")
    assert button(figure, "Play").is_visible()
    button(figure, "Reset").click()
    page.wait_for_function(
        f"([figure, first]) => ({TIME})(figure) === first",
        arg=[figure.element_handle(), first],
    )


def test_ink_of_the_globe_follows_the_theme(visit):
    page, figure = visit(GLOBE, reduced_motion="reduce", color_scheme="light")
    begun(figure)
    charts = figure.locator(".exhibit-charts")
    darkest = """(canvas) => { const {data} = canvas.getContext('2d').getImageData(
      0, 0, canvas.width, canvas.height); let sum = 0, n = 0;
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] > 200) { sum += data[i] + data[i + 1] + data[i + 2]; n++; }
      return n && sum / n / 3; }"""
    page.wait_for_function(f"(c) => ({darkest})(c) > 0", arg=charts.element_handle())
    light = charts.evaluate(darkest)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        f"([c, light]) => ({darkest})(c) > light", arg=[charts.element_handle(), light]
    )


@pytest.mark.parametrize("name", PAGES)
def test_labels_are_legible_on_a_phone(visit, name):
    phone = {"viewport": {"width": 390, "height": 844}}
    _, figure = visit(name, **phone)
    begun(figure)
    sizes = figure.evaluate(
        """(figure) => [...figure.querySelectorAll('*')].filter((e) =>
          e.checkVisibility() && !e.closest('svg, script') &&
          [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
          .map((e) => parseFloat(getComputedStyle(e).fontSize))"""
    )
    assert len(sizes) > 3 and min(sizes) >= 11
    drawn = "\n".join(
        (SITE / "_static" / f"{each}.mjs").read_text()
        for each in (
            "exhibit",
            "film",
            "globe",
            "histogram",
            "networks",
            "training",
            "weights",
        )  # fmt: skip
    )
    assert min(int(px) for px in re.findall(r"(\d+)px ", drawn)) >= 11
    _, figure = visit(name, java_script_enabled=False, fails=True, **phone)
    heights = figure.locator(".exhibit-frame svg text").evaluate_all(
        """(all) => all.map((e) => { const m = e.getScreenCTM();
        return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(m.a, m.b); })"""
    )
    assert len(heights) >= 6 and min(heights) >= 10.99


@pytest.mark.parametrize("name", PAGES)
def test_paper_has_the_stored_pictures(visit, name):
    page, figure = visit(name)
    begun(figure)
    page.emulate_media(media="print")
    for picture in figure.locator(".exhibit-frame svg").all():
        assert picture.is_visible()
    for hidden in (STAGE + " *", ".exhibit-controls", NOTE):
        assert not figure.locator(hidden).first.is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_scripts_and_kernels_are_small(name):
    html = (SITE / name).read_text("utf-8")

    def packed(file):
        return len(gzip.compress((SITE / "_static" / file).read_bytes(), 9))

    asked = set(re.findall(r'_static/([a-z./-]+\.mjs)"', html)) - {"book.mjs"}
    kernels = {each for each in asked if each.startswith("kernels/")}
    # A training was recorded: its exhibit moves between what was saved.
    assert bool(kernels) == (name != TRAINING)
    assert max(map(packed, kernels), default=0) <= 4096
    assert sum(map(packed, (asked - kernels) | {"book.mjs"})) <= 15_000
    # What a description names is asked for at once, and nothing else is.
    described = soup_of(name).select("figure.book-exhibit script")
    named = {f"{json.loads(each.string)['script']}.mjs" for each in described}
    assert named and named | {"exhibit.mjs", "random.mjs"} <= asked
    policy = soup_of(name).find("meta", {"http-equiv": True})["content"]
    assert re.search(r"script-src 'self'( 'sha256-[^']+')*$", policy)


WORDED = [name for name in PAGES if soup_of(name).select("[data-set]")]


def controls_of(name):
    """The controls of the first exhibit of a page, as it describes them."""
    script = soup_of(name).select_one("figure.book-exhibit script")
    return json.loads(script.string)["controls"]


def values_of(word):
    """What a word of the text sets; ``told`` is no control, but what is said."""
    pairs = (part.split("=") for part in word["data-set"].split(" "))
    return {control: float(value) for control, value in pairs if control != "told"}


def told(value, control):
    """A value as its control says it: a choice its number, a slider a text."""
    if control["kind"] == "choice":
        return value
    if value == round(value):
        return str(round(value))
    return f"{value:.0f}" if value >= 100 else f"{value:.{2 if value < 1 else 3}g}"


def says_of(figure, control):
    """What a control of an exhibit says."""
    label = control["label"]
    if control["kind"] == "slider":
        slider = figure.get_by_label(label, exact=True)
        return slider.get_attribute("aria-valuetext")
    legend = figure.page.get_by_text(label, exact=True)
    box = figure.locator("fieldset.exhibit-choice").filter(has=legend)
    return float(box.locator("input:checked").get_attribute("value"))


@pytest.mark.parametrize("name", WORDED)
def test_words_of_the_text_set_what_controls_can_be_set_to(name):
    controls = controls_of(name)
    for word in soup_of(name).select("[data-set]"):
        for key, value in values_of(word).items():
            each = controls[key]
            if each["kind"] == "choice":
                assert value in each["options"].values()
            else:
                zero = not value and each["zero"]
                assert each["low"] <= value <= each["high"] or zero


@pytest.mark.parametrize("name", WORDED)
def test_words_of_the_text_set_the_exhibit(visit, name):
    page, figure = visit(name, whole=True, reduced_motion="reduce")
    begun(figure)
    controls = controls_of(name)
    sliders = [each["label"] for each in controls.values() if each["kind"] == "slider"]
    page.evaluate(
        "document.querySelectorAll('details').forEach((e) => (e.open = true))"
    )
    words = soup_of(name).select("[data-set]")
    buttons = page.locator("button.exhibit-word")
    assert buttons.all_inner_texts() == [word.get_text() for word in words]
    assert not page.locator("[data-set]").count()
    starts = {key: each["start"] for key, each in controls.items()}
    for k, word in enumerate(words):
        # What the reader moved before does not stay: the text says what is seen.
        for label in sliders:
            slide(figure, label, 0.4)
        buttons.nth(k).press("Enter")
        for key, value in (starts | values_of(word)).items():
            assert says_of(figure, controls[key]) == told(value, controls[key])
        box = figure.bounding_box()
        assert box["y"] > -5 or box["height"] > 900


@pytest.mark.parametrize("name", [FILM, MODELS])  # with words far below
def test_a_word_far_from_its_exhibit_has_a_way_back(visit, name):
    page, figure = visit(name, whole=True, reduced_motion="reduce")
    begun(figure)
    page.evaluate(
        "document.querySelectorAll('details').forEach((e) => (e.open = true))"
    )
    words, back = page.locator("button.exhibit-word"), page.locator(".way-back")
    # More than half a window above or below it.
    far = """e => { const { top, bottom } = e.getBoundingClientRect();
        return Math.max(-bottom, top - innerHeight) > innerHeight / 2; }"""
    for k in range(words.count()):
        word = words.nth(k)
        word.scroll_into_view_if_needed()
        before = word.bounding_box()["y"]
        word.press("Enter")
        frames(page, 3)
        away = word.evaluate(far)
        assert back.is_visible() == away
        if away:
            assert back.inner_text().endswith("Back to where you were")
            page.keyboard.press("Tab")
            assert back.evaluate("e => e === document.activeElement")
            page.keyboard.press("Enter")
            assert not back.is_visible()
            assert until(lambda w=word, y=before: abs(w.bounding_box()["y"] - y) < 2)
            assert word.evaluate("e => e === document.activeElement")
    # Who scrolls back needs no way.
    words.last.press("Enter")
    back.wait_for()
    words.last.scroll_into_view_if_needed()
    back.wait_for(state="hidden")
    if name == FILM:  # one of its words stands three sections below
        assert (
            words.last.evaluate("e => e.getBoundingClientRect().top + scrollY") > 5000
        )


def test_words_are_words_where_nothing_moves(visit):
    page, _ = visit(FILM, whole=True, java_script_enabled=False, fails=True)
    assert page.locator("[data-set]").count() == len(soup_of(FILM).select("[data-set]"))
    assert not page.locator("button.exhibit-word").count()


def training_state(page):
    return page.evaluate(
        """() => JSON.parse(document.querySelector(
          'figure.book-exhibit script').textContent).state"""
    )


@pytest.mark.parametrize(("step", "layer"), [(0, 1), (0.3, 0.6), (1, 0.5), (0.99, 0)])
def test_training_is_drawn_between_what_was_saved(visit, step, layer):
    page, figure = visit(TRAINING)
    begun(figure)
    state = training_state(page)
    plane = figure.locator(FIRST[TRAINING])
    slide(figure, "training step", 0.5)
    slide(figure, "layer", 0.25)
    says(figure, "layer 1, interpolated:")
    before = plane.evaluate(INK)
    slide(figure, "training step", step)
    slide(figure, "layer", layer)
    steps, layers = state["steps"], state["layers"]
    at = steps[1] * (steps[-1] / steps[1]) ** step if step else 0.0
    moving = at not in steps or 4 * layer % 1
    mark = ", interpolated" if moving else ""
    text = says(figure, rf"^Training step {round(at)}, layer {4 * layer:.2g}{mark}:")
    shape = (len(state["names"]), len(steps), layers)
    saved = np.reshape(state["cosines"], shape)[9]
    told = [float(x.replace("−", "-")) for x in re.findall(r"[−\d]+\.\d\d\b", text)]
    expected = [between(saved, steps, x, 4 * layer) for x in (at, 0.0)]
    assert np.allclose(told[-2:], expected, rtol=0, atol=0.0051)
    assert plane.evaluate(INK) != before


FRAMES = """(canvas) => {
  const style = getComputedStyle(canvas);
  const pen = canvas.getContext('2d');
  const side = Math.min(canvas.height, Math.floor(0.52 * canvas.width));
  const { data } = pen.getImageData(0, 0, side, canvas.height);
  const drawn = (name) => {
    const [r, g, b] = [1, 3, 5].map((k) =>
      parseInt(style.getPropertyValue(name).trim().slice(k, k + 2), 16));
    let pixels = 0;
    for (let k = 0; k < data.length; k += 4)
      pixels += data[k] === r && data[k + 1] === g && data[k + 2] === b;
    return pixels > 20;
  };
  return ['--limit-accent', '--limit-mark'].map(drawn);
}"""


@pytest.mark.parametrize("layer", range(5))
def test_frames_of_the_patches_have_the_colors_of_clusters(visit, layer):
    page, figure = visit(TRAINING)
    begun(figure)
    state = training_state(page)
    slide(figure, "layer", layer / 4)
    says(figure, rf"^Training step {state['steps'][-1]}, layer {layer}:")
    frames(page)
    shape = (len(state["names"]), len(state["steps"]), state["layers"], 16)
    shown = np.reshape(state["ranks"], shape)[9, -1, layer]
    wanted = [bool((shown == rank).any()) for rank in (0, 1)]
    assert figure.locator(FIRST[TRAINING]).evaluate(FRAMES) == wanted
    # At the input each stands alone, at the end nearly all are together.
    assert layer not in (0, 4) or wanted[0] == bool(layer)


def test_sliders_of_the_training_rest_at_what_was_saved(visit):
    page, figure = visit(TRAINING)
    begun(figure)
    steps = training_state(page)["steps"]
    says(figure, rf"^Training step {steps[-1]}, layer 4:")
    for label in ("training step", "layer"):
        figure.get_by_label(label, exact=True).focus()
        page.keyboard.press("ArrowLeft")
    says(figure, rf"^Training step {steps[-2]}, layer 3:")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    says(figure, rf"^Training step {steps[-2]}, layer 4:")
    figure.get_by_label("training step", exact=True).focus()
    for _ in range(len(steps)):
        page.keyboard.press("ArrowDown")
    says(figure, r"^Training step 0, layer 4:")
    # Between two of them it moves, and says so; let go, it goes to the nearer one.
    for label, place in (("training step", 0.3), ("layer", 0.4)):
        slide(figure, label, place)
        says(figure, "layer [0-9.]+, interpolated:")
        figure.get_by_label(label, exact=True).dispatch_event("change")
    says(figure, r"^Training step 3, layer 2:")


def test_another_image_is_a_click_or_a_key_away(visit):
    page, figure = visit(TRAINING)
    begun(figure)
    state = training_state(page)
    plane = figure.locator(FIRST[TRAINING])
    page.wait_for_function(
        "() => [...document.querySelectorAll('.exhibit-garments img')].every("
        "(e) => e.complete)"
    )
    first = plane.evaluate(INK)
    figure.locator(".exhibit-garments label").nth(3).click()
    says(figure, f"Label: {state['names'][3]};")
    assert figure.locator(".exhibit-chosen").count() == 1
    second = plane.evaluate(INK)
    assert second != first
    page.keyboard.press("ArrowRight")
    says(figure, f"Label: {state['names'][4]};")
    assert plane.evaluate(INK) != second
    # The number of an image is not seen, but heard.
    named = figure.locator(".exhibit-garments img").nth(4)
    assert named.get_attribute("alt") == state["names"][4]


def wait_for_row(figure, weights):
    """Wait until the numbers under the garments are these, but for their rounding."""
    figure.page.wait_for_function(
        """([figure, weights]) => weights.every((weight, i) => Math.abs(100 * weight -
          parseFloat(
            figure.querySelectorAll('.exhibit-weight')[i].textContent.replace('<', '')))
          < 0.51)""",
        arg=[figure.element_handle(), [*weights]],
    )


@pytest.mark.parametrize("place", [0, 0.3, 0.5, 1])
def test_weights_are_those_of_lib(visit, place):
    page, figure = visit(WEIGHTS)
    begun(figure)
    state = page.evaluate(
        """() => JSON.parse(document.querySelector(
        '.book-exhibit script').textContent).state"""
    )
    logits = np.reshape(state["logits"], (10, 10))
    slide(figure, "τ₀", place)
    for query in (0, 8):
        figure.get_by_alt_text(state["names"][query], exact=True).click()
        for order in range(4):
            figure.get_by_label(str(order), exact=True).check()
            temperature = 256**place / 64
            said = says(
                figure,
                f"^Query {state['names'][query]}, τ₀ = {temperature:.2g}[0-9]*:"
                f".*error of order {order}:",
            )
            scaled = logits[query] / temperature
            exact = attention.softmax(scaled)
            wait_for_row(figure, exact)
            gap = np.abs(exact - attention.softmax_expansion(scaled, order)).max()
            printed = float(re.search(r"order \d: <?([0-9.]+) percent", said)[1])
            assert abs(printed - 100 * gap) <= 0.51


def test_another_garment_is_clicked_and_reached_by_keys(visit):
    _, figure = visit(WEIGHTS)
    begun(figure)
    before = figure.locator(".exhibit-garments").inner_text()
    figure.get_by_alt_text("bag").click()
    says(figure, "^Query bag,")
    page = figure.page
    page.wait_for_function(
        "([figure, text]) =>"
        " figure.querySelector('.exhibit-garments').innerText !== text",
        arg=[figure.element_handle(), before],
    )
    assert figure.locator(".exhibit-chosen").count() == 1
    radio = figure.get_by_role("radio", name="bag")
    radio.press("ArrowRight")
    says(figure, "^Query ankle boot,")
    boxes = [each.bounding_box() for each in figure.locator("img").all()]
    assert min(box["width"] for box in boxes) >= 56
