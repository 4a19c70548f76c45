"""Tables as plain Markdown: one line of heads, one line a row."""

from __future__ import annotations

from docutils import nodes

from tools.site.plain.inline import running
from tools.site.plain.page import Page, with_anchors

RULES = {"text-left": ":---", "text-center": ":---:", "text-right": "---:"}


def table(node: nodes.table, page: Page, quoted: bool) -> str:
    """A table; its caption stands below it in italics."""
    heads = [row for head in node.findall(nodes.thead) for row in head.children]
    if len(heads) != 1:
        raise page.error(node, "a table without exactly one line of heads")
    rows = list(node.findall(nodes.row))
    first, *others = (cells(row, page) for row in rows)
    for row, line in zip(rows[1:], others, strict=True):
        if len(line) != len(first):
            raise page.error(row, "a row that is not as long as the others")
    rules = [rule(entry) for entry in rows[0].findall(nodes.entry)]
    lines = [f"| {' | '.join(line)} |" for line in (first, rules, *others)]
    captions = [each for each in node.children if isinstance(each, nodes.title)]
    below = "".join(f"\n\n*{running(each, page).strip()}*" for each in captions)
    return with_anchors(node, page, "\n".join(lines) + below)


def cells(row: nodes.row, page: Page) -> list[str]:
    return [cell(entry, page) for entry in row.findall(nodes.entry)]


def cell(entry: nodes.entry, page: Page) -> str:
    """One paragraph; Markdown has no cell that holds more or spans others."""
    if "morecols" in entry or "morerows" in entry:
        raise page.error(entry, "a cell that spans others")
    if not entry.children:
        return ""
    only, *more = entry.children
    if more or not isinstance(only, nodes.paragraph):
        raise page.error(entry, "a cell with more than one paragraph")
    return running(only, page, table=True).strip()


def rule(entry: nodes.entry) -> str:
    """Return the mark of how a column is aligned."""
    return next((RULES[name] for name in entry["classes"] if name in RULES), "---")
