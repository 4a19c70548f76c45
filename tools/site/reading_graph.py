"""The reading graph of the landing page: each chapter with a picture, and its order.

It is written as a list, which every program shows: a chapter below another comes after
it, and the paragraph behind the list has the chapter that comes after all. A picture is
the first that the chapter has, less its letters, which would be too small to read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

from bs4 import Tag
from docutils import nodes
from sphinx.errors import ExtensionError

from lib.figures.markup import digest, image
from lib.figures.svg import own_ids
from tools.command import ROOT
from tools.site.markup import one, parsed

GRAPH = "reading-graph"
FILE = re.compile(r"^:file: \.\./(figures/[\w-]+\.svg)$", re.M)
LEFT_OUT = "text, title, desc, metadata"


def graphs(doctree: nodes.document) -> list[nodes.container]:
    return [e for e in doctree.findall(nodes.container) if GRAPH in e["classes"]]


def resolve(app: Any, doctree: nodes.document, here: str) -> None:
    for given in graphs(doctree):
        ways = nodes.container(classes=["graph-rows"])
        last = []
        for each in given.children:
            if isinstance(each, nodes.bullet_list):
                ways += [row(item) for item in each]
            else:
                last.append(card(each, nodes.Text("the others")))
        given.children = []
        given += [ways, *last]


def row(item: nodes.Element) -> nodes.container:
    return nodes.container("", *chapters(item), classes=["graph-row"])


def chapters(
    item: nodes.Element, before: nodes.Node | None = None
) -> Iterator[nodes.container]:
    """Cards of a chapter and of those below it, which come after it."""
    first, *below = item.children
    yield card(first, before)
    for each in below:
        for other in each.children:
            yield from chapters(other, link(first).deepcopy())


def link(chapter: nodes.Node) -> nodes.reference:
    first = next(iter(chapter.children), None)
    if not isinstance(first, nodes.reference) or not first.get("refuri"):
        raise ExtensionError(
            f"a chapter of the reading graph begins with its link: {chapter.astext()!r}"
        )
    return first


def card(chapter: nodes.Node, before: nodes.Node | None) -> nodes.container:
    """A chapter: its picture, its title with a link, a sentence, what comes before."""
    place = link(chapter)
    path = ROOT / "chapters" / Path(place["refuri"]).with_suffix(".ipynb").name
    words = nodes.paragraph("", "", *chapter.children[1:])
    if isinstance(words[0], nodes.Text):
        words[0] = nodes.Text(words[0].lstrip(".: "))
    text = nodes.container(classes=["graph-text"])
    text += [nodes.paragraph("", "", place, classes=["graph-title"]), words]
    if before is not None:
        text += nodes.paragraph(
            "", "After ", before, nodes.Text("."), classes=["graph-after"]
        )
    shown = nodes.raw("", picture(path), format="html")
    return nodes.container("", shown, text, classes=["graph-chapter"])


def picture(path: Path) -> str:
    """The first picture of a chapter, be it drawn by hand or by a cell."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if file := FILE.search("".join(cell["source"])):
            drawing = parsed((ROOT / file[1]).read_text("utf-8"))
            svg = one(drawing, file[1], "a drawing with words", "svg[aria-label]")
            return thumbnail(svg, str(svg["aria-label"]))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if drawn := parsed("".join(data.get("text/html", ""))).find("svg"):
                return thumbnail(drawn, "".join(data.get("text/plain", "")))
    raise ExtensionError(f"{path.name} has stored no picture for the reading graph")


def thumbnail(drawing: Tag, alt: str) -> str:
    """A figure without letters and links, as one picture with its description."""
    svg = copy(drawing)
    for name in ("role", "aria-label", "visibility", "class", "width", "height"):
        del svg[name]
    for part in svg.select(LEFT_OUT):
        part.decompose()
    for part in svg.select("[data-slot]"):
        del part["data-slot"]
    for link in svg.select("a"):
        link.name, link.attrs = "g", {}
    plain = str(svg)
    return image(own_ids(plain, f"graph-{digest(plain)}"), alt)


def note(app: Any, doctree: nodes.document) -> None:
    """The page is written anew when a chapter or a drawing is, which it shows."""
    if graphs(doctree):
        chapters, drawings = ROOT / "chapters", ROOT / "figures"
        for path in (*chapters.glob("[0-9]*.ipynb"), *drawings.glob("*.svg")):
            app.env.note_dependency(str(path))


def setup(app: Any) -> None:
    app.connect("doctree-read", note)
    app.connect("doctree-resolved", resolve, priority=500)  # plain text has the list
    app.add_css_file("graph.css", priority=850)
