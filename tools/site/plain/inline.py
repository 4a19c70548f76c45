"""Running text of a page as plain Markdown: words, formulas, links.

It takes the nodes of a page as the site resolved them, so that numbers and names are
those of the site. What is written must come out alike in every notebook program; the
comments say which of them needs what.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable

from docutils import nodes
from sphinx_design.shared import PassthroughTextElement

from tools.site.plain.math import formula
from tools.site.plain.page import Page, anchors

# Keeps a mark of Markdown apart from a letter; no program shows it.
GAP = "<!-- -->"
SPECIAL = re.compile(r"[\\`*$~<]|(?<!\w)_|_(?!\w)|\](?=[(\[:])|&(?=#?\w+;)")
# JupyterLab looks for formulas before Markdown is read and once more after it.
AS_HTML = {"<": "&lt;", "&": "&amp;", "$": "<span>&#36;</span>"}
MARK = re.compile(r"[-+](?=\s|$)|>|#{1,6}(?=\s|$)|(-+|=+)\s*$")
NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
# An even number of backslashes before a closing mark leaves it a mark.
OPEN, CLOSE = re.compile(r"[*$`]+"), re.compile(r"(?<!\\)(?:\\\\)*([*$`]+)$")
MARKS = {nodes.emphasis: "*", nodes.strong: "**"}
TAGS = {nodes.superscript: "sup", nodes.subscript: "sub"}
SVG = "{http://www.w3.org/2000/svg}"
# Elements whose words stand for them.
BARE = (nodes.inline, PassthroughTextElement, nodes.target)


def running(node: nodes.Element, page: Page, table: bool = False) -> str:
    """The children of a node on one line; ``table`` if that is within a table."""
    return joined(piece(child, page, table) for child in node.children)


def joined(pieces: Iterable[str]) -> str:
    """Pieces in a row, none of which changes what its neighbor means."""
    line = ""
    for each in pieces:
        line += GAP + each if line and each and clash(line, each) else each
    return line


def clash(before: str, after: str) -> bool:
    """Say whether two neighbors, or a mark between them, would be misread.

    VS Code and GitHub see no formula in ``$n$th``, and nobody emphasis in
    ``*(a)*b``.
    """
    last, first = before[-1], after[0]
    closes, opens = CLOSE.search(before), OPEN.match(after)
    if (closes and opens and last == first) or (last == "!" and first == "["):
        return True
    if closes and first.isalnum():
        return "$" in closes[1] or not before[: closes.start(1)][-1:].isalnum()
    if opens and last.isalnum():
        return "$" in opens[0] or not after[opens.end() :][:1].isalnum()
    return False


def piece(node: nodes.Node, page: Page, table: bool = False) -> str:
    """One inline node."""
    if isinstance(node, nodes.Text):
        return escaped(node.astext(), table)
    assert isinstance(node, nodes.Element)
    return anchors(node, page) + element(node, page, table)


def element(node: nodes.Element, page: Page, table: bool) -> str:
    if isinstance(node, nodes.math):
        return formula(node, page, table)
    if isinstance(node, nodes.literal):
        return code(node.astext(), table)
    if isinstance(node, nodes.reference):
        return link(node, page, table)
    if isinstance(node, nodes.footnote_reference):
        return f"<sup>[{node.astext()}](#{node['refid']})</sup>"
    if isinstance(node, nodes.image):
        return picture(node, page)
    if isinstance(node, nodes.comment):
        return ""
    if isinstance(node, nodes.raw):
        return line_break(node, page)
    if "bibtex-citation" in node["classes"]:
        return joined(piece(each, page, table) for each in page.citation(node))
    for kind, mark in MARKS.items():
        if isinstance(node, kind):
            return f"{mark}{running(node, page, table)}{mark}"
    for kind, tag in TAGS.items():
        if isinstance(node, kind):
            return f"<{tag}>{running(node, page, table)}</{tag}>"
    if isinstance(node, BARE):
        return running(node, page, table)
    raise page.error(node, f"the construct {node.tagname!r}")


def line_break(node: nodes.raw, page: Page) -> str:
    """The only raw text that Markdown itself makes; others have no form here."""
    if node["format"] != "html":
        return ""  # the same for another kind of output
    if node.astext().strip() != "<br />":
        raise page.error(node, "raw HTML, which notebook programs drop")
    return "<br>"


def escaped(text: str, table: bool = False) -> str:
    """Words, with what Markdown would take for its marks shown as it is."""

    def shown(match: re.Match[str]) -> str:
        return AS_HTML.get(match[0], f"\\{match[0]}")

    text = SPECIAL.sub(shown, re.sub(r"\s*\n\s*", " ", text))
    return text.replace("|", r"\|") if table else text


def at_start(line: str) -> str:
    """A line that stands where a heading, a list or a quote could begin."""
    if NUMBER.match(line):
        return NUMBER.sub(r"\1\\\2", line, count=1)
    return f"\\{line}" if MARK.match(line) else line


def code(text: str, table: bool = False) -> str:
    text = " ".join(text.split("\n"))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    text = text.replace("|", r"\|") if table else text
    return f"{fence}{pad}{text}{pad}{fence}"


def link(node: nodes.reference, page: Page, table: bool = False) -> str:
    """A link, or the words alone where it would lead nowhere."""
    text = running(node, page, table)
    place = page.place(node)
    if place is None:
        return f"*{text}*" if page.is_title(node) else text
    if place == node.astext():
        return f"<{place}>"
    for mark in " ()":
        place = place.replace(mark, f"%{ord(mark):x}")
    return f"[{text}]({place})"


def picture(node: nodes.image, page: Page) -> str:
    """A picture that the notebook carries, or the words that describe it."""
    words = node.get("alt", "").strip()
    if not words:
        raise page.error(node, "a picture without words that describe it")
    if (data := page.data(node)) is None:
        return described(words)
    return f"![{escaped(words)}]({data})"


def drawing(node: nodes.raw, page: Page, quoted: bool) -> str:
    """Put a drawing in its own words; what else is HTML is refused."""
    if node["format"] != "html":
        return ""
    text = node.astext().strip()
    if not text.startswith("<svg"):
        raise page.error(node, "raw HTML, which notebook programs drop")
    tree = ET.fromstring(text)
    words = tree.get("aria-label") or tree.findtext(f"{SVG}title")
    if not words:
        raise page.error(node, "a drawing without words that describe it")
    return described(words)


def described(words: str) -> str:
    """Return the words for a drawing that not every program shows."""
    return f"*Picture: {escaped(words.strip().rstrip('.'))}.*"


def for_summary(node: nodes.Element, page: Page) -> str:
    """The title of what is folded, as HTML: there nobody reads Markdown."""
    for each in node.findall(nodes.math):
        raise page.error(each, "a formula in the title of a dropdown")
    return html.escape(" ".join(node.astext().split()), quote=False).replace(
        "$", AS_HTML["$"]
    )
