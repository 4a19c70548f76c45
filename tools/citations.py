"""Works of the bibliography that the texts and the docstrings cite."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pybtex.database import parse_file

from tools.command import ROOT

BIBLIOGRAPHY = Path("chapters/reference/references.bib")
CITED = re.compile(r"(?:\{cite[\w:]*\}|:cite[\w:]*:)`([^`]+)`")


def entries(root: Path = ROOT) -> dict[str, Any]:
    """The entries of the bibliography by their keys, in the order of the file."""
    return dict(parse_file(str(root / BIBLIOGRAPHY)).entries)


def cited(texts: Iterable[str]) -> set[str]:
    """The keys that texts cite, in Markdown or in a docstring."""
    groups = (keys for text in texts for keys in CITED.findall(text))
    return {key.strip() for keys in groups for key in keys.split(",")}


def uncited(root: Path = ROOT) -> list[str]:
    """A sentence for each entry of the bibliography that no page cites."""
    pages = [*(root / "chapters").rglob("*.md"), *(root / "lib").rglob("*.py")]
    known = cited(page.read_text("utf-8") for page in pages)
    return [
        f"the entry {key!r} of the bibliography is cited on no page: say on"
        " chapters/reference/literature.md what it contributes, or take it out"
        for key in entries(root)
        if key not in known
    ]
