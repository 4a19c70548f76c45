"""Heads, sitemap and shared picture: with the address of the site, and without it."""

import re
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image

from tools import head
from tools.card import draw
from tools.command import ROOT
from tools.finish import with_absolute_paths
from tools.serve import HTML
from tools.site import publish

ADDRESS = "https://books.example.org/limit/"
SITE = ROOT / HTML
NEEDS_ADDRESS = {"og:url", "og:image", "twitter:card"}


def tags_of(page, address, sentence="A sentence."):
    soup = BeautifulSoup(
        head.head_tags(page, 'A "title"', sentence, address), "html.parser"
    )
    return soup, {
        tag.get("name") or tag.get("property"): tag["content"]
        for tag in soup.find_all("meta")
    }


def test_address_is_that_of_pyproject_or_none():
    empty = "[project]\nname = 'x'\n[project.urls]\n"
    assert head.public_address("[project]\nname = 'x'\n") is None
    assert head.public_address(empty) is None
    for written in ("https://books.example.org/limit", ADDRESS):
        assert head.public_address(f"{empty}Homepage = '{written}'\n") == ADDRESS
    for wrong in ("http://x.org", "x.org", "https://x.org/?a=1", ""):
        with pytest.raises(ValueError, match=f"Homepage.*{re.escape(repr(wrong))}"):
            head.public_address(f"{empty}Homepage = '{wrong}'\n")
    assert head.base_path(None) == head.base_path("https://x.org/") == "/"
    assert head.base_path(ADDRESS) == "/limit/"


@pytest.mark.parametrize("address", [None, ADDRESS])
def test_tags_of_a_page(address):
    soup, tags = tags_of("chapters/9-x", address)
    assert tags["description"] == tags["og:description"] == "A sentence."
    assert tags["og:title"] == 'A "title"' and tags["og:type"] == "article"
    assert tags["og:site_name"] == head.BOOK and "robots" not in tags
    if address is None:
        assert not NEEDS_ADDRESS & set(tags) and not soup.find("link")
        assert "://" not in str(soup)
    else:
        place = f"{ADDRESS}chapters/9-x.html"
        assert soup.find("link", rel="canonical")["href"] == tags["og:url"] == place
        assert tags["og:image"] == f"{ADDRESS}{head.CARD}"
        assert tags["og:image:alt"] == head.CARD_ALT


@pytest.mark.parametrize("address", [None, ADDRESS])
def test_tags_of_landing_page_root_and_unlisted_pages(address):
    for page in (head.LANDING, head.ROOT_PAGE):
        soup, tags = tags_of(page, address)
        assert tags["og:type"] == "website" and tags["og:title"] == head.BOOK
        assert tags["description"] == head.ABOUT
        if address:
            assert tags["og:url"] == f"{ADDRESS}chapters/index.html"
    for page in head.UNLISTED:
        soup, tags = tags_of(page, address)
        assert set(tags) == {"description", "robots"} and not soup.find("link")
        assert tags["robots"] == "noindex"


def test_description_is_whole_sentences_without_formulas():
    def of(*parts):
        paragraph = nodes.paragraph("", "", *parts)
        section = nodes.section("", nodes.title(text="x"), paragraph)
        document = nodes.document(None, None)
        document += section
        return head.description(document)

    text, formula = nodes.Text, nodes.math(text="n")
    assert of(text("One is\nlong. Two?"), nodes.emphasis(text=" So.")) == (
        "One is long. Two? So."
    )
    assert of(text("First. Of size "), formula, text(" here. Third.")) == "First."
    assert of(text("Of size "), nodes.math(text="n"), text(". Next.")) == "Next."
    assert of(text("Kept. " + "word " * 40 + "end.")) == "Kept."
    cut = of(text("word, " * 40 + "end."))
    assert cut.endswith("word…") and 150 < len(cut) <= head.LIMIT
    assert of(formula) == head.description(None) == ""
    assert tags_of("chapters/9-x", None, "")[1]["description"].startswith("A ")


def test_sitemap_and_robots_only_where_the_address_is_known(tmp_path):
    (tmp_path / "_static").mkdir()
    pages = ["chapters/index", "chapters/2-b", "chapters/1-a", *head.UNLISTED, "index"]
    publish(tmp_path, pages, None)
    assert [path.name for path in tmp_path.rglob("*")] == ["_static"]
    publish(tmp_path, pages, ADDRESS)
    tree = ElementTree.fromstring((tmp_path / "sitemap.xml").read_text("utf-8"))
    places = [each.text for each in tree.iter() if each.tag.endswith("loc")]
    assert places == [
        f"{ADDRESS}chapters/{name}.html" for name in ("1-a", "2-b", "index")
    ]
    assert f"Sitemap: {ADDRESS}sitemap.xml\n" in (tmp_path / "robots.txt").read_text()
    assert (tmp_path / head.CARD).is_file()


def test_picture_has_its_size_and_is_the_same_each_time(tmp_path):
    for name in ("a.png", "b.png"):
        draw(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == head.CARD_SIZE
        assert len(picture.convert("RGB").getcolors(100_000)) > 20


@pytest.mark.parametrize("base", ["/", "/limit/"])
def test_absolute_paths(base):
    html = (
        '<html data-content_root="./"><a href="a/b.html#c"><a href="#d"><a href="/e">'
        '<script src="_static/x.js?v=1"><form action="search.html">'
        '<a href="https://x.org/"><img src="data:image/png;base64,x">'
        '<a href="mailto:x">'
    )
    assert with_absolute_paths(html, base) == (
        f'<html data-content_root="{base}"><a href="{base}a/b.html#c"><a href="#d">'
        f'<a href="/e"><script src="{base}_static/x.js?v=1">'
        f'<form action="{base}search.html"><a href="https://x.org/">'
        '<img src="data:image/png;base64,x"><a href="mailto:x">'
    )


def test_every_built_page_says_what_it_is(site):
    address = head.public_address()
    seen = []
    for path in SITE.rglob("*.html"):
        if "_static" in path.parts:
            continue
        soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        seen.append(soup.title.text)
        assert head.BOOK in soup.title.text and len(soup.head.find_all("title")) == 1
        (tag,) = soup.find_all("meta", attrs={"name": "description"})
        assert 25 <= len(tag["content"]) <= head.LIMIT
        assert not set("\\${}<\0") & set(tag["content"]), path
        if path.relative_to(SITE).with_suffix("").as_posix() in head.UNLISTED:
            assert soup.find("meta", attrs={"name": "robots"})["content"] == "noindex"
        else:
            assert soup.find("meta", property="og:title")
            assert bool(address) == bool(soup.find("link", rel="canonical"))
    assert len(set(seen)) == len(seen) > 10
    for name in ("sitemap.xml", "robots.txt", head.CARD):
        assert (SITE / name).exists() == bool(address)
