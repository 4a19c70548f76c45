"""Sphinx extension of the site: local mathematics, no foreign scripts, run facts."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from tools.notebooks import FACTS, ROOT

# What of MathJax a page with TeX input can ask for; the other bundles stay behind.
MATHJAX = ("tex-chtml.js", "output/chtml/fonts", "input/tex/extensions", "a11y", "sre")


def mathjax_folder() -> Path:
    """The copy of MathJax that the package sphinx-mathjax-offline carries."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise RuntimeError(
            "sphinx-mathjax-offline is not installed: make serve does it"
        )
    return Path(spec.origin).parent / "static" / "mathjax"


def copy_mathjax(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "mathjax"
    for name in MATHJAX:
        source = mathjax_folder() / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / name, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target / name)


def drop_thebe(app: Any, page: str, template: str, context: dict, doctree: Any) -> None:
    """The theme configures live code on every page, from another host: leave it out."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in f"{getattr(script, 'filename', script)}"
        f"{getattr(script, 'attributes', '')}"
    ]


def keep_one_search(app: Any, config: Any) -> None:
    """The sidebar has the search field; the theme would add a second one on top."""
    config.html_theme_options["navbar_persistent"] = []


class ExecutionFacts(Directive):
    """Table of what ``make notebooks`` recorded: time, date, versions, machine."""

    def run(self) -> list[nodes.Node]:
        self.state.document.settings.record_dependencies.add(str(ROOT / FACTS))
        facts = json.loads((ROOT / FACTS).read_text("utf-8"))
        heads = ["notebook", *next(iter(facts.values()))]
        rows = [[name, *map(str, fact.values())] for name, fact in facts.items()]
        return [table([head.replace("_", " ") for head in heads], rows)]


def table(heads: list[str], rows: list[list[str]]) -> nodes.table:
    """A docutils table of plain text."""

    def line(entries: list[str]) -> nodes.row:
        cells = [nodes.entry("", nodes.paragraph(text=text)) for text in entries]
        return nodes.row("", *cells)

    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    group += nodes.thead("", line(heads))
    group += nodes.tbody("", *map(line, rows))
    return nodes.table("", group)


def setup(app: Any) -> dict[str, bool]:
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.connect("config-inited", keep_one_search)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", copy_mathjax)
    app.add_directive("execution-facts", ExecutionFacts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
