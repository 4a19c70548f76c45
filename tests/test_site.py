"""The built site in a browser: quiet, self-contained, accessible, light, legible."""

import gc
import gzip
import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from functools import cache
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from pkgutil import iter_modules, resolve_name
from urllib.parse import unquote, urldefrag, urljoin

import axe_playwright_python
import pytest
from waits import arrived, frames

import lib
from tools.browser import cold_visit
from tools.command import ROOT, PipelineError
from tools.launch import base_path, public_address
from tools.serve import HTML
from tools.site.finish import set_policy
from tools.site.live_page import SUFFIX
from tools.site.markup import parsed, with_plain_formulas
from tools.site.moved import MOVED, write_moved
from tools.verdicts import used_in

SITE = ROOT / HTML
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
CHAPTER = "chapters/1-softmax-expansion.html"
LANDING = "chapters/index.html"
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
# WCAG 2 contrast of two colors given as "rgb(r, g, b)".
CONTRAST = """
const luminance = (color) => {
  const part = color.match(/[\\d.]+/g).slice(0, 3).map((x) => {
    const c = x / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const contrast = (one, two) => {
  const [low, high] = [luminance(one), luminance(two)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
"""

# A formula as the page has it: its TeX, perhaps a number, and its letters.
SET = re.compile(
    rb' data-tex="([^"]*)">(<span class="eqno">.*?</span>)?'
    rb"<mjx-container.*?</mjx-container>",
    re.S,
)

# A formula is examined as one letter: its inside is MathJax's, and a page of formulas
# has twenty thousand elements. A drawing is examined without its shapes, but for those
# that are more than a shape. Code is examined without the spans that color it: their
# colors are some thirty, and have a test of their own.
PLAIN = """{
const says = ['id', 'role', 'title', 'tabindex', 'aria-label', 'aria-hidden'];
const silent = (element) => !says.some((name) => element.hasAttribute(name));
const shapes = 'path, use, line, rect, circle, ellipse, polygon, polyline';
for (const shape of document.querySelectorAll(`svg :is(${shapes})`))
  if (silent(shape) && !shape.children.length) shape.remove();
for (const formula of document.querySelectorAll('mjx-container'))
  formula.textContent = 'x';
for (const span of document.querySelectorAll('pre span, dt.sig span'))
  if (silent(span)) span.replaceWith(...span.childNodes);
for (const code of document.querySelectorAll('pre, dt.sig')) code.normalize();
}"""

# Texts that are painted alike have the same contrast, and it takes axe nine tenths of
# its time: of each kind it examines three. A kind is a color and a size of letters on
# the grounds behind them. What is positioned on its own can cover other things or be
# covered, and is a kind for itself.
EXAMPLES = """
const examples = () => {
  const grounds = new Map([[null, '']]), kinds = new Map();
  let alone = 0;
  const ground = (e) => {
    if (grounds.has(e)) return grounds.get(e);
    const s = getComputedStyle(e);
    const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter,
                 s.mixBlendMode, s.zIndex].join(' ');
    const plain = own === 'rgba(0, 0, 0, 0) none 1 none normal auto';
    const lifted = !['static', 'relative'].includes(s.position);
    const made = ground(e.parentElement)
      + (plain ? '' : ` | ${own}`) + (lifted ? ` | ${alone++}` : '');
    grounds.set(e, made);
    return made;
  };
  for (const e of document.body.querySelectorAll('*')) {
    const says = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!says && !e.matches('input, select, textarea, button')) continue;
    if (!e.checkVisibility({visibilityProperty: true}) || !e.getClientRects().length)
      continue;
    const s = getComputedStyle(e);
    const kind = [ground(e), s.color, s.fill, s.fontSize, s.fontWeight, s.textShadow,
                  e.matches('a, button, input, select, textarea')].join(' | ');
    kinds.set(kind, [...(kinds.get(kind) ?? []), e]);
  }
  return [...kinds.values()].flatMap((all) =>
    [...new Set([all[0], all[all.length >> 1], all.at(-1)])]);
};
"""


def pages():
    """Addresses of the reading pages, less those that only lead to others."""
    names = (p.relative_to(SITE).as_posix() for p in SITE.rglob("*.html"))
    kept = (p for p in names if "_static" not in p and not p.endswith(SUFFIX))
    return sorted(p for p in kept if p not in {"index.html", *MOVED})


@cache
def soup_of(name):
    """The elements of a page; many tests look at them, none changes them."""
    soup = parsed(with_plain_formulas((SITE / name).read_text("utf-8")))
    gc.freeze()  # it stays to the end, and the collector need not go through it again
    return soup


def opened(context, address, seen):
    """A page of the site, with all it complains of appended to ``seen``."""
    page = context.new_page()
    host = re.match(r"https?://[^/]+/", address).group()

    def failed(request):
        # What a page that is left at once still asks for, such as its icon, is aborted.
        if request.failure != "net::ERR_ABORTED":
            seen.append(f"failed: {request.url}: {request.failure}")

    page.on("console", lambda m: m.type == "error" and seen.append(m.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("requestfailed", failed)
    page.on(
        "response", lambda r: r.status >= 400 and seen.append(f"{r.status}: {r.url}")
    )

    def foreign(request):
        if not request.url.startswith((host, "data:")):
            seen.append(f"foreign: {request.url}")

    page.on("request", foreign)
    page.goto(address)
    return page


def test_root_leads_to_the_landing_page(site, browser):
    page = browser.new_page()
    page.goto(site, wait_until="commit")
    page.wait_for_url("**/chapters/index.html")
    assert page.title().startswith("Attention in the Limit")
    page.close()


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("old", MOVED)
def test_old_address_leads_to_the_new_one(site, browser, old, scripts):
    context = browser.new_context(java_script_enabled=scripts)
    page, seen = context.new_page(), []
    page.on("console", lambda m: "Policy" in m.text and seen.append(m.text))
    page.goto(f"{site}{old}#thm-x", wait_until="commit")
    page.wait_for_url(f"{site}{MOVED[old]}{'#thm-x' if scripts else ''}")
    assert seen == []
    context.close()


def test_old_address_that_leads_nowhere_is_refused(tmp_path):
    with pytest.raises(PipelineError, match=r"^old\.html leads to x\.html, which"):
        write_moved(tmp_path, {"old.html": "x.html"})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", pages())
def test_page_passes_the_gate(site, browser, name):
    """Quiet, as wide as its window, and nothing for axe to say in either scheme.

    All rules are tried in the light; what changes in the dark is the contrast.
    """
    assert complaints(site, browser, name) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", pages())
def test_every_text_of_a_page_has_contrast(site, browser, name):
    assert complaints(site, browser, name, every=True) == []


def test_gate_notices_what_it_is_for(site, browser):
    """Faults planted in a page, each of which changes one thing."""
    planted = """{
      const texts = document.querySelectorAll('article p');
      ['pale', 'ground', 'faint'].forEach((name, k) => (texts[k].id = name));
      texts[0].style.color = '#999';
      texts[1].style.background = '#555';
      texts[2].style.opacity = 0.4;
      const broad = document.createElement('div');
      broad.style.width = '3000px';
      broad.style.height = '1px';
      const lost = document.createElement('p');
      lost.textContent = 'in no landmark';
      document.body.append(
        lost, broad, new Image(9, 9), document.createElement('input'));
      texts[0].before(document.createElement('h2'));
      console.error('dropped');
    }"""
    name = "chapters/reference/bibliography.html"
    reported = complaints(site, browser, name, script=planted)
    contrast = "axe color-contrast: ['#"
    for fault in ("dropped", *(
        f"{size}{each}" for size in SIZES for each in (
            " scrolls", ", light: axe image-alt", ", light: axe label",
            ", light: axe region", ", light: axe empty-heading",
            *(f", light: {contrast}{place}" for place in ("pale", "ground", "faint")),
            f", dark: {contrast}faint",
        )
    )):  # fmt: skip
        assert any(each.startswith(fault) for each in reported), (fault, reported)


def complaints(site, browser, name, every=False, script="0"):
    """What a page of the site does wrong, after a script has changed it.

    It is opened once and then made narrow; how it opens on a phone is tested elsewhere.
    """
    width, height = SIZES["wide"]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="light",
        reduced_motion="reduce",
    )
    seen = []
    page = opened(context, site + name, seen)
    page.evaluate(script)
    for size in SIZES:
        resize(page, size)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            seen.append(f"{size} scrolls {wide} px sideways")
    # Answers are folded; what is in them counts as well.
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate(PLAIN)
    page.evaluate(AXE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        for size in SIZES:
            resize(page, size)
            violations = [] if scheme == "dark" else axe_violations(page)
            violations += low_contrast(page, every)
            seen += [f"{size}, {scheme}: {violation}" for violation in violations]
    context.close()
    return seen


def resize(page, size):
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(f"innerWidth === {width}")
    frames(page)  # what watches sizes is told in the next one


def axe_violations(page):
    """What axe finds, of any impact, but for the contrast of texts."""
    rules = {"label-content-name-mismatch": True, "color-contrast": False}
    chosen = {name: {"enabled": on} for name, on in rules.items()}
    return examined(page, f"document, {{rules: {json.dumps(chosen)}}}")


def low_contrast(page, every=False):
    """The texts of too little contrast, found in some of each kind or in all."""
    where = "document" if every else "{include: examples()}"
    return examined(page, f"{where}, {{runOnly: ['color-contrast']}}")


def examined(page, arguments):
    result = page.evaluate(f"""() => {{
      {EXAMPLES}
      const run = (where, options) =>
        axe.run(where, {{preload: false, resultTypes: ['violations'], ...options}});
      return run({arguments});
    }}""")
    return [
        f"axe {violation['id']}: {node['target']} {node['html'][:120]}"
        for violation in result["violations"]
        for node in violation["nodes"]
    ]


def test_colors_of_the_code_are_legible_in_both_schemes(site, browser):
    """Each color that the highlighting uses anywhere, on the ground of its box."""

    def chain(tag):
        """Names and classes of what a tag is in, from the article down, and its own."""
        if tag.name == "article":
            return ()
        own = [] if tag.name == "section" else [(tag.name, *tag.get("class", ()))]
        return (*chain(tag.parent), *own)

    kinds = {
        chain(span)
        for name in pages()
        for box in soup_of(name).find_all(["pre", "dt"])
        if box.name == "pre" or "sig" in box.get("class", ())
        for span in box.find_all("span", class_=True)
        if span.get_text(strip=True)
    }
    assert len(kinds) > 20
    page = opened(context := browser.new_context(), site + CHAPTER, [])
    measure = (
        "(kinds) => {"
        + CONTRAST
        + """
        const inside = (place, tag, name) => {
          const made = document.createElement(tag);
          made.className = name.join(' ');
          place.append(made);
          return made;
        };
        return kinds.map((kind) => {
          let place = document.querySelector('article');
          for (const [tag, ...name] of kind) place = inside(place, tag, name);
          place.textContent = 'x';
          let ground = place, paper;
          do paper = getComputedStyle(ground).backgroundColor;
          while (paper === 'rgba(0, 0, 0, 0)' && (ground = ground.parentElement));
          return [contrast(getComputedStyle(place).color, paper), kind];
        });
      }"""
    )
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.reload(wait_until="load")
        measured = page.evaluate(measure, sorted(kinds))
        assert [each for each in measured if each[0] < 4.5] == []
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(set(grounds)) == 2
    context.close()


@pytest.mark.parametrize("name", pages())
def test_page_is_well_formed(name):
    soup = soup_of(name)
    assert len(soup.find_all("h1")) == 1
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert sorted(ids) == sorted(set(ids))
    for picture in soup.find_all(class_="book-figure"):
        image = picture.find(attrs={"role": "img"})
        assert len(image["aria-label"]) >= 40
    for image in soup.find_all("img"):
        assert image.get("alt")
    for svg in soup.select(".book-figure svg"):
        for used in re.findall(r'(?:url\(#|href="#)([^)"]+)', str(svg)):
            assert svg.find(id=used), f"{used} is not in its own drawing"


def test_links_and_anchors_resolve():
    @cache
    def known(name):
        return {tag["id"] for tag in soup_of(name)(id=True)}

    broken = []
    for name in pages():
        soup = soup_of(name)
        for tag in soup.find_all("a", href=True):
            target, anchor = urldefrag(urljoin(f"/{name}", tag["href"]))
            if target.startswith(("http://", "https://", "mailto:")):
                continue
            target = unquote(target).removeprefix(base_path(public_address()))
            target = target.lstrip("/")
            if not (SITE / target).is_file():
                broken.append(f"{name}: {tag['href']} leads nowhere")
            elif not anchor or not target.endswith(".html"):
                continue
            elif unquote(anchor) not in known(target):
                broken.append(f"{name}: {tag['href']} has no such anchor")
    assert broken == []


def test_every_icon_asked_for_is_drawn():
    drawn = set(
        re.findall(r"\.(fa-[a-z-]+) \{", (SITE / "_static/icons.css").read_text())
    )
    asked = set()
    for name in pages():
        for tag in soup_of(name)(["i", "span"]):
            asked |= {c for c in tag.get("class", ()) if c.startswith("fa-")}
    assert asked - {"fa-solid", "fa-lg"} <= drawn


def test_policy_refuses_what_the_page_did_not_bring(site, browser):
    page = browser.new_page()
    page.goto(site + LANDING)
    page.evaluate(
        "() => { const s = document.createElement('script'); s.text = 'window.x = 1';"
        " document.body.append(s); }"
    )
    assert page.evaluate("window.x") is None
    page.close()


def with_policy(html):
    tree = parsed(html)
    set_policy(tree, "a page")
    return str(tree)


def test_policy_names_inline_scripts_and_nothing_is_a_handler():
    html = '<head></head><script>a()</script><script type="application/json">1</script>'
    policy = re.search(r'content="([^"]+)"', with_policy(html)).group(1)
    assert policy.count("'sha256-") == 1
    assert "unsafe" not in policy.split("script-src")[1]
    for name in pages():
        assert not re.search(r"<[^>]+\son[a-z]+=", (SITE / name).read_text("utf-8"))
    assert "sha256" not in with_policy('<head></head><script src="a.js"></script>')


def test_verdicts_and_statements_lead_to_each_other(site, browser):
    page = browser.new_page()
    page.goto(site + CHAPTER, wait_until="networkidle")
    assert page.locator(".verdict").count() >= 5
    assert page.locator("mjx-container").count() > 20
    assert page.locator(".book-figure svg:visible").count() > 0
    hrefs = "all => all.map((link) => link.getAttribute('href'))"
    for statement in {*page.locator(".verdict a").evaluate_all(hrefs)}:
        assert page.locator(statement).locator(".statement-checks a").count() >= 1
    for link in page.locator(".statement-checks a").evaluate_all(hrefs):
        other, anchor = urldefrag(urljoin(CHAPTER, link))
        assert soup_of(other).find(id=anchor)
    page.goto(f"{site}chapters/reference/more-checks-1.html")
    link = page.locator(".verdict a").first
    assert link.get_attribute("href").startswith("../1-softmax-expansion.html#")
    page.close()


def test_scoreboard_shows_every_verdict(site, browser):
    shown = sum(len(soup_of(name).find_all(class_="verdict")) for name in pages())
    page = browser.new_page()
    page.goto(f"{site}chapters/reference/scoreboard.html")
    assert page.locator(".claims tbody tr").count() == shown > 0
    assert "not run" not in page.locator("article").inner_text()
    page.close()


def public_modules():
    """Modules of lib by name, and the public ones in their packages."""
    modules = [import_module(f"lib.{m.name}") for m in iter_modules(lib.__path__)]
    inner = [getattr(m, n) for m in modules for n in getattr(m, "__all__", ())]
    modules += [thing for thing in inner if ismodule(thing)]
    names = {m.__name__ for m in modules} - {"lib.core"}
    return {name for name in names if "._" not in name}


def test_every_public_function_is_documented_with_its_uses():
    soup = soup_of("chapters/reference/api.html")
    entries, used = {tag["id"]: tag for tag in soup(id=True)}, used_in()
    modules = {n for n in used if ismodule(resolve_name(n))}
    for name, pages_of in used.items():
        # Data, as the presets, and what Python does with them have no entry.
        if (getattr(resolve_name(name), "__module__", None) or "").startswith("lib."):
            assert name in entries, f"{name} is not on the page"
            links = [a["href"] for a in entries[name].parent("a", href=True)]
            for page in pages_of:
                assert any(page.split("/")[-1] in link for link in links)
    listed = {tag.code.text for tag in soup.find_all("h2")}
    assert public_modules() <= listed <= public_modules() | modules


def test_search_is_asked_by_the_keyboard(site, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    seen = []
    page = opened(context, f"{site}search.html?q=Jacobian", seen)
    page.wait_for_selector("ul.search li a")
    links = [a.get_attribute("href") for a in page.locator("ul.search li a").all()]
    assert any("1-softmax-expansion.html" in link for link in links)
    page.goto(site + LANDING, wait_until="networkidle")
    page.keyboard.press("Control+K")
    page.keyboard.type("temperature")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=temperature*")
    page.wait_for_selector("ul.search li a")
    assert seen == []
    context.close()


@pytest.mark.parametrize(
    ("word", "first", "also"),
    [
        ("metastability", "chapters/4-mean-field-sphere.html", ""),
        ("Bartlett", "chapters/5-non-gaussian", "reference/api.html"),
        ("distance_law", "chapters/2-proportional-limits.html", "reference/api.html"),
    ],
)
def test_search_finds_words_of_the_text_and_names_of_functions(
    site, browser, word, first, also
):
    seen = []
    context = browser.new_context()
    page = opened(context, f"{site}search.html", seen)
    # The second form of the page is that of the theme's dialog.
    page.locator(".bd-search-container input[name=q]").fill(word)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/search.html?q={word}*")
    page.locator("#search-status", has_text="finished").wait_for()
    links = [a.get_attribute("href") for a in page.locator("ul.search li > a").all()]
    assert first in links[0] and any(also in link for link in links)
    shown = page.locator("ul.search li").all_inner_texts()
    assert any(word[:6].lower() in text.lower() for text in shown)
    field = page.locator(".bd-search-container input[name=q]")
    icon = page.locator(".bd-search-container .bd-search i").bounding_box()
    inside = field.evaluate(
        "e => e.getBoundingClientRect().x + parseFloat(getComputedStyle(e).paddingLeft)"
    )
    assert icon["x"] + icon["width"] <= inside
    page.locator("ul.search li > a").first.click()
    page.wait_for_url(f"**/{first}*")
    assert seen == []
    context.close()


@pytest.mark.parametrize("name", ["nowhere", "chapters/reference/no/such/page.html"])
def test_unknown_address_gets_the_page_of_unknown_addresses(site, browser, name):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(site + name)
    assert refused.value.code == 404
    assert refused.value.headers["Content-Type"].startswith("text/html")
    context, seen = browser.new_context(), []
    page = opened(context, site + name, seen)
    # That the page itself is not there is the one complaint.
    assert all("404" in each for each in seen) and len(seen) == 2, seen
    assert page.locator("h1").inner_text().startswith("Page not found")
    fonts = page.locator("h1").evaluate("e => getComputedStyle(e).fontFamily")
    assert "Charter" in fonts  # its style sheet was found
    chapters = page.locator("article ul a")
    assert chapters.count() == len(list((ROOT / "chapters").glob("[0-9]*.md")))
    chapters.first.click()
    page.wait_for_url("**/chapters/1-softmax-expansion.html")
    page.go_back()
    page.locator("article input[name=q]").fill("Jacobian")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=Jacobian")
    page.wait_for_selector("ul.search li a")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_legible_on_their_page(site, browser, scheme):
    """Text in a figure has contrast 4.5 to the page, marks and lines have 3."""
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(site + CHAPTER, wait_until="networkidle")
    contrasts = page.evaluate(
        "() => {"
        + CONTRAST
        + """
        const ground = getComputedStyle(document.body).backgroundColor;
        const paint = (style) => [style.fill, style.stroke].filter(
          (c) => c && c !== 'none' && !c.startsWith('url'));
        const worst = {text: Infinity, mark: Infinity};
        for (const svg of document.querySelectorAll('.book-figure svg')) {
          for (const part of svg.querySelectorAll('text, path, use, line, rect')) {
            if (part.closest('defs, clipPath, .grid')) continue;
            const style = getComputedStyle(part);
            if (style.strokeOpacity < 0.9 || style.opacity < 0.9) continue;
            const kind = part.tagName === 'text' ? 'text' : 'mark';
            const colors = paint(style).map((c) => contrast(c, ground));
            if (colors.length) worst[kind] = Math.min(worst[kind], Math.max(...colors));
          }
        }
        return worst;
      }"""
    )
    assert contrasts["text"] >= 4.5
    assert contrasts["mark"] >= 3
    ink, body = page.evaluate(
        "[getComputedStyle(document.querySelector('.book-figure svg')).color,"
        " getComputedStyle(document.body).color]"
    )
    assert ink == body
    context.close()


def test_lines_of_text_have_readable_length(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(site + CHAPTER, wait_until="networkidle")
    arrived(page)
    # Characters of the longest paragraphs over the lines they take; those of formulas
    # are no characters of the page.
    measured = page.evaluate(
        """() => [...document.querySelectorAll('article > section p')]
        .filter((p) => p.textContent.length > 300 && !p.querySelector('mjx-container'))
        .map((p) => p.textContent.length / (p.getBoundingClientRect().height
             / parseFloat(getComputedStyle(p).lineHeight)))"""
    )
    assert measured and all(55 <= each <= 75 for each in measured)
    page.close()


def test_pages_are_light(site, browser):
    assert 50_000 < cold_visit(browser, site + LANDING)[1] <= 350_000
    heavy = max(pages(), key=lambda name: (SITE / name).stat().st_size)
    for name in {heavy, CHAPTER}:
        assert 100_000 < cold_visit(browser, site + name)[1] <= 600_000


def test_page_and_its_explorers_stay_within_their_budget():
    for name in pages():
        soup = soup_of(name)
        sizes = [len(str(each).encode()) for each in soup.select(".book-explorer")]
        assert sum(sizes) <= 800_000, name
        page = (SITE / name).read_bytes()
        # Letters of formulas are much the same again and again: they count in what is
        # sent, and beside their TeX not in what is written and drawn.
        assert len(gzip.compress(page)) <= 250_000, name
        assert len(SET.sub(rb">\2\\(\1\\)", page)) <= 1_000_000, name


def test_pages_travel_compressed(site):
    request = urllib.request.Request(
        site + LANDING, headers={"Accept-Encoding": "gzip"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert b"<html" in gzip.decompress(answer.read())


def test_full_port_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "tools.serve", "--port", str(port)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1 and result.stderr.startswith(
        f"error: port {port} is taken"
    )


# Its first explorer is in a section with a star, which its address opens.
FOLDED = "#where-the-series-fails"


def test_explorer_answers_arrow_keys_and_mouse(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site}{CHAPTER}{FOLDED}", wait_until="networkidle")
    explorer = page.locator(".book-explorer").first
    slider, value = explorer.locator("input").first, explorer.locator("output").first
    drawing, seen = explorer.locator("[role=img]"), set()
    slider.focus()
    for key in ("Home", "ArrowRight", "End"):
        slider.press(key)
        seen.add((value.inner_text(), drawing.inner_html()))
    box = slider.bounding_box()
    # A stop between the second and the last.
    page.mouse.click(box["x"] + box["width"] * 0.66, box["y"] + box["height"] / 2)
    seen.add((value.inner_text(), drawing.inner_html()))
    assert len({text for text, _ in seen}) == len({svg for _, svg in seen}) == 4
    page.close()


def test_explorer_answers_a_finger(site, browser):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{site}{CHAPTER}{FOLDED}", wait_until="networkidle")
    explorer = page.locator(".book-explorer").first
    slider, value = explorer.locator("input").first, explorer.locator("output").first
    slider.scroll_into_view_if_needed()
    before, box = value.inner_text(), slider.bounding_box()
    assert box["height"] >= 44
    page.touchscreen.tap(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    assert value.inner_text() != before
    context.close()


def test_explorer_shows_its_first_frame_without_scripts(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + CHAPTER)
    assert page.locator(".book-explorer:not(.further *) svg").first.is_visible()
    assert not page.locator(".explorer-controls").first.is_visible()
    # A theme is there without scripts as well: code is legible.
    pair = page.evaluate(
        "() => {"
        + CONTRAST
        + """
        const code = document.querySelector('.cell_input pre');
        const style = getComputedStyle(code);
        return contrast(style.color, style.backgroundColor);
      }"""
    )
    assert pair >= 4.5
    context.close()


def test_paper_has_the_figures_and_not_the_controls(site, browser):
    page = browser.new_page()
    page.goto(site + CHAPTER, wait_until="networkidle")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".book-figure svg:visible").count() > 0
    assert page.locator("h1").is_visible()
    for hidden in (".explorer-controls", ".bd-sidebar-primary", ".copybtn"):
        assert page.locator(hidden).count() > 0
        assert page.locator(f"{hidden}:visible").count() == 0
    # Answers are open, and a sentence stands for the sliders.
    fold = page.locator("details.sd-dropdown").first
    assert fold.get_attribute("open") is None
    assert fold.locator("p").last.evaluate("e => e.checkVisibility()")
    assert "sliders" in page.locator(".book-explorer").first.evaluate(
        "e => getComputedStyle(e, '::after').content"
    )
    # Black on white, whatever the theme on the screen.
    colors = page.evaluate(
        "['color', 'backgroundColor'].map((k) =>"
        " getComputedStyle(document.querySelector('.bd-article'))[k])"
    )
    assert colors == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    code = page.locator(".cell_input pre").first
    assert code.evaluate("e => getComputedStyle(e).color") == colors[0]
    assert code.evaluate("e => getComputedStyle(e).backgroundColor") == colors[1]
    assert page.pdf().startswith(b"%PDF")
    page.close()


def test_nothing_moves_for_who_asked_for_stillness(site, browser):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(site + CHAPTER, wait_until="networkidle")
    moving = page.evaluate(
        """() => [...document.querySelectorAll('*')].filter((e) => {
          const s = getComputedStyle(e);
          return s.animationName !== 'none' && parseFloat(s.animationDuration) > 0
            || s.transitionProperty !== 'none' && parseFloat(s.transitionDuration) > 0;
        }).map((e) => e.tagName + '.' + e.className)"""
    )
    assert moving == []
    context.close()
