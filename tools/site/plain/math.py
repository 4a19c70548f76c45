"""Formulas of a page, where no notebook program takes them for Markdown."""

from __future__ import annotations

import re

from docutils import nodes

from tools.site.plain.page import Page, with_anchors

TAG = re.compile(r"<(?=[A-Za-z/!?])")  # what some programs take for HTML
BLANK = re.compile(r"\n\s*\n")


def formula(node: nodes.math, page: Page, table: bool = False) -> str:
    """A formula within a line; ``table`` if the line is within a table."""
    tex = one_line(node, page, node.astext())
    if table and "|" in tex:
        if r"\begin{array}" in tex:
            raise page.error(node, "a bar in an array within a table")
        # A bar would end the cell.
        tex = tex.replace(r"\|", r"\Vert ").replace("|", r"\vert ").strip()
    return f"${tex}$"


def one_line(node: nodes.Element, page: Page, text: str) -> str:
    """TeX on one line."""
    tex = " ".join(text.split())
    for mark, what in (("$", "a dollar"), ("`", "a backtick")):
        if mark in tex:
            raise page.error(node, f"{what} within a formula")
    if re.search(r"(?<!\\)%", tex):
        raise page.error(node, "a comment in TeX, which would swallow the rest")
    return TAG.sub("< ", tex)


def display(node: nodes.math_block, page: Page, quoted: bool) -> str:
    """A displayed formula with the number that it has on the site.

    JupyterLab takes the marks of a quote for part of a formula of several lines, so
    that there it is one line. Like Sphinx, an empty line starts another equation, and
    a formula that breaks its line on the outermost level is split.
    """
    parts = [part for part in BLANK.split(node.astext().strip()) if part.strip()]
    tex = r" \\ ".join(one_line(node, page, part) for part in parts)
    if len(parts) > 1:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    elif breaks_outside(tex):
        tex = rf"\begin{{split}}{tex}\end{{split}}"
    elif not quoted:
        lines = [TAG.sub("< ", line.strip()) for line in parts[0].split("\n")]
        tex = "\n".join(lines)
    if number := page.equation_number(node):
        tex += rf" \tag{{{number}}}"
    tex = f"$${tex}$$" if quoted else f"$$\n{tex}\n$$"
    return with_anchors(node, page, tex)


def breaks_outside(tex: str) -> bool:
    """Say whether a formula breaks its line outside of every environment."""
    depth = 0
    for mark in re.findall(r"\\begin\b|\\end\b|\\\\", tex):
        depth += {r"\begin": 1, r"\end": -1}.get(mark, 0)
        if mark == r"\\" and depth == 0:
            return True
    return False
