"""A page of the site as its plain notebook sees it: numbers, citations, places.

Everything is asked of the environment of the site's build. Numbers are those of
sphinx-proof and of Sphinx, citations those of sphinxcontrib-bibtex.
"""

from __future__ import annotations

import base64
import posixpath
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinxcontrib.bibtex.citation_target import parse_citation_targets
from sphinxcontrib.bibtex.style.referencing import BracketStyle, format_references
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle
from sphinxcontrib.bibtex.style.template import SphinxReferenceInfo

from tools.command import PipelineError

# myst-nb counts the lines of a notebook's cells from multiples of this number.
LINES = 10_000
# Notebooks have no bibliography, where a label such as [KRU14] would lead.
ROUND = BracketStyle(left="(", right=")", sep="; ")
AUTHOR_YEAR = AuthorYearReferenceStyle(
    bracket_textual=ROUND,
    bracket_parenthetical=ROUND,
    bracket_author=ROUND,
    bracket_label=ROUND,
    bracket_year=ROUND,
)
# The pictures that every notebook program shows from within a cell.
PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif"}


# Attribute of a document, which outlives its citations.
ASKED = "citations-asked"


class KeepCitations(SphinxPostTransform):
    """Keep role and keys of each citation, which are lost when it is resolved."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        self.document[ASKED] = {
            name: (node["reftype"], node["reftarget"])
            for node in self.document.findall(addnodes.pending_xref)
            if node.get("refdomain") == "cite"
            for name in node["ids"]
        }


def anchor(name: str) -> str:
    """A place that links of the same notebook lead to."""
    return f'<a id="{name}"></a>'


@dataclass(frozen=True)
class Page:
    """One page while it is written: ``here`` is its name, ``doctree`` what it says.

    ``doctree`` is resolved; ``address`` is that of the site, None if not known.
    """

    builder: Any
    here: str
    doctree: nodes.document
    notebook: nbformat.NotebookNode
    address: str | None = None
    env: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "env", self.builder.env)

    @cached_property
    def text(self) -> Path:
        """The text that people edit."""
        return Path(self.env.doc2path(self.here)).with_suffix(".md")

    def error(self, node: nodes.Node, what: str) -> PipelineError:
        """Say what the plain notebook cannot carry, with its place in the text."""
        cell, within = divmod(line_of(node, self.doctree), LINES)
        where = ""
        if 0 < cell <= len(self.notebook.cells):
            text = self.text.read_text("utf-8") if self.text.is_file() else ""
            before, cell_text, _ = text.partition(self.notebook.cells[cell - 1].source)
            # Nodes name lines of the cell, which starts somewhere in the text.
            where = f"line {before.count(chr(10)) + within}" if cell_text else ""
            where = where or f"cell {cell}, line {within}"
        name = self.here + self.text.suffix
        place = f"{name}, {where}" if where else name
        shown = " ".join(node.astext().split())[:60]
        return PipelineError(
            f"{place}: the plain notebook cannot carry {what}"
            + (f" ({shown!r})" if shown else "")
        )

    # Numbers.

    @property
    def chapter(self) -> str:
        """The number that the site prints before the title of a chapter, else ""."""
        number = self.env.toc_secnumbers.get(self.here, {}).get("") or ()
        return ".".join(map(str, number))

    def number(self, node: nodes.Element, kind: str) -> str:
        """The number that the site prints for a statement or an equation."""
        numbers = self.env.toc_fignumbers.get(self.here, {}).get(kind, {})
        for name in node["ids"]:
            if name in numbers:
                return ".".join(map(str, numbers[name]))
        raise self.error(node, f"a {kind} that the site has not numbered")

    def equation_number(self, node: nodes.math_block) -> str | None:
        """The number beside an equation; None where there is none."""
        if node.get("nowrap") or not node.get("number"):
            return None
        config = self.env.config
        if not (config.math_numfig and config.numfig):
            return str(node["number"])
        whole = self.number(node, "displaymath")
        return config.math_numsep.join(whole.rsplit(".", 1))

    # Citations.

    @cached_property
    def _works(self) -> dict[tuple[str, str], Any]:
        """The entry of the bibliography to which each place there belongs."""
        return {
            (each.bibliography_key.docname, each.citation_id): each.entry
            for each in self.env.get_domain("cite").citations
        }

    def citation(self, node: nodes.Element) -> list[nodes.Node]:
        """A citation by authors and year."""
        role, target = self.doctree[ASKED][node["ids"][0]]
        if role not in AUTHOR_YEAR.role_names():
            raise self.error(node, f"a citation by the role 'cite:{role}'")
        keys = {each.key: each for each in parse_citation_targets(target)}
        domain = self.env.get_domain("cite")
        cited = {
            each.key: each
            for each in domain.citations
            if each.key in keys
            and domain.bibliographies[each.bibliography_key].list_ == "citation"
        }
        for key in keys:
            if key not in cited:
                raise self.error(node, f"the unknown citation {key!r}")
        works = [
            (each.entry, each.formatted_entry, self._work(each, keys[each.key]))
            for each in map(cited.__getitem__, keys)
        ]
        text = format_references(AUTHOR_YEAR, role, works)
        return list(text.render(domain.backend))

    def _work(self, citation: Any, asked: Any) -> SphinxReferenceInfo:
        return SphinxReferenceInfo(
            builder=self.builder,
            fromdocname=self.here,
            todocname=citation.bibliography_key.docname,
            citation_id=citation.citation_id,
            title=None,
            pre_text=asked.pre,
            post_text=asked.post,
        )

    # Places.

    @cached_property
    def _pages(self) -> dict[str, str]:
        """Pages of the book by their addresses within the site."""
        return {self.builder.get_target_uri(x): x for x in self.env.found_docs}

    def _target(self, node: nodes.reference) -> tuple[str, str] | None:
        """Page and place that a link within the book leads to; None for others."""
        if "refid" in node:
            return self.here, node["refid"]
        path, _, place = node["refuri"].partition("#")
        if not path and place:
            return self.here, place
        if not node.get("internal"):
            return None
        start = posixpath.dirname(self.builder.get_target_uri(self.here))
        page = self._pages.get(posixpath.normpath(posixpath.join(start, path)))
        if page is None:
            raise self.error(node, f"a link to {node['refuri']!r}")
        return page, place

    def place(self, node: nodes.reference) -> str | None:
        """Resolve a link of the notebook; None if there is no such place."""
        target = self._target(node)
        if target is None:
            return str(node["refuri"])
        page, name = target
        if page == self.here and name:
            return f"#{name}"
        if target in self._works and (outside := address_of(self._works[target])):
            return outside
        if self.address is None:
            return None
        uri = self.address + self.builder.get_target_uri(page)
        return f"{uri}#{name}" if name else uri

    def is_title(self, node: nodes.reference) -> bool:
        """Say whether a link says no more than the title of the page it leads to."""
        target = self._target(node)
        titles = self.env.titles
        return bool(target) and node.astext() == titles[target[0]].astext()

    @cached_property
    def targets(self) -> frozenset[str]:
        """The places of this page that its own links lead to."""
        targets = (self._target(node) for node in self.doctree.findall(nodes.reference))
        notes = self.doctree.findall(nodes.footnote_reference)
        return frozenset(
            [each[1] for each in targets if each and each[0] == self.here]
            + [note["refid"] for note in notes]
        )

    # Pictures.

    def data(self, node: nodes.image) -> str | None:
        """A picture as an address that carries it; None if not every program shows it.

        Colab ignores what is attached to a cell, so the address has all of it.
        """
        kind = PICTURES.get(Path(node["uri"]).suffix.lower())
        if kind is None:
            return None
        content = (Path(self.env.srcdir) / node["uri"]).read_bytes()
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def anchors(node: nodes.Element, page: Page) -> str:
    """The places of a node that links of its page lead to."""
    return "".join(anchor(name) for name in node["ids"] if name in page.targets)


def with_anchors(node: nodes.Element, page: Page, text: str) -> str:
    """A block that cannot start with an anchor, after a paragraph that is one."""
    names = anchors(node, page)
    return f"{names}\n\n{text}" if names else text


def line_of(node: nodes.Node, doctree: nodes.document) -> int:
    """The line of a node, or of what stands before it; 0 if nothing there has one."""
    line = 0
    for each in doctree.findall():
        # Roles say another line than the one they stand in.
        if not isinstance(each, nodes.Inline) and (each.line or 0) >= LINES:
            line = each.line or 0
        if each is node:
            break
    return line


def first_line(node: nodes.Node) -> int | None:
    lines = (each.line for each in node.findall())
    return next((line for line in lines if line and line >= LINES), None)


def address_of(entry: Any) -> str | None:
    """Return where a work can be read: its DOI, number at arXiv or address."""
    fields = entry.fields
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if "eprint" in fields and fields.get("archiveprefix", "arXiv").lower() == "arxiv":
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return fields.get("url")
