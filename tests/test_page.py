"""What a page does for its reader: folds, chips, numbers, previews, ways, search.

By mouse, by keyboard, by finger, without scripts, and in the colors of the reader.
"""

import json
import re
from functools import cache
from urllib.parse import urldefrag

import pytest
from test_site import pages, soup_of
from waits import frames, until

from tools.command import ROOT
from tools.serve import HTML
from tools.site.cells import IDEA_LINES
from tools.texts import texts
from tools.verdicts import collect, page_name, statement_kinds

SITE = ROOT / HTML
CHAPTERS = [p.stem for p in texts() if re.match(r"\d", p.stem)]
CHAPTER = "chapters/4-mean-field-sphere.html"
LINK = "article section > p > a.internal[href^='#prop-']"


@pytest.fixture
def page(site, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(site + CHAPTER)
    yield page
    context.close()


# Stored pages.


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_code_is_folded_but_for_ideas(chapter):
    soup = soup_of(f"chapters/{chapter}.html")
    for cell in soup.select("article .cell_input"):
        around = cell.find_parent(class_="cell")
        fold = cell.find_parent("details", class_=["fold", "checks"])
        assert (fold is None) == ("tag_idea" in around["class"])
        if fold is None:
            assert len(cell.pre.get_text().strip().splitlines()) <= IDEA_LINES
    assert not soup.select("details.fold[open], details.checks[open]")


@pytest.mark.parametrize("text", texts(), ids=lambda path: path.stem)
def test_every_verdict_is_in_a_chip_and_a_paragraph_has_one(text):
    name = page_name(text)
    soup = soup_of(f"{name}.html")
    shown = soup.select(".verdict")
    assert sorted(each["id"] for each in shown) == sorted(
        row.id for row in collect() if row.page == name
    )
    assert all(each.find_parent("details", class_="checks") for each in shown)
    for line in soup.select(".checked"):
        assert [part.name for part in line.find_all(True, recursive=False)] == [
            *("p", "details")
        ]


def test_nothing_is_refuted_on_a_statement():
    for chapter in CHAPTERS:
        soup = soup_of(f"chapters/{chapter}.html")
        assert soup.select(".proof")
        for part in soup.select(".proof, .verdict, .checks > summary"):
            assert "refuted" not in part.get_text().lower()


def test_a_statement_counts_its_checks_and_leads_to_each():
    rows = collect()
    for label in statement_kinds():
        own = [row for row in rows if row.statement == label]
        name = next(page for page in pages() if holds(page, label))
        lines = soup_of(name).find(id=label).select(".statement-checks")
        assert len(lines) == bool(own)
        for line in lines:
            assert len(line.select("li a")) == len(own)
            holding = sum(row.word == "HOLDS" for row in own)
            assert f"{holding} check" in line.summary.get_text()


def holds(page, label):
    return f'id="{label}"' in text_of(page)


@cache
def text_of(page):
    return (SITE / page).read_text("utf-8")


def test_chapters_and_their_statements_have_numbers():
    toc = soup_of("chapters/index.html").select(".bd-sidebar-primary .toctree-l1 > a")
    texts_of = [" ".join(a.get_text().split()) for a in toc]
    listed = [text for text in texts_of if re.match(r"\d", text)]
    for chapter, title in zip(CHAPTERS, listed, strict=True):
        soup = soup_of(f"chapters/{chapter}.html")
        number, _, name = title.partition(" ")
        assert number == chapter.partition("-")[0]
        assert soup.h1.get_text().startswith(f"{number} {name}")
        assert soup.title.text.startswith(f"{number} {name} —")
        numbers = [
            each.get_text().split()[1] for each in soup.select(".proof .caption-number")
        ]
        assert numbers == [f"{number}.{k + 1}" for k in range(len(numbers))]
        for link in soup.select(".proof ~ p a[href^='#thm-'], p a[href^='#prop-']"):
            if re.fullmatch(r"[A-Z]\w+ [\d.]+", link.get_text()):
                target = soup.find(id=link["href"][1:]).select_one(".caption-number")
                assert link.get_text() == target.get_text().strip()


def test_statements_of_further_checks_do_not_look_like_those_of_a_chapter():
    for path in (SITE / "chapters" / "reference").glob("more-checks-?.html"):
        shown = soup_of(path.relative_to(SITE).as_posix())
        heads = {
            p["id"]: p.select_one(".caption-number") for p in shown.select(".proof[id]")
        }
        named = {k: v.get_text().strip() for k, v in heads.items() if v}
        numbers = [name.split()[1] for name in named.values()]
        page = path.stem[-1]
        assert numbers == [f"M{page}.{k + 1}" for k in range(len(numbers))]
        chapter = next(each for each in CHAPTERS if each.startswith(page))
        for link in soup_of(f"chapters/{chapter}.html").select(
            "a[href*='more-checks-']"
        ):
            target = urldefrag(link["href"])[1]
            if target in named and re.fullmatch(r"[A-Z]\w+ M?[\d.]+", link.get_text()):
                assert link.get_text() == named[target]


# Moving pages.


def test_the_switch_for_code_remembers_by_keyboard(page, site):
    counted = (
        "() => [...document.querySelectorAll('article .cell_input')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    page.evaluate("document.querySelectorAll('.further').forEach(e => e.open = true)")
    ideas, every = page.evaluate(counted), page.locator("article .cell_input").count()
    assert 0 < ideas < every / 4
    page.locator(".code-switch input:checked").focus()
    page.keyboard.press("ArrowRight")
    # All cells are there but those of checks, which open with their chips.
    checks = page.locator("article .checks .cell_input").count()
    assert page.evaluate(counted) == every - checks
    page.keyboard.press("ArrowRight")  # around to the first
    assert page.evaluate(counted) == 0
    page.reload()
    assert page.evaluate(counted) == 0
    assert page.locator(".code-switch input:checked").get_attribute("value") == "none"
    page.goto(f"{site}chapters/1-softmax-expansion.html")
    assert page.evaluate(counted) == 0


def test_what_only_makes_a_page_run_is_shown_with_all_code(page):
    outside = [
        each
        for each in page.locator("article details.helper").all()
        if not each.locator("xpath=ancestor::details").count()
    ]
    assert len(outside) >= 3
    assert not any(each.is_visible() for each in outside)
    figure = page.locator("article details.fold:not(.helper)").first
    assert figure.is_visible()
    # In a check, whose code needs it, it stands; and with all code everything does.
    inside = page.locator("article details.checks:has(> details.fold)").first
    inside.locator(":scope > summary").click()
    assert inside.locator(":scope > details.fold > summary").first.is_visible()
    page.locator(".code-switch input[value=all]").check(force=True)
    assert all(each.is_visible() for each in outside)


def test_a_chip_opens_by_keyboard_and_by_its_address(page, site):
    chip = page.locator(".checked details.checks").first
    assert not chip.locator(".verdict").first.is_visible()
    chip.locator(":scope > summary").focus()
    page.keyboard.press("Enter")
    assert chip.locator(".verdict").first.is_visible()
    name = chip.locator(".verdict").first.get_attribute("id")
    page.goto(f"{site}{CHAPTER}#{name}")
    page.reload()
    place = page.locator(f"#{name}")
    assert place.is_visible() and 0 <= place.bounding_box()["y"] < 900


def test_without_scripts_folds_open_and_no_switch_is_shown(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + CHAPTER)
    assert not page.locator(".code-switch").is_visible()
    assert page.locator("article .tag_idea pre").first.is_visible()
    for kind in ("fold", "checks", "statement-checks", "further"):
        fold = page.locator(f"article details.{kind}").first
        inside = fold.locator(":scope > :nth-child(2)")
        assert not inside.is_visible()
        fold.locator(":scope > summary").click()
        assert inside.is_visible()
    context.close()


def test_contents_list_is_right_at_every_position(page):
    """After jumps of any size, up and down, as the headings lie on the screen."""
    height = page.evaluate("document.documentElement.scrollHeight - innerHeight")
    places = [*range(0, height, 700), *range(height, 0, -1900)]
    wrong = []
    for y in places:
        page.evaluate(f"scrollTo({{top: {y}, behavior: 'instant'}})")
        frames(page)
        heads, marked = page.evaluate(
            """() => [[...document.querySelectorAll('article :is(h2, h3)')]
              .filter((h) => h.checkVisibility()).map((h) =>
              ['#' + h.parentElement.id, h.getBoundingClientRect().top / innerHeight]),
              [...document.querySelectorAll('#page-contents a.active')].map((a) =>
              a.getAttribute('href'))]"""
        )
        above = [name for name, top in heads if top <= 0.29]
        below = [name for name, top in heads if 0.29 < top <= 0.31]
        if not below and y < height - 5 and marked != above[-1:]:
            wrong.append((y, marked, above[-1:]))
    assert len(places) > 40 and wrong == []


def reach(page, link):
    """Bring the focus to a link by the keyboard, from what stands before it."""
    page.locator("h1").click()
    link.focus()
    page.keyboard.press("Shift+Tab")
    assert not link.evaluate("e => e === document.activeElement")
    page.keyboard.press("Tab")
    assert link.evaluate("e => e === document.activeElement")


def test_statement_is_previewed_for_mouse_and_keyboard(page):
    link, card = page.locator(LINK).first, page.locator(".preview")
    link.scroll_into_view_if_needed()
    link.hover()
    card.wait_for()
    assert card.inner_text().startswith(link.inner_text())
    card.locator("mjx-container").first.wait_for()
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")
    card.hover()  # it stays for who reads it
    page.wait_for_timeout(600)
    assert card.is_visible()
    page.keyboard.press("Escape")
    assert not card.is_visible() and link.get_attribute("aria-describedby") is None
    page.mouse.move(1, 1)
    reach(page, link)
    assert until(lambda: card.inner_text().startswith(link.inner_text()))


def test_what_a_scrolled_page_moves_under_the_mouse_is_not_previewed(page):
    link, card = page.locator(LINK).first, page.locator(".preview")
    reach(page, link)
    # A formula that is in sight once the link is.
    x, y = page.evaluate(
        """() => [...document.querySelectorAll('article p > span.math mjx-container')]
        .map((each) => each.getBoundingClientRect())
        .filter((r) => r.top > 100 && r.bottom < innerHeight - 50)
        .map((r) => [r.x + r.width / 2, r.y + r.height / 2])[0]"""
    )
    page.keyboard.press("Shift+Tab")
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(1, 1)
    page.mouse.move(x, y)
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert link.evaluate("e => e === document.activeElement")
    card.wait_for()
    page.wait_for_timeout(600)
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")


def test_slow_preview_does_not_replace_the_one_that_stands(page):
    """Of the formula before a link, which had the focus in between."""
    held = []
    page.route("**/notation.previews.json", lambda route: held.append(route))
    after = page.locator("article section > p a.internal[href*='bibliography']")
    card, link = page.locator(".preview"), after.first
    reach(page, link)
    card.wait_for()
    page.keyboard.press("Shift+Tab")
    assert until(lambda: page.wait_for_timeout(50) or held)
    page.keyboard.press("Tab")
    for route in held:
        route.continue_()
    page.wait_for_timeout(600)
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")


def test_slow_preview_does_not_replace_a_later_one(page):
    held = []
    page.route("**/notation.previews.json", lambda route: held.append(route))
    near = page.locator("article a.internal[href$='#prop-divergence']")
    card, link = page.locator(".preview"), near.first
    page.locator("article section > p > span.math mjx-container").first.hover()
    assert until(lambda: page.wait_for_timeout(50) or held)
    link.hover()
    card.wait_for()
    for route in held:
        route.continue_()
    page.wait_for_timeout(600)
    assert card.inner_text().startswith(link.inner_text())
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")


def test_work_and_letters_are_previewed(page):
    card = page.locator(".preview")
    cited = page.locator("article section > p a.internal[href*='bibliography']").first
    cited.hover()
    card.wait_for()
    assert cited.inner_text().strip("[]").split(",")[0][:3] in card.inner_text()
    assert re.search(r"\b(19|20)\d\d\b", card.inner_text())
    page.keyboard.press("Escape")
    page.mouse.move(1, 1)
    formulas = page.locator("article section > p > span.math mjx-container")
    formula = formulas.filter(has=page.locator("mjx-c.mjx-c1D6FD")).first  # a β
    formula.hover()
    card.wait_for()
    assert "inverse temperature" in card.inner_text()


def test_first_tap_previews_and_the_second_follows(site, browser):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(site + CHAPTER)
    link = page.locator(LINK).first
    link.scroll_into_view_if_needed()
    link.tap()
    card = page.locator(".preview")
    card.wait_for()
    box = card.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert "#" not in page.url
    link.tap()
    page.wait_for_url(f"**{link.get_attribute('href')}")
    assert page.locator(".way-back").is_visible()
    context.close()


def test_there_is_a_way_back_on_the_page_and_from_another(page, site):
    link = page.locator(LINK).first
    link.scroll_into_view_if_needed()
    link.click(trial=True)  # what a click scrolls has been scrolled
    before = link.bounding_box()["y"]
    link.click()
    back = page.locator(".way-back")
    back.wait_for()
    assert back.inner_text().endswith("Back to where you were")
    back.press("Enter")
    # In the window: what is set above it may have grown since.
    assert until(lambda: abs(link.bounding_box()["y"] - before) < 2)
    assert link.evaluate("e => e === document.activeElement")
    assert not back.is_visible() and "#" not in page.url
    cited = page.locator("article section > p a.internal[href*='bibliography']").first
    cited.scroll_into_view_if_needed()
    before = cited.bounding_box()["y"]
    cited.click()
    page.wait_for_url("**/bibliography.html#*")
    assert "4 Mean-field sphere dynamics" in back.inner_text()
    back.click()
    page.wait_for_url(f"**/{CHAPTER}")
    # Formulas are set while it arrives, which moves what stands below them.
    assert until(lambda: abs(cited.bounding_box()["y"] - before) < 3)
    assert until(lambda: cited.evaluate("e => e === document.activeElement"))


def test_marks_stay_in_the_colors_of_the_reader(site, browser):
    context = browser.new_context(forced_colors="active", reduced_motion="reduce")
    page = context.new_page()
    page.goto(site + CHAPTER)
    chip = page.locator("details.checks > summary").first
    assert chip.evaluate("e => parseFloat(getComputedStyle(e).borderWidth)") >= 1
    mark = page.locator(".check-mark").first
    colors = mark.evaluate(
        "e => [getComputedStyle(e).color,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    assert colors[0] != colors[1] and mark.inner_text() in "✓✗"
    chosen = page.locator(".code-switch label:has(:checked)")
    others = page.locator(".code-switch label:not(:has(:checked))").first
    line = "e => getComputedStyle(e).borderBottomColor"
    assert chosen.evaluate(line) != others.evaluate(line)
    context.close()


@pytest.mark.parametrize("width", [320, 390])
def test_the_switch_fits_a_phone(site, browser, width):
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.goto(site + CHAPTER)
    for label in page.locator(".code-switch label").all():
        box = label.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert box["height"] >= 24
    page.close()


# The search.


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("rank collapse", r"chapters/\d-[\w-]+#(where-it-breaks|which-weights)"),
        ("oversmoothing", r"chapters/\d-\w+[\w-]*#where-it-breaks"),
        ("heat", r"chapters/3-sinkhorn-to-heat-flow"),
        ("Sinkhorn", r"chapters/3-sinkhorn-to-heat-flow"),
        ("Bartlett", r"chapters/\d-[\w-]+#"),
        ("Lyapunov", r"chapters/4-mean-field-sphere#"),
        ("metastable", r"chapters/4-mean-field-sphere#"),
        ("Tweedie", r"chapters/3-sinkhorn-to-heat-flow#half-the-score"),
    ],
)
def test_search_finds_the_section_first(site, browser, query, first):
    page = browser.new_page()
    page.goto(f"{site}search.html?q={query.replace(' ', '+')}")
    page.locator("#search-results li").first.wait_for()
    link = page.locator("#search-results li > a").first
    target = re.sub(r"\.html\?q=[^#]*", "", link.get_attribute("href"))
    assert re.match(first, target.removeprefix(site))
    text = page.locator("#search-results").inner_text()
    assert not re.search(r"\\\(|\\[a-z]+\b|\$", text)
    assert page.locator("#search-results mark").count() > 0
    page.close()


def test_search_leads_to_marked_words(site, browser):
    page = browser.new_page()
    page.goto(f"{site}search.html?q=metastability")
    page.locator("#search-results li > a").first.click()
    page.wait_for_url("**/4-mean-field-sphere.html?q=metastability#*")
    assert page.evaluate("CSS.highlights.get('searched').size") > 0
    page.keyboard.press("Escape")
    assert page.evaluate("CSS.highlights.has('searched')") is False
    page.close()


def test_search_says_when_it_finds_nothing_or_has_no_words(site, browser):
    page = browser.new_page()
    page.goto(f"{site}search.html?q=%3Cb%3Ezzzz")
    status = page.locator("#search-status")
    status.filter(has_text="nothing found for “<b>zzzz”").wait_for()
    page.route("**/search-sections.json", lambda route: route.fulfill(status=503))
    page.goto(f"{site}search.html?q=heat")
    status.filter(has_text="could not be loaded (503)").wait_for()
    page.close()


def test_no_section_of_the_search_has_raw_tex():
    sections = json.loads((SITE / "_static/search-sections.json").read_text("utf-8"))
    assert len(sections) > 300
    raw = [
        each["to"]
        for each in sections
        if re.search(r"\\[(\[]|\\[a-z]+\{", each["text"])
    ]
    assert raw == []
    titles = [each["title"] for each in sections if "chapters/1-" in each["to"]]
    assert "Where the series fails ⋆" in titles
    assert not any("Read on" in each["text"] for each in sections)


# A page that comes in.


# Parts of the text that are not laid out while they are far below the window.
SKIPPED = """() => [...document.querySelectorAll('article section section > p > *')]
  .filter((e) => !e.checkVisibility({ contentVisibilityAuto: true })
    && e.checkVisibility()).length"""
HERE = "() => document.querySelector('.bd-footer') !== null"


@pytest.fixture
def coming(site, browser):
    """A page whose text is there, and the first of its scripts that are not yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, held = context.new_page(), []
    page.route("**/book.mjs*", lambda route: held.append(route))

    def come(address=None):
        if address:
            page.goto(site + address, wait_until="commit")
        else:
            page.reload(wait_until="commit")
        page.wait_for_function(HERE)
        return page, lambda: held.pop().continue_()

    yield come
    context.close()


def test_what_is_far_below_is_laid_out_when_all_has_come(coming):
    page, release = coming(CHAPTER)
    page.wait_for_function(f"() => ({SKIPPED})() > 100")
    assert page.locator("article section > p").first.evaluate(
        "(e) => e.checkVisibility({ contentVisibilityAuto: true })"
    )
    release()
    page.wait_for_load_state("load")
    assert page.evaluate(SKIPPED) == 0


def test_who_comes_to_a_place_or_back_finds_all_laid_out(coming):
    page, release = coming(f"{CHAPTER}#exercises")
    frames(page)
    assert page.evaluate(SKIPPED) == 0
    release()
    page, release = coming("chapters/reference/notation.html")
    release()
    page, release = coming(CHAPTER)
    page.wait_for_function(f"() => ({SKIPPED})() > 100")
    release()
    page, release = coming()  # who loads the page again
    frames(page)
    assert page.evaluate(SKIPPED) == 0
    release()
