"""Paragraphs, statements, answers and lists of a page as plain Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.locale import admonitionlabels
from sphinx_design.dropdown import dropdown_main
from sphinx_proof.nodes import NODE_TYPES, proof_node, unenumerable_node

from tools.site.plain.inline import (
    at_start,
    drawing,
    for_summary,
    joined,
    picture,
    piece,
    running,
)
from tools.site.plain.math import display
from tools.site.plain.page import Page, anchor, anchors, with_anchors
from tools.site.plain.table import table

STATEMENTS = (*NODE_TYPES.values(), unenumerable_node)
PROOF = "Proof. "
TOMBSTONE = "∎"
# Between two lists, which would be one without it.
APART = "<!-- -->"
LISTS = (nodes.bullet_list, nodes.enumerated_list)
# What no reader of the site sees either.
UNSEEN = (nodes.comment, nodes.substitution_definition, addnodes.index)


def blocks(children: Iterable[nodes.Node], page: Page, quoted: bool = False) -> str:
    """Blocks in a row, a blank line between two; ``quoted`` if within a quote."""
    written: list[str] = []
    last: nodes.Node | None = None
    for child in children:
        if text := block(child, page, quoted):
            one_list = isinstance(child, LISTS) and isinstance(last, LISTS)
            written += [APART, text] if one_list else [text]
            last = child
    return "\n\n".join(written)


def block(node: nodes.Node, page: Page, quoted: bool = False) -> str:
    """One block."""
    if isinstance(node, UNSEEN):
        return ""
    for kind, write in WRITERS.items():
        if isinstance(node, kind):
            return write(node, page, quoted)
    name = node.tagname if isinstance(node, nodes.Element) else "text"
    raise page.error(node, f"the construct {name!r}")


def quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def heading(node: nodes.title, page: Page, quoted: bool) -> str:
    """The title of a section, below what leads to the section."""
    level, around = 0, node.parent
    while around is not None:
        level += isinstance(around, nodes.section)
        around = around.parent
    if level > 6:
        raise page.error(node, f"a heading of level {level}")
    number = f"{page.chapter} " if level == 1 and page.chapter else ""
    line = f"{'#' * level} {number}{running(node, page).strip()}"
    return with_anchors(node.parent, page, line)


def paragraph(node: nodes.paragraph, page: Page, quoted: bool) -> str:
    """A paragraph; formulas displayed within it stand between its parts."""
    parts: list[str] = []
    line: list[str] = []
    for child in node.children:
        if isinstance(child, nodes.math_block):
            parts += [at_start(joined(line).strip()), display(child, page, quoted)]
            line = []
        else:
            line.append(piece(child, page))
    parts.append(at_start(joined(line).strip()))
    return anchors(node, page) + "\n\n".join(filter(None, parts))


def rubric(node: nodes.rubric, page: Page, quoted: bool) -> str:
    return f"{anchors(node, page)}**{running(node, page).strip()}**"


def verbatim(node: nodes.literal_block, page: Page, quoted: bool) -> str:
    text = node.astext().rstrip("\n")
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    language = node.get("language", "")
    language = "" if language in ("none", "default") else language
    return with_anchors(node, page, f"{fence}{language}\n{text}\n{fence}")


# Statements, proofs, answers.


def statement(node: nodes.Element, page: Page, quoted: bool) -> str:
    """A bold head that runs into the statement, all in a quote."""
    title, *rest = node.children
    kind = node["realtype"].title()
    if not isinstance(node, unenumerable_node):
        kind += f" {page.number(node, node['countertype'])}"
    parts = [each for child in rest for each in child.children]
    head = " ".join(f"{kind}{running(title, page)}".split())
    gap = " " if parts and isinstance(parts[0], nodes.paragraph) else "\n\n"
    # Stored verdicts lead to a statement, so that it always has its anchor.
    start = f"{anchor(node['label'])}**{head}.**{gap}"
    return quote((start + blocks(parts, page, quoted=True)).rstrip())


def proof(node: nodes.Element, page: Page, quoted: bool) -> str:
    """The word in italics, and a tombstone at the end."""
    parts = [each for child in node.children for each in child.children]
    text = blocks(parts, page, quoted)
    if not text.startswith(PROOF):
        raise page.error(node, "a proof that does not start with that word")
    gap = " " if isinstance(parts[-1], nodes.paragraph) else "\n\n"
    return f"*{PROOF.strip()}* {text[len(PROOF) :]}{gap}{TOMBSTONE}"


def folded(title: str, body: str, names: str, opened: bool = False) -> str:
    """Fold something; Markdown within it needs the blank lines."""
    start = "<details open>" if opened else "<details>"
    summary = f"<summary>{names}{title or 'More'}</summary>"
    return f"{start}\n{summary}\n\n{body}\n\n</details>"


def dropdown(node: nodes.Element, page: Page, quoted: bool) -> str:
    title, body = node.children
    (words,) = (each for each in title.children if "sd-summary-text" in each["classes"])
    text = "" if any(words.findall(nodes.raw)) else for_summary(words, page)
    inside = blocks(body.children, page, quoted)
    return folded(text, inside, anchors(node, page), node["opened"])


def admonition(node: nodes.Element, page: Page, quoted: bool) -> str:
    """A quote under a bold title, or folded where the site folds it."""
    children = list(node.children)
    if isinstance(children[0], nodes.title):
        title = children.pop(0)
    else:
        title = nodes.title("", str(admonitionlabels[node.tagname]))
    if "dropdown" in node["classes"]:
        inside = blocks(children, page, quoted)
        return folded(for_summary(title, page), inside, anchors(node, page))
    head = f"{anchors(node, page)}**{running(title, page).strip()}**"
    return quote("\n\n".join(filter(None, [head, blocks(children, page, True)])))


def block_quote(node: nodes.block_quote, page: Page, quoted: bool) -> str:
    return quote(blocks(node.children, page, quoted=True))


# Lists.


def listing(node: nodes.Element, page: Page, quoted: bool) -> str:
    if isinstance(node, nodes.bullet_list):
        marks = ["- "] * len(node.children)
    elif node.get("enumtype", "arabic") == "arabic":
        start, end = node.get("start", 1), node.get("suffix") or "."
        marks = [f"{start + n}{end} " for n in range(len(node.children))]
    else:
        raise page.error(node, f"a list numbered as {node['enumtype']}")
    gap = "\n" if is_simple(node) else "\n\n"
    items = []
    for item, mark in zip(node.children, marks, strict=True):
        parts = [block(each, page, quoted) for each in item.children]
        body = "\n".join(parts) if gap == "\n" else blocks(item.children, page, quoted)
        items.append(mark + indented(body, len(mark)))
    return with_anchors(node, page, gap.join(items))


def is_simple(node: nodes.Element) -> bool:
    """Say whether no item has more than a paragraph, with simple lists below it."""
    return all(
        isinstance(item.children[0], nodes.paragraph)
        and not any(item.children[0].findall(nodes.math_block))
        # Markdown takes another number than 1 for a word of the paragraph.
        and all(isinstance(x, LISTS) and is_simple(x) for x in item.children[1:])
        and all(x.get("start", 1) == 1 for x in item.children[1:])
        for item in node.children
        if item.children
    )


def indented(text: str, width: int) -> str:
    """Lines but the first behind ``width`` spaces."""
    return re.sub(r"\n(?=[^\n])", "\n" + " " * width, text)


def definitions(node: nodes.definition_list, page: Page, quoted: bool) -> str:
    """Terms in bold, and below each what it means."""
    items = []
    for item in node.children:
        heads, meanings = [], []
        for each in item.children:
            if isinstance(each, nodes.term):
                words = running(each, page).strip()
                heads.append(f"{anchors(each, page)}**{words}**")
            elif isinstance(each, nodes.definition):
                meanings.append(blocks(each.children, page, quoted))
            else:
                raise page.error(each, "a classifier of a term")
        items.append("- " + indented("\n\n".join([", ".join(heads), *meanings]), 2))
    return "\n\n".join(items)


# Pictures, cards and what only holds others.


def figure(node: nodes.figure, page: Page, quoted: bool) -> str:
    """A picture above its caption."""
    parts = []
    for child in node.children:
        if isinstance(child, nodes.caption):
            parts.append(f"*{running(child, page).strip()}*")
        elif isinstance(child, nodes.legend):
            parts.append(blocks(child.children, page, quoted))
        else:
            parts.append(block(child, page, quoted))
    return with_anchors(node, page, "\n\n".join(parts))


def outside(node: nodes.image, page: Page, quoted: bool) -> str:
    return with_anchors(node, page, picture(node, page))


def container(node: nodes.Element, page: Page, quoted: bool) -> str:
    if "toctree-wrapper" in node["classes"]:
        return ""  # the contents of the book, which the site shows in its sidebar
    if part_of(node) == "grid-container":
        cards = node.findall(lambda each: part_of(each) == "card")
        return "\n".join(card(each, page) for each in cards)
    return with_anchors(node, page, blocks(node.children, page, quoted))


def card(node: nodes.Element, page: Page) -> str:
    """A card as an item of a list: its title, which is its link, and its text."""
    body, *others = node.children
    title, *texts = body.children
    links = [each for other in others for each in other.findall(nodes.reference)]
    if part_of(title) != "card-title" or len(links) != len(others) or len(links) > 1:
        raise page.error(node, "a card without a title, or with more than a text")
    head = running(title, page)
    place = page.place(links[0]) if links else None
    head = f"[{head}]({place})" if place else head
    return f"- **{head}.** {indented(blocks(texts, page), 2)}"


def part_of(node: nodes.Node) -> str | None:
    """Say what sphinx-design made a node for."""
    return node.get("design_component") if isinstance(node, nodes.Element) else None


def target(node: nodes.target, page: Page, quoted: bool) -> str:
    return anchors(node, page)


def transition(node: nodes.transition, page: Page, quoted: bool) -> str:
    return "---"


# The first that fits: a statement is an admonition to docutils.
WRITERS: dict[Any, Callable[[Any, Page, bool], str]] = {
    STATEMENTS: statement,
    proof_node: proof,
    dropdown_main: dropdown,
    nodes.Admonition: admonition,
    nodes.math_block: display,
    nodes.title: heading,
    nodes.paragraph: paragraph,
    nodes.literal_block: verbatim,
    nodes.rubric: rubric,
    nodes.block_quote: block_quote,
    LISTS: listing,
    nodes.definition_list: definitions,
    nodes.table: table,
    nodes.figure: figure,
    nodes.image: outside,
    nodes.raw: drawing,
    (nodes.container, nodes.compound): container,
    nodes.target: target,
    nodes.transition: transition,
}
