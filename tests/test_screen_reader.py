"""What a screen reader is told of a page, and in which order.

As Chromium's tree of accessibility has it, which leaves out what is folded.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import pytest

from tools.reading import SECOND_EDITION

LANDMARKS = {
    *("banner", "complementary", "contentinfo", "form", "main", "navigation"),
    *("region", "search"),
}
ALONE = ("banner", "main")  # of which a page has one, that needs no name
CONTROLS = {"button", "combobox", "radio", "slider"}
FORMULA, FOLD = "MathMLMath", "DisclosureTriangle"  # the names that Chromium gives
# What the line of a chip says: a verdict, and what of, or of how many.
VERDICT = re.compile(
    r"(holds|rejected): \S.*|\d+ checks? holds?\b.*"
    r"|\d+ false variants? (is|are) rejected"
)
CHIP = "article :is(.checks, .statement-checks) > summary"
# Colored words of code, and the shapes of a drawing, are half the tree.
PLAIN = """() => {
  for (const each of document.querySelectorAll('pre span'))
    each.replaceWith(...each.childNodes);
  for (const code of document.querySelectorAll('pre')) code.normalize();
  for (const shape of document.querySelectorAll('svg :is(path, use, g, line, rect)'))
    if (!shape.querySelector('[role], [tabindex]')) shape.remove();
}"""


class Node(NamedTuple):
    """A thing that is told, the properties it is told with, and what is in it."""

    role: str
    name: str
    facts: dict
    inside: list

    def all(self, *roles):
        """What is in it, of some roles or any, in the order in which it is told."""
        for each in self.inside:
            if not roles or each.role in roles:
                yield each
            yield from each.all(*roles)

    def text(self):
        return " ".join(each.name for each in self.all("StaticText")).strip()


def heard(page):
    """The tree of a page, without what is not told."""
    page.evaluate(PLAIN)
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    by_id = {each["nodeId"]: each for each in nodes}

    def told(each):
        inside = [
            node
            for child in each.get("childIds", ())
            if child in by_id
            for node in told(by_id[child])
        ]
        if each["ignored"]:
            return inside
        role, name = (each.get(key, {}).get("value", "") for key in ("role", "name"))
        facts = {p["name"]: p["value"].get("value") for p in each["properties"]}
        if role == "slider":
            facts |= {"value": each["value"]["value"], **attributes(session, each)}
        return [Node(role, name.strip(), facts, inside)]

    return told(nodes[0])[0]


def attributes(session, node):
    """The attributes of an element, of which the tree does not have the value text."""
    about = {"backendNodeId": node["backendDOMNodeId"]}
    listed = session.send("DOM.describeNode", about)["node"]["attributes"]
    return dict(zip(listed[::2], listed[1::2], strict=True))


def faults(tree, chips, formulas):
    """Sentences on what is told badly; of chips and formulas that many are in sight."""
    wrong = [*of_headings(tree), *of_landmarks(tree), *of_figures(tree)]
    wrong += [*of_sliders(tree), *of_live_regions(tree)]
    said = [each for each in tree.all(FOLD) if VERDICT.fullmatch(each.name)]
    if len(said) != chips:
        others = {each.name for each in tree.all(FOLD)} - {each.name for each in said}
        wrong.append(f"{len(said)} of {chips} chips say a verdict; others: {others}")
    legible = [each for each in tree.all(FORMULA) if each.text()]
    if len(legible) != formulas:
        wrong.append(f"{len(legible)} of {formulas} formulas have text")
    return wrong


def of_headings(tree):
    (main,) = tree.all("main")
    headings = [*main.all("heading")]
    levels = [0, *(each.facts["level"] for each in headings)]
    for (one, two), each in zip(pairwise(levels), headings, strict=True):
        if two > one + 1 or not each.name or (two == 1) == (one > 0):
            yield f"heading {each.name!r} of level {two} follows one of level {one}"


def of_landmarks(tree):
    marks = [(each.role, each.name) for each in tree.all(*LANDMARKS)]
    for role, name in marks:
        if not name and role not in ALONE:
            yield f"landmark {role} has no name"
        if marks.count((role, name)) > 1:
            yield f"two landmarks are {role} {name!r}"
    for role in ALONE:
        of_role = [*tree.all(role)]
        if len(of_role) != 1 or not of_role[0].text():
            yield f"{len(of_role)} landmarks {role}, or without text"


def of_figures(tree):
    """Pictures have names, and no control is told before its figure has one."""
    for each in tree.all("image", "application", *CONTROLS):
        if not each.name:
            yield f"{each.role} without name"
    for figure in tree.all("figure"):
        told = [figure, *figure.all()]
        roles = [each.role for each in told if each.name or each.role in CONTROLS]
        first = next((r for r in roles if r in CONTROLS | {"figure", "image"}), None)
        if first in (None, *CONTROLS):
            yield f"{first} comes before the name of its figure: {figure.text()[:60]}"


def of_sliders(tree):
    for figure in tree.all("figure"):
        told = [*figure.all("slider", "status")]
        for one, two in pairwise([*told, None]):
            if one.role == "slider" and (
                two is None or not one.facts.get("aria-valuetext") == two.text() != ""
            ):
                yield f"slider {one.name!r} is not told as it is shown: {one.facts}"


def of_live_regions(tree):
    for each in tree.all():
        if each.facts.get("live", "polite") not in ("polite", "off"):
            yield f"{each.role} interrupts: {each.text()[:60]}"


SEEN = """(selector) => [...document.querySelectorAll(selector)].filter((e) =>
  e.checkVisibility({ visibilityProperty: true })).length"""


def told_badly(page):
    counts = [page.evaluate(SEEN, each) for each in (CHIP, "mjx-container")]
    return faults(heard(page), *counts)


@pytest.mark.parametrize("address", SECOND_EDITION)
def test_page_is_told_in_order(visit, address):
    page, _ = visit(address, whole=True, reduced_motion="reduce")
    for figure in page.locator(".book-exhibit").all():
        figure.and_(page.locator(".exhibit-moves")).wait_for(state="attached")
    assert told_badly(page) == []


GOOD = """<div role="banner"><a href="#a">Home</a></div>
<nav aria-label="Main"><a href="#b">1</a></nav><main><article><h1>A</h1>
<figure aria-labelledby="c"><canvas></canvas><p role="status">still</p>
<label>β <input type="range" aria-valuetext="3"></label><output>3</output>
<figcaption id="c">Tokens</figcaption></figure><h2>B</h2>
<figure><svg role="img" aria-label="A line"></svg>
<input type="range" aria-label="t" aria-valuetext="1"><output>1</output></figure>
<p>It is.</p><details class="checks"><summary><b role="img" aria-label="holds:">✓</b>
a slope <b>2</b></summary></details><details class="statement-checks"><summary>
2 checks hold; 1 false variant is rejected</summary></details>
<p><mjx-container><math><mi>β</mi></math></mjx-container></p><h3>C</h3><h2>D</h2></article></main>"""
PLANTED = {
    "skipped": ("h3>", "h4>", "heading 'C' of level 4 follows one of level 2"),
    "two titles": ("h3>", "h1>", "heading 'C' of level 1 follows one of level 2"),
    "no title": ("h1>", "b>", "heading 'B' of level 2 follows one of level 0"),
    "unnamed landmark": (' aria-label="Main"', "", "landmark navigation has no name"),
    "same landmark": (
        "</article>",
        "</article><nav aria-label='Main'></nav>",
        "two landmarks are navigation 'Main'",
    ),
    "empty banner": ("Home", "", "1 landmarks banner, or without text"),
    "name below": (
        ' aria-labelledby="c"',
        "",
        "slider comes before the name of its figure: still",
    ),
    "picture without name": (' aria-label="A line"', "", "slider comes before the"),
    "image without name": ("<h2>B", "<img src='x'><h2>B", "image without name"),
    "slider without name": (' aria-label="t"', "", "slider without name"),
    "raw value": (' aria-valuetext="3"', "", "slider 'β' is not told as it is shown"),
    "other value": ('text="1"', 'text="2"', "slider 't' is not told as it is shown"),
    "chip without verdict": (
        'aria-label="holds:"',
        'aria-hidden="true"',
        "1 of 2 chips say a verdict; others: {'a slope 2'}",
    ),
    "formula without text": ("<mi>β</mi>", "<mspace/>", "0 of 1 formulas have text"),
    "loud": ('role="status"', 'role="alert"', "alert interrupts: still"),
}


def test_good_page_has_no_faults(browser):
    page = browser.new_page()
    page.set_content(GOOD)
    assert told_badly(page) == []
    page.close()


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_told(browser, fault):
    good, bad, sentence = PLANTED[fault]
    assert good in GOOD
    page = browser.new_page()
    page.set_content(GOOD.replace(good, bad))
    assert any(each.startswith(sentence) for each in told_badly(page))
    page.close()
