"""A page in the colors of its reader: what is drawn, text and focus are seen."""

import numpy as np
import pytest
from painted import contrast, luminance
from test_keyboard import FIRST, LANDING, come, walk

CHAPTER = "chapters/1-softmax-expansion.html"
PAGES = (CHAPTER, LANDING)
TEXT, SHAPE = 4.5, 3  # contrasts that WCAG 2 asks for
SEEN = {
    "article section > p": TEXT,
    "article p > a.internal": TEXT,
    "details.checks > summary": TEXT,
    "details.statement-checks > summary": TEXT,
    "details.fold > summary": TEXT,
    "details.sd-dropdown > summary": TEXT,
    "details.further > summary": TEXT,
    "article mjx-container": TEXT,
    "article .tag_idea pre": TEXT,
    "nav a.current": TEXT,
    ".code-switch label": TEXT,
    ".exhibit-note": TEXT,
    ".exhibit-controls label": TEXT,
    ".exhibit-controls output": TEXT,
    ".book-exhibit figcaption": TEXT,
    ".book-explorer svg text": TEXT,
    ".exhibit-controls [type=range]": SHAPE,
    ".exhibit-controls [type=radio]": SHAPE,
    ".exhibit-buttons button": SHAPE,
    ".exhibit-globe": SHAPE,
    ".exhibit-charts": SHAPE,
    ".exhibit-bar i": SHAPE,
    ".exhibit-bar b": SHAPE,
    ".exhibit-legend i": SHAPE,
    ".exhibit-garments label.exhibit-chosen": SHAPE,
    ".explorer-controls input": SHAPE,
    ".book-explorer svg": SHAPE,
    ".primary-toggle": SHAPE,
    ".theme-switch-button": SHAPE,
    ".search-button-field i": SHAPE,
}


def is_seen(page, place, wanted):
    """Say whether a hundredth of a place differs so much from its commonest color."""
    place.scroll_into_view_if_needed()
    painted = luminance(page, place.bounding_box()).round(2)
    values, counts = np.unique(painted, return_counts=True)
    return (contrast(painted, values[counts.argmax()]) >= wanted).mean() >= 0.01


def unseen(page):
    """What of a page is met, and what of that is not seen."""
    places = {kind: page.locator(kind).locator("visible=true") for kind in SEEN}
    met = {kind: place.first for kind, place in places.items() if place.count()}
    return {*met}, [k for k, place in met.items() if not is_seen(page, place, SEEN[k])]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_on_a_page_is_seen(visit, scheme):
    all_met = set()
    for address in PAGES:
        page = come(visit, address, forced_colors="active", color_scheme=scheme)
        met, lost = unseen(page)
        assert lost == []
        all_met |= met
    assert all_met == {*SEEN}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_focus_is_seen(visit, scheme):
    """On each kind of its stops; a shadow, as the theme has, is not drawn there."""
    page = come(visit, LANDING, forced_colors="active", color_scheme=scheme)
    assert walk(page, FIRST) == []


def test_a_state_is_not_told_by_a_shadow_alone(visit):
    page = come(visit, CHAPTER, forced_colors="active")
    lines = (
        page.locator(".exhibit-garments")
        .first.locator("label")
        .evaluate_all("all => all.map((e) => getComputedStyle(e).outlineStyle)")
    )
    assert sorted(lines) == ["none"] * (len(lines) - 1) + ["solid"]
