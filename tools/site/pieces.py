"""Pieces of the finished pages for the other pages: previews, and what a search finds.

Beside each page lie two files: ``.previews.json`` with its statements, works and
labelled formulas by their anchors, which other pages load when a reader asks, and
``.sections.json`` with the words of its sections. The search page loads all of these
in one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, CData, NavigableString, Tag

from tools.command import replace
from tools.site.tex import letter_of, readable

PREVIEWED = "div.proof[id], .citation-list [id][role=listitem], div.math[id]"
# What of a piece or a section is not its text.
NO_TEXT = (
    "script, style, svg, button, input, label, .headerlink, .statement-checks, .checks,"
    " .cell_input, details.fold, .book-exhibit, .toctree-wrapper, .backrefs, img,"
    " .claim-filters, table.table td:nth-child(4), .explorer-controls,"
    " .further > summary"
)
# What of a section has an entry or a place of its own.
APART = "section[id], h1, h2, h3, h4, dl.py"
TEXTS = (NavigableString, CData)  # and no comments, styles, scripts or templates
INDEX = "_static/search-sections.json"
SYMBOLS = "chapters/reference/notation.html"
UNSEARCHED = {"search.html", "404.html", "index.html", "genindex.html"}
# How much a page is what a reader looks for, in the order of the first that fits.
WEIGHTS = (
    (r"chapters/\d", 3.0),
    (r"chapters/index", 1.2),
    (r".*/(scoreboard|bibliography|benchmarks|api)", 0.4),
    (r".*/(more-checks|errata|literature)", 0.6),
    (r"", 0.8),
)


ASIDE = {"Exercises", "Notes"}
DOCUMENTED = 400  # characters of what is said of a function


def write_pieces(tree: BeautifulSoup, path: Path, name: str) -> None:
    """The two files beside a page."""
    pieces: dict[str, Any] = {
        str(element["id"]): piece(element) for element in tree.select(PREVIEWED)
    }
    if name == SYMBOLS:
        pieces[" symbols"] = symbols(tree)
    _write(path.with_suffix(".previews.json"), pieces)
    if name not in UNSEARCHED:
        _write(path.with_suffix(".sections.json"), sections(tree, name))


def write_index(folder: Path) -> None:
    """All sections of the site in one file, in the order of their pages."""
    files = [
        file
        for file in sorted(folder.glob("chapters/**/*.sections.json"))
        if file.with_suffix("").with_suffix(".html").exists()  # not of an old page
    ]
    entries = [each for file in files for each in json.loads(file.read_text("utf-8"))]
    _write(folder / INDEX, entries)


def _write(path: Path, content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    replace(path, f"{text}\n")


def piece(element: Tag) -> str:
    """A statement, a work or a formula for another page: nothing leads away from it."""
    made = copy(element)
    for part in made.select(".headerlink, .statement-checks, .backrefs, script"):
        part.decompose()
    for link in made.select("a"):
        link.unwrap()
    for part in [made, *made.select("[id]")]:
        del part["id"]
    return str(made)


def symbols(tree: BeautifulSoup) -> list[dict[str, Any]]:
    """Meanings of each letter on the page of notation, and its chapters."""
    entries = []
    for table in tree.select("article table"):
        heads = [head.get_text(strip=True) for head in table.select("th")]
        if heads[:3] != ["symbol", "meaning", "ch."]:
            continue
        for line in table.select("tbody tr"):
            symbol, meaning, chapters = line.select("td")[:3]
            numbers = [int(n) for n in re.findall(r"\d+", chapters.get_text())]
            letters = [
                letter
                for formula in symbol.select("span.math")
                for tex in formula.get_text().removeprefix("\\(")[:-2].split(", ")
                if (letter := letter_of(tex))
            ]
            if letters:
                entries.append(
                    {
                        "letters": letters,
                        "symbol": inner(symbol),
                        "meaning": inner(meaning),
                        "chapters": numbers or None,
                    }
                )
    return entries


def inner(cell: Tag) -> str:
    """HTML within a cell of a table, without paragraphs and links."""
    made = copy(cell)
    for part in made.select("p, a"):
        part.unwrap()
    return made.decode_contents().strip()


def sections(tree: BeautifulSoup, name: str) -> list[dict[str, Any]]:
    """The sections of a page: address, titles, words, and how much they weigh."""
    article = tree.select_one("article")
    if article is None:
        return []
    weight = next(value for pattern, value in WEIGHTS if re.match(pattern, name))
    silent = {id(each) for each in article.select(NO_TEXT)}
    apart = {id(each) for each in article.select(APART)}
    heading = article.select_one("h1")
    page = text_of(heading, silent) if heading else name
    entries = []
    for section in article.select("section[id]"):
        head = section.find(["h1", "h2", "h3", "h4"], recursive=False)
        if head is None:
            continue
        first, title = head.name == "h1", text_of(head, silent)
        entries.append(
            {
                "to": name if first else f"{name}#{section['id']}",
                "title": title,
                "page": "" if first else page,
                "text": text_of(section, silent | apart),
                "weight": weight * (0.5 if title in ASIDE else 1),
            }
        )
    for entry in article.select("dl.py > dt[id]"):
        body = entry.find_next_sibling("dd")
        entries.append(
            {
                "to": f"{name}#{entry['id']}",
                "title": str(entry["id"]),
                "page": page,
                "text": text_of(body, silent)[:DOCUMENTED] if body else "",
                "weight": weight,
            }
        )
    return entries


def text_of(element: Tag, without: set[int]) -> str:
    """Words of an element as they are read, its formulas without TeX.

    ``without`` are the elements within it whose words are not its own.
    """
    text = re.sub(r"\s+", " ", " ".join(words(element, without))).strip()
    return re.sub(r" (?=[.,;:?!)\]])|(?<=[(\[]) ", "", text)


def words(element: Tag, without: set[int], *, tex: bool = False) -> Iterator[str]:
    """The texts within an element in their order; nothing of it is copied."""
    for each in element.contents:
        if not isinstance(each, Tag):
            if type(each) in TEXTS:
                yield each
        elif id(each) in without:
            continue
        elif not tex and "math" in each.get("class", ()):
            yield readable("".join(words(each, without, tex=True)))
        else:
            yield from words(each, without, tex=tex)
