"""The reading graph of the landing page: each chapter with a picture, and its order.

Chapters are named by the words of their files, without their numbers, so that a chapter
that moves stays where it is in the graph. A picture is the first figure that the
chapter has stored, or one that its description names, less its letters, which would be
too small to read.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives

from lib.figures.markup import digest, image
from lib.figures.svg import own_ids
from tools.command import ROOT
from tools.site.directives import Page

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = re.compile(r"<svg.*?</svg>", re.S)
LEFT_OUT = {f"{SVG}{tag}" for tag in ("text", "title", "desc", "metadata")}
ALL = "all"


class Chapter(Page):
    """A chapter: its picture, its title with a link, a sentence, what comes before.

    ``picture`` is the beginning of the description of one of its figures, ``drawing``
    the name of a file in the folder of drawings; by default it is the first figure.
    """

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012
        name: directives.unchanged_required for name in ("after", "picture", "drawing")
    }

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        after = self.options.get("after", "").split()
        card = nodes.container(classes=["graph-chapter"], name=name, after=after)
        card += nodes.raw("", self.picture(name), format="html")
        title = nodes.paragraph("", "", self.link(name), classes=["graph-title"])
        text = nodes.container("", title, classes=["graph-text"])
        self.state.nested_parse(self.content, self.content_offset, text)
        if after:
            text += self.what_comes_before(after)
        card += text
        return [card]

    def what_comes_before(self, after: list[str]) -> nodes.paragraph:
        line = nodes.paragraph("", "After ", classes=["graph-after"])
        for number, each in enumerate(after):
            line += nodes.Text(" and " if number else "")
            line += nodes.Text("the others") if each == ALL else self.link(each)
        line += nodes.Text(".")
        return line

    def link(self, name: str) -> nodes.Node:
        page = self.page(name)
        return self.cross_reference(page, "std", "doc", f"/{page}", explicit=False)

    def page(self, name: str) -> str:
        form = re.compile(rf"chapters/(?:\d+-)?{re.escape(name)}")
        found = [page for page in self.env.found_docs if form.fullmatch(page)]
        if len(found) != 1:
            raise self.error(f"{len(found)} chapters have the name {name!r}, not one")
        return found[0]

    def picture(self, name: str) -> str:
        if drawing := self.options.get("drawing"):
            path = ROOT / "figures" / f"{drawing}.svg"
            self.env.note_dependency(str(path))
            svg = path.read_text("utf-8")
            return thumbnail(svg, str(ET.fromstring(svg).get("aria-label")))
        wanted = self.options.get("picture", "")
        for output in self.outputs(self.page(name)):
            alt = "".join(output.get("text/plain", ""))
            drawn = DRAWN.search("".join(output.get("text/html", "")))
            if drawn and alt.startswith(wanted):
                return thumbnail(drawn.group(), alt)
        raise self.error(f"{name!r} has stored no figure that begins with {wanted!r}")

    def outputs(self, page: str) -> list[dict[str, Any]]:
        cells = self.read(f"{page}.ipynb")["cells"]
        return [o.get("data", {}) for cell in cells for o in cell.get("outputs", ())]


class ReadingGraph(Page):
    """Chapters in rows: one that follows another stands behind it, the last beside all.

    A row begins with a chapter before which none needs to be read.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        given = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, given)
        rows: dict[str, nodes.container] = {}
        last = []
        for card in given.findall(nodes.container):
            if "after" not in card:
                continue
            before = (card["after"] or [card["name"]])[0]
            if before == ALL:
                last.append(card)
                continue
            if before == card["name"]:
                rows[before] = nodes.container(classes=["graph-row"])
            elif before not in rows:
                raise self.error(f"{card['name']!r}: {before!r} does not come before")
            rows[before] += card
            rows[card["name"]] = rows[before]
        ways = nodes.container(classes=["graph-rows"])
        ways += list(dict.fromkeys(rows.values()))
        return [nodes.container("", ways, *last, classes=["reading-graph"])]


def thumbnail(svg: str, alt: str) -> str:
    """A figure without letters and links, as one picture with its description."""
    tree = ET.fromstring(svg)
    for name in ("role", "aria-label", "visibility", "class", "width", "height"):
        tree.attrib.pop(name, None)
    for parent in list(tree.iter()):
        parent.attrib.pop("data-slot", None)
        for child in list(parent):
            if child.tag in LEFT_OUT:
                parent.remove(child)
            elif child.tag == f"{SVG}a":
                child.tag = f"{SVG}g"
                child.attrib.clear()
    ET.register_namespace("", SVG[1:-1])
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    plain = ET.tostring(tree, encoding="unicode")
    return image(own_ids(plain, f"graph-{digest(plain)}"), alt)


def setup(app: Any) -> None:
    app.add_directive("chapter", Chapter)
    app.add_directive("reading-graph", ReadingGraph)
    app.add_css_file("graph.css", priority=850)
