"""Formulas that the build typesets: all of them, once, and none that is refused."""

import html
import json
import re

import pytest
from test_site import CHAPTER, LANDING, SITE, pages, soup_of

from tools.command import ROOT, PipelineError
from tools.site import typeset
from tools.site.typeset import Formula, Typesetter, typeset_site

SETTINGS = {"chtml": {"displayAlign": "left", "displayIndent": "2em"}}
NOTATION = "chapters/reference/notation.html"
SCOREBOARD = "chapters/reference/scoreboard.html"
MATH = '<span class="math notranslate nohighlight">{}</span>'
BLOCK = '<div class="math notranslate nohighlight"{}>\n{}</div>'
# As text: elements are made of a page where a test asks for them.
FORMULAS = [
    name
    for name in pages()
    if re.search(r'class="(?:[^"]* )?math[ "]', (SITE / name).read_text("utf-8"))
]


@pytest.fixture
def typesetter(tmp_path):
    return Typesetter(SETTINGS, tmp_path / "store.json")


def site_of(folder, **contents):
    """A folder of pages, typeset."""
    for name, text in contents.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    typeset_site(folder, Typesetter(SETTINGS, folder / "store.json"))
    return [(folder / f"{name}.html").read_text("utf-8") for name in contents]


# What a formula becomes.


def test_formula_has_its_letters_its_mathml_and_its_source(tmp_path):
    written = MATH.format(r"\(a &lt; \beta_1\)")
    (page,) = site_of(tmp_path, a=f"<p>{written}.</p>")
    assert page.startswith(
        '<p><span class="math notranslate nohighlight" data-tex="a &lt; \\beta_1">'
        '<mjx-container class="MathJax" jax="CHTML" tabindex="0">'
    )
    assert page.endswith("</mjx-container></span>.</p>")
    letters = re.findall(r'<mjx-c class="mjx-c(\w+)', page)
    assert [chr(int(each, 16)) for each in letters] == ["𝑎", "<", "𝛽", "1"]
    (spoken,) = re.findall("<math.*?</math>", page)
    assert re.sub("<.*?>", "", spoken) == "a&lt;β1"


@pytest.mark.parametrize(
    ("source", "tex"),
    [
        ("\\[x\\]", "x"),
        ("\\[\nx\n\\]", "x"),
        ("\\begin{align}x &amp;= 1\\end{align}", r"\begin{align}x &= 1\end{align}"),
    ],
)
def test_displayed_formula_starts_where_the_settings_say(tmp_path, source, tex):
    number = '<span class="eqno">(1)<a class="headerlink" href="#e">#</a></span>'
    block = BLOCK.format(' id="e"', number + source)
    (page,) = site_of(tmp_path, a=block)
    tag = rf'" id="e" data-tex="{re.escape(html.escape(tex))}">{re.escape(number)}'
    assert re.search(f"{tag}<mjx-container", page)
    assert 'display="true" justify="left"' in page and "margin-left: 2em" in page


def test_what_is_typeset_stays_as_it_is(tmp_path):
    before = site_of(tmp_path, a=MATH.format(r"\(x\)"), b="<p>words</p>")
    assert site_of(tmp_path, a=before[0], b=before[1]) == before
    assert before[1] == "<p>words</p>"


def test_previews_are_typeset(tmp_path):
    path = tmp_path / "a.previews.json"
    path.write_text(json.dumps({" s": [{"n": [1], "m": MATH.format(r"\(x\)")}]}))
    site_of(tmp_path, a="")
    ((preview,),) = json.loads(path.read_text("utf-8")).values()
    assert preview["n"] == [1] and 'data-tex="x"><mjx-container' in preview["m"]


def test_formula_in_another_form_stops_the_build(tmp_path):
    with pytest.raises(PipelineError, match=r"^a\.html: a formula is not typeset: <sp"):
        site_of(tmp_path, a=MATH.format(r"<b>x</b>"))


@pytest.mark.parametrize(
    ("tex", "why"),
    [
        (r"\frac{1}", "Missing argument for"),
        (r"\unheardof x", r"Undefined control sequence \\unheardof"),
        (r"x_1_2", "Double subscripts"),
        (r"\text{naïve}", "its fonts have no ï"),
        (r"\newcommand{\x}{y} \x", r"Undefined control sequence \\newcommand"),
    ],
)
def test_formula_that_is_refused_stops_the_build(tmp_path, tex, why):
    pages = {"a": MATH.format(r"\(y\)"), "b": MATH.format(rf"\({tex}\)")}
    said = rf"^b\.html: MathJax refuses the formula {re.escape(tex)}: {why}"
    with pytest.raises(PipelineError, match=said):
        site_of(tmp_path, **pages)
    assert (tmp_path / "b.html").read_text("utf-8") == pages["b"]


# What is kept between builds.


def test_formula_is_typeset_once(typesetter, monkeypatch):
    one, two = Formula("x", False), Formula("x", True)
    asked, ask = [], Typesetter.ask

    def watched(self, what, *about):
        asked.append(about[0])
        return ask(self, what, *about)

    monkeypatch.setattr(Typesetter, "ask", watched)
    first = typesetter.markups([one])[0]
    again = Typesetter(SETTINGS, typesetter.store).markups([two, one, two])[0]
    assert asked == [[one], [two]]  # in a line is not displayed
    assert again[one] == first[one] != again[two]
    other = Typesetter({"chtml": {"displayAlign": "right"}}, typesetter.store)
    assert other.markups([two])[0] != {two: again[two]} and asked[2:] == [[two]]


def test_refused_formula_is_not_kept(typesetter):
    good, bad = Formula("x", False), Formula("}", False)
    for _ in range(2):
        made, refused = typesetter.markups([good, bad])
        assert list(made) == [good] and list(refused) == [bad]


def test_formula_is_the_same_wherever_it_stands(typesetter, tmp_path):
    asked = [Formula(r"\begin{equation}x\label{a}\tag{1}\end{equation}", True)]
    asked += [Formula(r"\begin{equation}y\label{a}\tag{1}\end{equation}", True)]
    both, refused = typesetter.markups(asked)
    alone = Typesetter(SETTINGS, tmp_path / "other").markups(asked[1:])[0]
    assert refused == {} and both[asked[1]] == alone[asked[1]]


# The site.


def test_no_page_loads_mathjax():
    assert not [*(SITE / "_static").rglob("*mathjax*.js"), *SITE.rglob("tex-*.js")]
    for path in [*SITE.glob("*.html"), *SITE.glob("chapters/**/*.html")]:
        scripts = re.findall(r"<script\b.*?</script>", path.read_text("utf-8"), re.S)
        assert not any("MathJax" in each or "mathjax" in each for each in scripts), path


def test_every_formula_is_typeset_with_its_source():
    assert CHAPTER in FORMULAS and LANDING not in FORMULAS
    for path in [*SITE.glob("*.html"), *SITE.glob("chapters/**/*.html")]:
        text = path.read_text("utf-8")
        count = text.count("math notranslate nohighlight")
        assert text.count('<mjx-container class="MathJax"') == count, path
        assert text.count(" data-tex=") == text.count("<mjx-assistive-mml") == count
        assert "mjx-merror" not in text and "mjx-utext" not in text


@pytest.mark.parametrize("name", [n for n in FORMULAS if re.match(r"chapters/\d", n)])
def test_formulas_are_those_of_the_text(name):
    text = (ROOT / name).with_suffix(".md").read_text("utf-8")
    text = re.sub(r"^(`{3,})\{code-cell.*?^\1$", "", text, flags=re.M | re.S)
    written = re.findall(r"(?<![\\$`])\$([^$`\s][^$`]*)\$(?!\$)", text)
    shown = {" ".join(e["data-tex"].split()) for e in soup_of(name).select(".math")}
    missing = {each for each in written if " ".join(each.split()) not in shown}
    assert len(written) > 40 and missing == set()


@pytest.mark.parametrize("name", FORMULAS)
def test_style_sheet_of_a_page_has_its_letters(name):
    (link,) = soup_of(name).select("link[rel=stylesheet]")
    sheet = ((SITE / name).parent / link["href"]).resolve().read_text("utf-8")
    letters = re.findall('<mjx-c class="([^"]*)"', (SITE / name).read_text("utf-8"))
    asked = {tuple(each.split()) for each in letters}
    ruled = {
        tuple(rule.split("."))
        for rule in re.findall(r"\bmjx-c\.([\w.-]+)::before", sheet)
    }
    assert asked and asked <= ruled
    assert "font-size: calc(1ex / 0.442)" in sheet


def test_page_without_formulas_has_no_letters_of_theirs():
    (link,) = soup_of(LANDING).select("link[rel=stylesheet]")
    sheet = (SITE / "chapters" / link["href"]).read_text("utf-8")
    assert "mjx-c." not in sheet and len(sheet) > 50_000


BOXES = """[...document.querySelectorAll('article mjx-container')].map((e) => {
  const { left, top, width, height } = e.getBoundingClientRect();
  return [left, top + scrollY, width, height];
})"""
# Whether the letters of a formula are drawn by the style sheet.
DRAWN = """(e) => [...e.querySelectorAll('mjx-c')].every((letter) =>
  getComputedStyle(letter, '::before').content !== 'none')"""


def test_formulas_need_no_script_and_none_moves_them(site, browser):
    boxes = []
    for scripts in (False, True):
        context = browser.new_context(
            java_script_enabled=scripts, viewport={"width": 1280, "height": 900}
        )
        page, bad = context.new_page(), []
        page.on("requestfailed", lambda request, bad=bad: bad.append(request.url))
        page.goto(site + NOTATION)
        page.evaluate("document.fonts.ready")
        boxes.append(page.evaluate(BOXES))
        article = page.locator("article")
        assert not re.search(r"\\\(|\\\[|\\frac|\\mathbb", article.inner_text())
        assert article.locator("mjx-container").first.evaluate(DRAWN) and bad == []
        context.close()
    assert boxes[0] == boxes[1] and len(boxes[0]) > 1000
    assert all(width > 2 and height > 2 for _, _, width, height in boxes[0])


def test_letters_are_as_high_as_those_around_them(site, browser):
    """An x of a formula has the height of an x of the text, wherever that is."""
    page = browser.new_page()
    page.goto(site + CHAPTER)
    apart = page.evaluate("""() => {
      const ruler = document.createElement('span');
      ruler.style.cssText = 'display: inline-block; height: 60ex; width: 1px';
      for (const fold of document.querySelectorAll('details')) fold.open = true;
      return [...document.querySelectorAll('article mjx-container')]
        .filter((e) => e.checkVisibility()).map((e) => {
          e.before(ruler);
          const text = ruler.getBoundingClientRect().height / 60;
          return 0.442 * parseFloat(getComputedStyle(e).fontSize) / text;
        });
    }""")
    assert len(apart) > 300 and all(abs(each - 1) < 0.01 for each in apart)
    page.close()


def copied(page):
    page.evaluate(
        "addEventListener('copy', (e) =>"
        " (window.copied = e.clipboardData.getData('text/plain')), { once: true })"
    )
    page.keyboard.press("Control+C")
    return page.wait_for_function("() => window.copied").json_value()


def test_formula_is_copied_as_tex(site, browser):
    page = browser.new_page()
    page.goto(site + CHAPTER)
    paragraph = page.locator("article section > p:has(> .math)").first
    paragraph.evaluate("(e) => getSelection().selectAllChildren(e)")
    text = copied(page)
    sources = paragraph.locator("[data-tex]").evaluate_all(
        "all => all.map((e) => e.dataset.tex)"
    )
    assert sources and all(f"${tex}$" in text for tex in sources)
    words = paragraph.evaluate("(e) => e.firstChild.data.trim()")
    assert " ".join(words.split()) in " ".join(text.split())
    page.reload()
    formula = page.locator("article div.math mjx-container").first
    formula.click()
    source = formula.evaluate("(e) => e.closest('[data-tex]').dataset.tex")
    assert copied(page) == source and "\\" in source
    page.close()


def test_the_way_back_is_not_copied_with_the_statement_that_it_stands_in(site, browser):
    page = browser.new_page()
    page.goto(site + CHAPTER)
    page.locator("article section > p > a.internal[href^='#']").first.click()
    place = page.locator(".way-back:visible").locator("..")
    place.evaluate("(e) => getSelection().selectAllChildren(e)")
    text = copied(page)
    assert "Back to where" not in text and "$" in text
    page.close()


def test_copying_words_is_left_to_the_browser(site, browser):
    page = browser.new_page()
    page.goto(site + CHAPTER)
    page.locator("h1").evaluate("(e) => getSelection().selectAllChildren(e)")
    page.evaluate(
        "addEventListener('copy', (e) => (window.ours = String(e.defaultPrevented)))"
    )
    page.keyboard.press("Control+C")
    assert page.wait_for_function("() => window.ours").json_value() == "false"
    page.close()


def test_preview_brings_the_letters_that_its_page_lacks(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(site + SCOREBOARD)
    assert page.locator("article mjx-container").count() == 0
    link = page.locator("article a.internal[href*='#thm-']:visible").first
    link.scroll_into_view_if_needed()
    link.hover()
    formula = page.locator(".preview mjx-container").first
    formula.wait_for()
    page.wait_for_function(f"(e) => ({DRAWN})(e)", arg=formula.element_handle())
    page.close()


def test_site_is_made_with_the_settings_of_the_book():
    assert 'justify="left"' in (SITE / CHAPTER).read_text("utf-8")
    store = json.loads((SITE.parent / typeset.STORE).read_text("utf-8"))
    assert len(store["formulas"]) > 2000
