"""The book on paper: pages of the built site, printed by the browser, in two editions.

    python -m tools.pdf                    both
    python -m tools.pdf --edition reader   to read: no code, solutions at the ends
    python -m tools.pdf --edition full     every page, with its code

Title page, contents, page numbers, bookmarks and links that lead from page to page are
added; the links of the site to itself become places in the document. Explorers are some
of their states beside each other. ``make pdf`` calls the first form.
"""

from __future__ import annotations

import argparse
import datetime
import html
import io
import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pypdf import PdfReader

from tools.bind import Heading, Page, all_places, bound
from tools.browser import launched, required_browser
from tools.command import ROOT, PipelineError, replace, run_main
from tools.launch import public_address
from tools.notebooks import FACTS
from tools.serve import HTML, STAMP, served, source_digest
from tools.site.markup import parsed, with_plain_formulas

SCRIPT = Path(__file__).with_name("paper.js").read_text("utf-8")
STYLE = Path(__file__).with_name("paper.css").read_text("utf-8")
# How the folded answers of the book begin, and where readers then find them.
ANSWERS = "Answer|Solution|Checkpoint|Guess"
SOLUTIONS = "paper-solutions"
# Millimeters. The text is 158 wide: 85 characters of it, or 84 of code.
WIDTH, HEIGHT, SIDE, TOP, BOTTOM = 210, 297, 26, 20, 24


@dataclass(frozen=True)
class Edition:
    """An edition to print, and where it is kept."""

    name: str
    title: str
    target: Path
    about: str
    left_out: str = "$^"  # pattern of the names of pages

    @property
    def moves_answers(self) -> bool:
        return self.name == "reader"


READER = Edition(
    "reader",
    "Reader’s edition",
    Path("_build/attention-in-the-limit.pdf"),
    "The chapters without their code, with the solutions at the end of each. The full"
    " edition has the code, all checks and the reference of the package as well.",
    r"api|scoreboard|more-checks-\d+|errata|running|teaching|benchmarks",
)
FULL = Edition(
    "full",
    "Full edition",
    Path("_build/attention-in-the-limit-full.pdf"),
    "Every page of the book’s site, with its code and the reference of the package.",
)
EDITIONS = (READER, FULL)


def contents_file(root: Path = ROOT) -> dict[str, Any]:
    """Content of ``_toc.yml``."""
    contents: dict[str, Any] = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    return contents


def addresses(toc: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Part and address of each page, in the order of ``_toc.yml``."""
    entries = [("", toc["root"])]
    for part in toc["parts"]:
        entries += [(part["caption"], entry["file"]) for entry in part["chapters"]]
    for part, name in entries:
        yield part, f"{name.removesuffix('.ipynb').removesuffix('.md')}.html"


def book_pages(folder: Path, root: Path = ROOT, edition: Edition = FULL) -> list[Page]:
    """The pages of an edition, with the headings that they have in it."""
    return [
        Page(
            address,
            part,
            tuple(headings((folder / address).read_text("utf-8"), edition)),
        )
        for part, address in addresses(contents_file(root))
        if not re.fullmatch(edition.left_out, Path(address).stem)
    ]


def headings(text: str, edition: Edition = FULL) -> Iterator[Heading]:
    """Title and sections of a page; last the solutions that an edition moves there."""
    tree = parsed(with_plain_formulas(text))
    for tag in tree.select("article :is(h1, h2)"):
        for mark in tag.select(".headerlink"):
            mark.decompose()
        yield Heading(int(tag.name[1]), tag.get_text(), tag.parent["id"])
    folds = tree.select("article details.sd-dropdown > summary")
    answers = [s for s in folds if re.match(ANSWERS, s.get_text().strip())]
    if answers and edition.moves_answers:
        yield Heading(2, "Solutions", SOLUTIONS)


def date_of_outputs(facts: dict[str, dict[str, Any]]) -> str:
    """Day on which the last of the stored outputs was computed, in words."""
    day = datetime.date.fromisoformat(max(fact["date"] for fact in facts.values()))
    return f"{day.day} {day:%B %Y}"


def title_page(meta: dict[str, str], edition: Edition, date: str, root: Path) -> str:
    """HTML of the first sheet: title, authors, edition, version, day, license."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    site = public_address()
    lines = [
        ("about", project["description"]),
        ("authors", meta["Author"]),
        ("edition", f"{edition.title}, version {project['version']}"),
        ("small", f"{edition.about} Outputs computed by {date}."),
        ("small", f"On the site the figures move: {site}" if site else ""),
        ("small", "Text and drawings: CC BY 4.0. Code: BSD-3-Clause."),
    ]
    said = "".join(
        f'<p class="paper-{kind}">{html.escape(line)}</p>'
        for kind, line in lines
        if line
    )
    return f'<div class="paper-title"><h1>{html.escape(meta["Title"])}</h1>{said}</div>'


def contents(pages: Sequence[Page], numbers: dict[tuple[str, str], int]) -> str:
    """HTML of the table of contents; what has no number yet shows a dash.

    The sections of chapters are listed; those of reference pages are bookmarks only.
    """
    lines, part = ["<h1>Contents</h1>"], ""
    for page in pages:
        if page.part != part:
            part = page.part
            lines.append(f'<p class="paper-part">{html.escape(part)}</p>')
        for entry in page.headings:
            if entry.level == 1 or "/reference/" not in page.address:
                lines.append(contents_line(pages[0], page, entry, numbers))
    return f'<nav class="paper-contents">{"".join(lines)}</nav>'


def contents_line(
    here: Page, page: Page, entry: Heading, numbers: dict[tuple[str, str], int]
) -> str:
    href = posixpath.relpath(page.address, posixpath.dirname(here.address))
    number = numbers.get((page.address, entry.id), "–")
    return (
        f'<a class="paper-entry-{entry.level}" href="{href}#{html.escape(entry.id)}">'
        f"<span>{html.escape(entry.text)}</span><i></i><b>{number}</b></a>"
    )


def page_style(title: str, first: int, bare: bool) -> str:
    """Paper and its foot: the title of the page and numbers that start at ``first``.

    The first sheet of a ``bare`` page has no foot.
    """
    foot = "font: 9pt Arial, sans-serif; color: #444"
    style = (
        f"html {{ counter-reset: page {first - 1} }}"
        f"@page {{ size: {WIDTH}mm {HEIGHT}mm; margin: {TOP}mm {SIDE}mm {BOTTOM}mm;"
        f" @bottom-left {{ content: {json.dumps(title, ensure_ascii=False)}; {foot} }}"
        f" @bottom-right {{ content: counter(page); {foot} }} }}"
    )
    if bare:
        style += "@page :first { @bottom-left { content: none }"
        style += " @bottom-right { content: none } }"
    return style


class Press:
    """The browser, holding sheets of paper; each page of the site is printed once."""

    def __init__(self, browser: Any, site: str, edition: Edition = FULL):
        self.site, self.edition = site, edition
        self.context = browser.new_context(
            color_scheme="light",
            reduced_motion="reduce",
            viewport={"width": round((WIDTH - 2 * SIDE) * 96 / 25.4), "height": 900},
        )

    def printed(
        self, page: Page, first: int, body: str = "", foot: str = ""
    ) -> PdfReader:
        """A page of the site on paper; with ``body``, that in place of its text.

        Such a sheet has no foot if none is given.
        """
        tab = self.context.new_page()
        tab.emulate_media(media="print")
        tab.goto(self.site + page.address, wait_until="networkidle")
        bare = bool(body) and not foot
        tab.add_style_tag(content=page_style(foot or page.title, first, bare) + STYLE)
        asked = {"body": body, "edition": self.edition.name, "answers": ANSWERS}
        if faults := tab.evaluate(SCRIPT, asked):
            raise PipelineError(f"{page.address}: {faults[0]}")
        data = tab.pdf(prefer_css_page_size=True)
        tab.close()
        return PdfReader(io.BytesIO(data))


def book(
    browser: Any,
    site: str,
    pages: Sequence[Page],
    meta: dict[str, str],
    date: str,
    edition: Edition = FULL,
    root: Path = ROOT,
) -> tuple[bytes, int]:
    """The document of some pages, behind a title page and contents; and its sheets.

    The contents are printed twice: how many sheets they need decides the numbers.
    """
    press = Press(browser, site, edition)
    title = press.printed(pages[0], 1, title_page(meta, edition, date, root))
    start = len(title.pages) + 1
    blank = press.printed(pages[0], start, contents(pages, {}), "Contents")
    front = first = start + len(blank.pages)
    prints = []
    for page in pages:
        prints.append(press.printed(page, first))
        first += len(prints[-1].pages)
    places = all_places(pages, prints, front - 1)
    numbers = {
        (address, anchor): place[0] + 1
        for address, anchors in places.items()
        for anchor, place in anchors.items()
    }
    final = press.printed(pages[0], start, contents(pages, numbers), "Contents")
    if len(final.pages) != len(blank.pages):
        raise PipelineError("the numbers changed the length of the contents")
    press.context.close()
    return bound(pages, [title, final, *prints], places, site, meta), first - 1


def fresh_site(root: Path = ROOT) -> Path:
    """Folder of the built site, unless it is not there or not of these sources."""
    stamp = root / STAMP
    if not stamp.exists() or stamp.read_text() != source_digest(root):
        raise PipelineError(
            "the site is not built, or older than its sources: make site"
        )
    return root / HTML


def chosen(name: str | None) -> list[Edition]:
    """The edition of a name, or all."""
    editions = [each for each in EDITIONS if name in (None, each.name)]
    if not editions:
        names = " and ".join(each.name for each in EDITIONS)
        raise PipelineError(f"{name!r} is no edition; there are {names}")
    return editions


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.pdf")
    parser.add_argument("--edition", help="reader or full; both if none is named")
    editions = chosen(parser.parse_args().edition)
    folder, path = fresh_site(), required_browser("print the book")
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    meta = {key.capitalize(): config[key] for key in ("title", "author")}
    date = date_of_outputs(json.loads((ROOT / FACTS).read_text("utf-8")))
    with served(folder) as site, launched(path) as browser:
        for edition in editions:
            pages = book_pages(folder, ROOT, edition)
            print(f"pdf: printing {len(pages)} pages of the site", flush=True)
            data, sheets = book(browser, site, pages, meta, date, edition)
            replace(ROOT / edition.target, data)
            size = f"{len(data) / 1e6:.1f} MB"
            print(f"pdf: {sheets} pages, {size} in {edition.target}", flush=True)


if __name__ == "__main__":
    run_main(main, "no document was left half-written")
