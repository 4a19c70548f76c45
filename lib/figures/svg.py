"""SVG text of a matplotlib figure, and what changes from one such text to the next."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from lib.figures.theme import INK, MAPPED, saving

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

# White faces of what matplotlib draws as paper: backgrounds, frames, hollow markers.
_PAPER = re.compile(
    r'((?:<g id="patch_\d+">\s*<path|<use)\s[^>]*?style="[^"]*?)fill: #ffffff'
)

#: One thing that changes: an attribute, or the text, of the element with this mark.
Slot = tuple[int, str]


def render(fig: Figure) -> str:
    """SVG text of a figure, without anything that varies between two runs.

    Ink and black become ``currentColor``, and white faces of backgrounds, frames and
    markers none. Identifiers are 0, 1, 2, ... in order of appearance; those that
    nothing refers to are dropped. Coordinates have two decimals, a hundredth of a
    point.
    """
    buffer = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with saving(), _laid_out(fig):
        fig.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.S)
    svg = _PAPER.sub(r"\1fill: none", svg)
    # Text nodes (tick labels) stay as drawn.
    svg = re.sub(r"<[^>]*>", lambda tag: _themed(_two_decimals(tag.group())), svg)
    # matplotlib does not write the fill of what is black: ink, or the color of a map.
    svg = svg.replace(f'<g id="{MAPPED}">', '<g fill="#000">')
    svg = svg.replace("<svg ", '<svg fill="currentColor" ', 1)
    return re.sub(r">\s+<", "><", _numbered_ids(svg))


@contextmanager
def _laid_out(fig: Figure) -> Iterator[None]:
    """Lay a figure out, as ``savefig`` does, and let nothing lay it out meanwhile.

    With a layout engine ``savefig`` draws everything twice, the first time only to have
    it placed.
    """
    engine = fig.get_layout_engine()
    if engine is None:
        yield
        return
    canvas, dpi = fig.canvas, fig.dpi
    try:
        FigureCanvasSVG(fig)
        fig.dpi = 72  # what an SVG is measured in
        engine.execute(fig)
    finally:
        fig.dpi = dpi
        fig.set_canvas(canvas)
    fig.set_layout_engine(None)
    try:
        yield
    finally:
        fig.set_layout_engine(engine)


def own_ids(svg: str, prefix: str) -> str:
    """Put a prefix before every identifier and every reference to one."""
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)


def merge(frames: list[str]) -> tuple[str, list[Slot], list[list[str]]] | None:
    """One template and, frame by frame, the attributes and texts that differ.

    Returns the first frame with ``data-slot`` marks, the slots (the name ``#text``
    stands for an element's text), and for each frame their values; None where the
    frames are built of different elements.
    """
    trees = [ET.fromstring(frame) for frame in frames]
    walks = [list(tree.iter()) for tree in trees]
    shapes = [[(e.tag, len(e), sorted(e.attrib)) for e in walk] for walk in walks]
    if any(shape != shapes[0] for shape in shapes):
        return None
    slots: list[Slot] = []
    values: list[list[str]] = [[] for _ in frames]
    for mark, elements in enumerate(zip(*walks, strict=True)):
        for name in (*elements[0].attrib, "#text"):
            column = [_value(element, name) for element in elements]
            if len(set(column)) > 1:
                slots.append((mark, name.replace(f"{{{_LINK}}}", "xlink:")))
                for row, value in zip(values, column, strict=True):
                    row.append(value)
                elements[0].set("data-slot", str(mark))
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    return ET.tostring(trees[0], encoding="unicode"), slots, values


def _value(element: ET.Element, name: str) -> str:
    return (element.text if name == "#text" else element.get(name)) or ""


def _themed(tag: str) -> str:
    return tag.replace(INK, "currentColor").replace("#000000", "currentColor")


def _two_decimals(tag: str) -> str:
    def short(number: re.Match[str]) -> str:
        text = f"{float(number.group()):.2f}".rstrip("0").rstrip(".")
        return "0" if text in ("-0", "") else text

    return re.sub(r"-?\d+\.\d{3,}", short, tag)


def _numbered_ids(svg: str) -> str:
    """Drop the ids nothing refers to; number the others and their references."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    referred = [name for name in re.findall(r'\sid="([^"]+)"', svg) if name in used]
    number = {name: str(i) for i, name in enumerate(dict.fromkeys(referred))}

    def rename(match: re.Match[str]) -> str:
        name = match.group(1)
        return f' id="{number[name]}"' if name in number else ""

    svg = re.sub(r'\s+id="([^"]+)"', rename, svg)
    pattern = r'(url\(#|href="#)([^)"]+)'
    return re.sub(pattern, lambda m: m.group(1) + number[m.group(2)], svg)
