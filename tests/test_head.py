"""Heads, sitemap and shared picture: with the address of the site, and without it."""

import re
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from tools.command import ROOT
from tools.launch import base_path, public_address
from tools.serve import HTML
from tools.site import card, head
from tools.site.finish import make_absolute
from tools.site.markup import parsed
from tools.site.moved import MOVED

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
    assert public_address("[project]\nname = 'x'\n") is None
    assert public_address(empty) is None
    for written in ("https://books.example.org/limit", ADDRESS):
        assert public_address(f"{empty}Homepage = '{written}'\n") == ADDRESS
    for wrong in ("http://x.org", "x.org", "https://x.org/?a=1", ""):
        with pytest.raises(ValueError, match=f"Homepage.*{re.escape(repr(wrong))}"):
            public_address(f"{empty}Homepage = '{wrong}'\n")
    assert base_path(None) == base_path("https://x.org/") == "/"
    assert base_path(ADDRESS) == "/limit/"


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
        assert tags["og:url"] == f"{ADDRESS}chapters/9-x.html"
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


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Builds a site of three pages, without a theme, for an address; its folder."""
    source = tmp_path / "source"
    (source / "chapters").mkdir(parents=True)
    listed = ".. toctree::\n\n   1-a\n   2-b\n"
    for name, more in {"index": listed, "2-b": "", "1-a": ""}.items():
        text = f"{name}\n=====\n\nA sentence.\n\n{more}"
        (source / "chapters" / f"{name}.rst").write_text(text)

    def build(address):
        monkeypatch.setattr(head, "public_address", lambda: address)
        folder = tmp_path / f"site of {bool(address)}"
        config = {
            "extensions": ["tools.site.head"],
            "root_doc": head.LANDING,
            "templates_path": [str(ROOT / "tools/site/templates")],
            "html_additional_pages": {head.ROOT_PAGE: "root.html"},
        }
        with docutils_namespace():
            Sphinx(
                source, None, folder, tmp_path / "trees", "html", config, status=None,
                warningiserror=True, freshenv=True,
            ).build()  # fmt: skip
        return folder

    return build


def canonical(path):
    link = BeautifulSoup(path.read_text("utf-8"), "html.parser").find(
        "link", rel="canonical"
    )
    return link and link["href"]


def test_site_with_an_address_says_it_on_its_pages_and_in_a_sitemap(built):
    folder = built(ADDRESS)
    tree = ElementTree.parse(folder / "sitemap.xml")
    places = [each.text for each in tree.iter() if each.tag.endswith("loc")]
    names = ("1-a", "2-b", "index")
    assert sorted(places) == [f"{ADDRESS}chapters/{name}.html" for name in names]
    assert f"Sitemap: {ADDRESS}sitemap.xml\n" in (folder / "robots.txt").read_text()
    assert (folder / head.CARD).is_file()
    for name in names:
        page = folder / "chapters" / f"{name}.html"
        assert canonical(page) == f"{ADDRESS}chapters/{name}.html"
    assert canonical(folder / "index.html") == f"{ADDRESS}chapters/index.html"
    assert canonical(folder / "search.html") is None


def test_site_without_an_address_has_nothing_that_needs_it(built):
    folder = built(None)
    for name in ("sitemap.xml", "robots.txt", head.CARD):
        assert not (folder / name).exists()
    pages = [*folder.rglob("*.html")]
    assert len(pages) >= 5 and not any(map(canonical, pages))


def test_picture_has_its_size_and_is_the_same_each_time(tmp_path):
    for name in ("a.png", "b.png"):
        card.draw(tmp_path / name, head.BOOK, head.CARD_SIZE)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == head.CARD_SIZE
        assert len(picture.convert("RGB").getcolors(100_000)) > 20


@pytest.mark.parametrize("base", ["/", "/limit/"])
def test_absolute_paths(base):
    tree = parsed(
        '<html data-content_root="./"><a href="a/b.html#c"></a><a href="#d"></a>'
        '<a href="/e"></a><script src="_static/x.js?v=1"></script>'
        '<form action="search.html"></form><a href="https://x.org/"></a>'
        '<img src="data:image/png;base64,x"/><a href="mailto:x"></a></html>'
    )
    make_absolute(tree, base)
    assert str(tree) == (
        f'<html data-content_root="{base}"><a href="{base}a/b.html#c"></a>'
        f'<a href="#d"></a><a href="/e"></a><script src="{base}_static/x.js?v=1">'
        f'</script><form action="{base}search.html"></form><a href="https://x.org/">'
        '</a><img src="data:image/png;base64,x"/><a href="mailto:x"></a></html>'
    )


def test_every_built_page_says_what_it_is(site):
    address = public_address()
    seen = []
    for path in SITE.rglob("*.html"):
        if "_static" in path.parts or path.relative_to(SITE).as_posix() in MOVED:
            continue
        text = path.read_text("utf-8").partition("</head>")[0]
        soup = BeautifulSoup(text, "html.parser")
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
