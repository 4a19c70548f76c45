"""The Sphinx extension of the site: its parts, its settings, finished pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools import launch, wheel
from tools.command import ROOT, PipelineError
from tools.kernels import build as kernels
from tools.site import (
    formulas,
    head,
    live_page,
    numbers,
    outputs,
    reading_graph,
    records,
    running,
    scoreboard,
    typeset,
    words,
)
from tools.site.bundle import strip_comments, trim_style_sheets
from tools.site.finish import finish
from tools.site.first_rules import write_first_rules
from tools.site.moved import write_moved
from tools.site.plain import notebook as plain
from tools.texts import texts
from tools.verdicts import page_name


def configure(app: Any, config: Any) -> None:
    """Settings that Jupyter Book does not pass on."""
    config.html_math_renderer = "typeset"
    config.html_theme_options |= {
        "navbar_persistent": [],  # the sidebar has the search field already
        "primary_sidebar_end": [],  # a place for advertisements
        "use_fullscreen_button": False,
        **launch.theme_options(launch.repository()),
    }
    drop_thebe(app.events.listeners, app.registry.css_files)


def drop_thebe(events: dict[str, list[Any]], styles: list[Any]) -> None:
    """Jupyter Book always loads sphinx_thebe, which puts a foreign script on each page.

    PipelineError where it neither listens to events nor has a style sheet any more.
    """
    others = {
        name: [each for each in own if each.handler.__module__ != "sphinx_thebe"]
        for name, own in events.items()
    }
    kept = [style for style in styles if "thebe" not in style[0]]
    for what, before, after in (("listener", events, others), ("style", styles, kept)):
        if before == after:
            raise PipelineError(f"Jupyter Book: sphinx_thebe has no {what} to drop")
    events.update(others)
    styles[:] = kept


def finish_pages(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir)
        new = finish(folder, launch.base_path(app.env.limit_address))
        pages = [p for p in texts() if folder / f"{page_name(p)}.html" in new]
        live_page.write_live_pages(folder, pages, ROOT, launch.repository())
        typeset.typeset_site(folder, typeset.of_book(app))
        write_moved(folder)
        wheel.build(folder)
        kernels.build(folder)
        strip_comments(folder)
        trim_style_sheets(folder)
        write_first_rules(folder)


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", configure)
    # After the theme, which writes the colors of the code when the build is finished.
    app.connect("build-finished", finish_pages, priority=900)
    # After the theme, whose own buttons come with priority 501.
    app.connect("html-page-context", live_page.add_button, priority=502)
    app.connect("html-page-context", launch.open_plain, priority=502)
    parts = (
        formulas, head, numbers, outputs, plain, reading_graph, records, running,
        scoreboard, typeset, words,
    )  # fmt: skip
    for each in parts:
        each.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
