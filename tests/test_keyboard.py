"""A page by the keyboard alone: every stop of the Tab key, and what its keys do."""

import pytest
from painted import contrast, luminance
from waits import until

from tools.command import ROOT

CHAPTERS = [f"chapters/{p.stem}.html" for p in (ROOT / "chapters").glob("[0-9]*.md")]
SHORTEST, LANDING = "chapters/8-which-limit.html", "chapters/index.html"
STATEMENT = "article section > p > a.internal[href^='#prop-']"
FIRST = 40  # stops of every chapter: the sidebar, the switch, the exhibit
# Kinds of things that a reader acts on, each of which a walk meets.
MET = {
    "the switch of code": ".code-switch input",
    "controls of an exhibit": ".book-exhibit :is(input, select)",
    "sliders of a figure": ".explorer-controls input",
    "chips": "details.checks > summary",
    "checks of a statement": "details.statement-checks > summary",
    "folds": "details.fold > summary",
    "answers": "details.sd-dropdown > summary",
    "sections with a star": "details.further > summary",
    "links with a preview": STATEMENT,
    "works with a preview": "article p a.internal[href*='bibliography']",
    "formulas with a preview": "article [data-tex] mjx-container",
}
# What can have the focus, in the order of the document. Of radio buttons that belong
# together, the chosen one.
WATCH = """() => {
  const can = (e) => !e.disabled && e.checkVisibility({ visibilityProperty: true })
    && !(e.type === 'radio' && !e.checked
      && document.querySelector(`[name="${e.name}"]:checked`));
  const all = 'a[href], button, input, select, summary, [tabindex="0"]';
  window.wanted = [...document.querySelectorAll(all)].filter(can);
  window.stops = [];
  document.addEventListener('focusin', ({ target }) => {
    const { top } = target.getBoundingClientRect();
    stops.push([target, top + scrollY]);
  });
  return wanted.length;
}"""
# Where the walk leaves the order of the document, and where it goes up in the text;
# what moves together has controls beside it.
WALKED = """(count) => {
  const told = (e) => `${e?.localName} ${e?.ariaLabel ?? e?.textContent.trim()}`;
  const path = [...wanted, wanted[0]].slice(0, count);
  const strayed = path.findIndex((e, k) => e !== stops[k]?.[0]);
  const up = stops.slice(1).flatMap(([e, y], k) => {
    const [before, above] = stops[k];
    const within = (place) => place.closest('article') && e.closest('article');
    const chip = e.matches('.checked > .checks > summary');
    const beside = before.closest('figure, td') && e.closest('figure, td')
      || chip && e.closest('.checked').contains(before); // its own paragraph's
    return y < above - 8 && within(before) && !beside ? [told(e)] : [];
  });
  const lost = strayed < 0 ? [] : [told(path[strayed]), told(stops[strayed]?.[0])];
  return [stops.length, lost, up];
}"""
HELD = """() => {
  const e = document.activeElement;
  if (e === document.body) return null;
  const unseen = getComputedStyle(e).opacity === '0';
  const place = (unseen && e.closest('label')) || e;
  const { x, y, width, height } = place.getClientRects()[0];
  const card = e.closest('.sd-card');  // whose link has no height
  const held = card ? card.getBoundingClientRect() : { x, y, width, height };
  return [`${e.localName}.${e.className}`, held];
}"""


def walk(page, count):
    """Press Tab so many times; kinds of stops whose focus is not seen."""
    kinds, unseen = set(), []
    for _ in range(count):
        page.keyboard.press("Tab")
        if (held := page.evaluate(HELD)) is None:
            break  # the page is left
        kind, box = held
        if kind not in kinds and not is_seen(page, box):
            unseen.append(kind)
        kinds.add(kind)
    return unseen


def is_seen(page, box):
    """Say whether as much as a line around a box has another color with the focus.

    One that stands out from the color before, as WCAG 2.4.13 asks.
    """
    held = luminance(page, box)
    page.evaluate("document.activeElement.blur()")
    changed = contrast(held, luminance(page, box)) >= 3
    return changed.sum() >= box["width"] + box["height"]


def come(visit, address, **options):
    page, _ = visit(address, whole=True, reduced_motion="reduce", **options)
    for figure in page.locator(".book-exhibit").all():
        figure.and_(page.locator(".exhibit-moves")).wait_for(state="attached")
    return page


def test_whole_chapter_is_walked_in_the_order_of_reading(visit):
    """From the skip link to the last stop, and around to the skip link again."""
    page = come(visit, SHORTEST)
    page.add_style_tag(content=".preview { visibility: hidden }")
    count = page.evaluate(WATCH)
    assert walk(page, count) == []
    for _ in range(2):  # the first leaves the page
        page.keyboard.press("Tab")
    assert page.evaluate(WALKED, count + 1) == [count + 1, [], []]
    there = {kind for kind in MET.values() if page.locator(kind).count()}
    assert {*MET.values()} - there <= {MET["sliders of a figure"]}
    met = "(kinds) => kinds.filter((kind) => !stops.some(([e]) => e.matches(kind)))"
    assert page.evaluate(met, [*there]) == []


@pytest.mark.parametrize("address", sorted({*CHAPTERS, LANDING} - {SHORTEST}))
def test_first_stops_of_a_page_are_in_the_order_of_reading(visit, address):
    page = come(visit, address)
    page.evaluate(WATCH)
    unseen = walk(page, FIRST)
    assert page.evaluate("stops[0][0].textContent") == "Skip to main content"
    assert page.evaluate(WALKED, FIRST) == [FIRST, [], []]
    assert unseen == []


LINK = "document.querySelectorAll('article li a')[1]"
PLANTED = {
    "another order": f"{LINK}.tabIndex = 1",
    "out of reach": f"{LINK}.tabIndex = -1",
    "a trap": f"{LINK}.addEventListener('keydown', (event) => event.preventDefault())",
    "up the page": f"{LINK}.style.cssText = 'position: relative; top: -20rem'",
    "no ring": f"{LINK}.className = 'x', {LINK}.style.outline = {LINK}"
    ".style.boxShadow = 'none'",
    "a pale ring": f"{LINK}.className = 'x', {LINK}.style.boxShadow = 'none', {LINK}"
    ".style.outline = '2px solid #ddd'",
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_met(visit, fault):
    page = come(visit, "404.html")
    page.evaluate(PLANTED[fault])
    count = page.evaluate(WATCH)
    unseen = walk(page, count)
    stops, lost, up = page.evaluate(WALKED, count)
    rings = fault in ("no ring", "a pale ring")
    assert bool(unseen) == rings and bool(up) == (fault == "up the page")
    assert bool(lost) == (fault in ("another order", "out of reach", "a trap"))


# What keys do.


@pytest.fixture
def chapter(visit):
    """A page that is walked from a stop to the next: the focus is never set."""
    page = come(visit, SHORTEST)

    def reach(selector):
        """Tab until a thing has the focus."""
        target = page.locator(selector).locator("visible=true").first
        for _ in range(300):
            if target.evaluate("(e) => e === document.activeElement"):
                return target
            page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {selector}")

    return page, reach


@pytest.mark.parametrize(
    "kind", ["checks", "fold", "statement-checks", "sd-dropdown", "further"]
)
def test_enter_and_space_open_and_close_what_is_folded(chapter, kind):
    page, reach = chapter
    line = reach(f"article details.{kind} > summary")
    fold = line.locator("xpath=..")
    inside = fold.locator(":scope > :nth-child(2)")
    for key, opened in (("Enter", True), ("Space", False), ("Space", True)):
        page.keyboard.press(key)
        assert fold.evaluate("(e) => e.open") == inside.is_visible() == opened
    if kind == "statement-checks":
        page.keyboard.press("Tab")
        assert inside.locator("a").first.evaluate("(e) => e === document.activeElement")


def test_preview_is_closed_by_escape_and_the_way_back_is_the_next_stop(chapter):
    page, reach = chapter
    link, card, back = (
        reach(STATEMENT),
        page.locator(".preview"),
        page.locator(".way-back"),
    )
    card.wait_for()
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert link.evaluate("(e) => e === document.activeElement")
    before = link.bounding_box()["y"]
    page.keyboard.press("Enter")
    back.wait_for()
    page.keyboard.press("Tab")
    assert back.evaluate("(e) => e === document.activeElement")
    place = page.locator(link.get_attribute("href"))
    assert place.locator(".way-back").count() == 1
    page.keyboard.press("Enter")
    assert until(lambda: link.evaluate("(e) => e === document.activeElement"))
    assert until(lambda: abs(link.bounding_box()["y"] - before) < 2)
    assert not back.is_visible()
