"""Sections with a star: what stands open, what a line leads to, who opens them."""

import pytest
from test_site import pages, soup_of
from waits import frames

from tools.command import PipelineError
from tools.site.further import STAR, fold_further, has_star
from tools.site.markup import parsed
from tools.texts import texts

LEAD, REST = "<p>Why?</p>", "<p>So.</p><figure></figure>"
LAW = '<div class="proof"><p class="admonition-title"><span class="caption-number">'
CHAPTER = "chapters/2-proportional-limits.html"


def section(title, *parts, level="h2"):
    mark = '<a class="headerlink" href="#a">#</a>'
    return f"<section><{level}>{title}{mark}</{level}>{''.join(parts)}</section>"


def folded(*sections):
    tree = parsed(
        f"<article><section><h1>T</h1>{''.join(sections)}</section></article>"
    )
    fold_further(tree, "a.html")
    return tree


@pytest.mark.parametrize("level", ["h2", "h3"])
def test_the_beginning_stands_open_and_the_rest_behind_a_line(level):
    tree = folded(section("Block ⋆", LEAD, REST, level=level), section("B", LEAD, REST))
    (fold,) = tree.select("details")
    assert "open" not in fold.attrs and fold["class"] == ["further"]
    assert [each.name for each in fold.parent.find_all(recursive=False)] == [
        *(level, "p", "details")
    ]
    assert [each.name for each in fold.find_all(recursive=False)] == [
        *("summary", "p", "figure")
    ]


def test_the_line_says_what_there_is():
    law = f"{LAW}Theorem 2.10 </span></p></div>"
    lines = [
        folded(section("A ⋆", LEAD, rest)).summary.get_text().partition(" (")[0]
        for rest in ("<p></p>", REST, law, law + REST + REST)
    ]
    assert lines == [
        "Read on", "Read on: 1 figure", "Read on: Theorem 2.10",
        "Read on: Theorem 2.10, 2 figures",
    ]  # fmt: skip


def test_a_paragraph_with_a_check_is_a_beginning():
    lead = f'<div class="checked">{LEAD}<details class="checks"></details></div>'
    tree = folded(section("A ⋆", lead, REST))
    assert tree.select_one("section > .checked + details.further > figure")


def test_a_star_within_a_title_is_no_star():
    assert not folded(section("A ⋆ B", LEAD, REST)).select("details")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([REST.removeprefix("<p>So.</p>"), LEAD], "'A ⋆' has to begin with a text"),
        ([], "'A ⋆' has to begin with a text"),
        ([LEAD, section("B ⋆", LEAD, level="h3")], "'B ⋆' is in a section with a star"),
    ],
)
def test_what_cannot_be_folded_is_refused(parts, reason):
    with pytest.raises(PipelineError, match=f"a.html: .*{reason}"):
        folded(section("A ⋆", *parts))


def test_every_star_of_a_text_folds_a_section_of_its_page():
    starred = 0
    for page in pages():
        soup = soup_of(page)
        heads = [h for h in soup.select("article :is(h2, h3)") if has_star(h)]
        folds = soup.select("article details.further")
        assert [fold.parent.find(["h2", "h3"]) for fold in folds] == heads
        starred += len(heads)
    written = [line for t in texts() for line in t.read_text("utf-8").splitlines()]
    titles = [line for line in written if line.startswith("#") and line.endswith(STAR)]
    assert len(titles) == starred > 10


@pytest.fixture
def chapter(visit):
    page, _ = visit(CHAPTER, whole=True)
    return page


def test_an_address_within_a_section_opens_it_and_so_does_its_own(chapter, site):
    fold = chapter.locator("details.further").last
    inside = fold.locator(".proof[id]").first.get_attribute("id")
    own = fold.locator("xpath=..").get_attribute("id")
    for name in (inside, own):
        chapter.goto(f"{site}{CHAPTER}#{name}")
        chapter.reload()
        assert fold.evaluate("(e) => e.open")
        assert -1 <= chapter.locator(f"#{name}").bounding_box()["y"] < 900
        assert not chapter.locator("details.further").first.evaluate("(e) => e.open")


def test_the_contents_list_opens_what_it_leads_to(chapter):
    fold = chapter.locator("details.further").last
    own = fold.locator("xpath=..").get_attribute("id")
    chapter.locator(f"#page-contents a[href='#{own}']").click()
    frames(chapter)
    assert fold.evaluate("(e) => e.open")


def test_on_paper_all_is_there_and_no_line(chapter):
    chapter.emulate_media(media="print")
    for fold in chapter.locator("details.further").all():
        assert not fold.locator(":scope > summary").is_visible()
        assert fold.locator(":scope > p").first.is_visible()


@pytest.mark.parametrize(
    ("width", "beside"), [(1280, True), (1100, False), (390, False)]
)
def test_a_chip_stands_beside_its_paragraph_where_there_is_room(chapter, width, beside):
    chapter.set_viewport_size({"width": width, "height": 900})
    frames(chapter)
    article = chapter.locator("article").bounding_box()
    for line in chapter.locator("article .checked:visible").all():
        text = line.locator(":scope > p").bounding_box()
        chip = line.locator(":scope > details > summary").bounding_box()
        assert (chip["x"] >= text["x"] + text["width"]) == beside
        assert chip["x"] + chip["width"] <= article["x"] + article["width"] + 1
        if beside:  # what follows may be as wide as the article
            end = line.bounding_box()["y"] + line.bounding_box()["height"]
            assert chip["y"] + chip["height"] <= end + 20
