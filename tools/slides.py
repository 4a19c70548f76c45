"""Slides of a chapter: title, statements, figures, live exhibits and questions.

    python -m tools.slides 4    _build/slides/4-mean-field-sphere.html
    python -m tools.slides      of every chapter

They are made from the built page, in a browser: the text of the chapter remains the
only source. A deck is one file of at most 2 MB that asks
nothing of a network: styles, fonts, scripts and kernels are in it. Keys turn the slides
(arrows, space, page keys, Home, End; f for the full screen, d for a dark one).
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.browser import launched, required_browser
from tools.command import ROOT, PipelineError, replace, run_main
from tools.pdf import ANSWERS, addresses, contents_file, fresh_site
from tools.serve import served
from tools.site.bundle import names_in, trimmed
from tools.site.finish import exhibit_modules
from tools.site.markup import parsed
from tools.site.typeset import FONTS, STYLES

TARGET = Path("_build/slides")
BUDGET = 2_000_000
CHAPTER = re.compile(r"chapters/(\d+)-[^/]*\.html")
# Sections that are no matter for slides.
LEFT_OUT = "Exercises|Notes|At a glance"
HERE = Path(__file__)
MOVING = re.compile(r".*/(explorer|exhibit)\.mjs")
# What a module takes from its neighbors, which in a deck have names, not addresses.
IMPORT = re.compile(r"""((?:\bfrom|\bimport)\s*\(?\s*["`])\./""")
STATIC = re.compile(r"""\bfrom\s*["]\./([^"]+)["]""")
# Nothing may be fetched; what the deck brought along may run.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline';"
    " img-src data:; font-src data:"
)


def deck(browser: Any, site: str, folder: Path, address: str, root: Path = ROOT) -> str:
    """The slides of a chapter, as one page of HTML."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.route(MOVING, lambda route: route.abort())  # figures as they are stored
    tab.goto(site + address, wait_until="networkidle")
    script = HERE.with_suffix(".js").read_text("utf-8")
    parts = tab.evaluate(script, {"answers": ANSWERS, "left": LEFT_OUT})
    context.close()
    return page(parts, folder / "_static", root)


def page(parts: dict[str, Any], static: Path, root: Path) -> str:
    """The page of a deck: slides, and what they need to be seen and to move."""
    about = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    book = yaml.safe_load((root / "_config.yml").read_text("utf-8"))["title"]
    note = f'<p class="deck-about">{html.escape(book)}, version {about["version"]}</p>'
    slides = "\n".join(
        slide(each, note if each["kind"] == "title" else "") for each in parts["slides"]
    )
    modules = {f"book/{name}": data(text) for name, text in bundled(slides, static)}
    roots = [m for m in ("explorer.mjs", "exhibit.mjs") if f"book/{m}" in modules]
    imports = "".join(f'import "book/{name}";\n' for name in roots)
    formulas = trimmed((static / STYLES).read_text("utf-8"), names_in([slides], []))
    styles = [
        (root / "tools/site/static/book.css").read_text("utf-8"),
        with_fonts(formulas, parts["fonts"], static),
        HERE.with_suffix(".css").read_text("utf-8"),
    ]
    title = parsed(parts["slides"][0]["heading"]).get_text()
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)} — slides — {html.escape(book)}</title>
<style>{chr(10).join(styles)}</style>
<script type="importmap">{json.dumps({"imports": modules})}</script>
</head>
<body data-deck>
<main>
{slides}
</main>
<nav class="deck-bar" aria-label="Slides"><button type="button" class="deck-back"
 aria-label="Back">←</button><span class="deck-number" role="status"></span><button
 type="button" class="deck-forth" aria-label="Forth">→</button></nav>
<script type="module">{imports}{HERE.with_suffix(".mjs").read_text("utf-8")}</script>
</body>
</html>
"""


def slide(each: dict[str, str], note: str = "") -> str:
    """One slide: its heading above it, or within it where there is little else."""
    level = {"title": "h1", "section": "h2"}.get(each["kind"])
    head = f"<{level}>{each['heading']}</{level}>" if level else ""
    above = "" if level else each["heading"]
    return (
        f'<section class="slide slide-{each["kind"]}"><header>{above}</header>'
        f'<div class="slide-body bd-article">{head}{each["html"]}{note}</div></section>'
    )


def bundled(slides: str, static: Path) -> Iterator[tuple[str, str]]:
    """Modules that the figures of some slides need, by their names."""
    tree = parsed(slides)
    names = ["explorer.mjs"] if tree.select(".book-explorer") else []
    for exhibit in tree.select("figure.book-exhibit"):
        names += ["exhibit.mjs", *exhibit_modules(exhibit)]
    done: set[str] = set()
    while names:
        if (name := names.pop()) in done:
            continue
        done.add(name)
        text = (static / name).read_text("utf-8")
        names += [posixpath.normpath(other) for other in STATIC.findall(text)]
        yield name, IMPORT.sub(r"\1book/", text)


def data(text: str) -> str:
    """A module as an address that needs no network."""
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"


def with_fonts(styles: str, used: Iterable[str], static: Path) -> str:
    """The styles of the formulas, with the fonts in use in them and no others."""
    used = {family.strip("\"'") for family in used}

    def embedded(match: re.Match[str]) -> str:
        (family,) = re.findall(r'font-family:\s*"?([\w-]+)', match[0])
        if family not in used:
            return ""
        (name,) = re.findall(r'url\("?[^")]*/([\w-]+\.woff)', match[0])
        text = base64.b64encode((static / FONTS / name).read_bytes()).decode()
        return (
            f"@font-face {{ font-family: {family};"
            f' src: url("data:font/woff;base64,{text}") format("woff"); }}'
        )

    return re.sub(r"@font-face\s*\{[^}]*\}", embedded, styles)


def chapters(asked: str | None, root: Path = ROOT) -> list[str]:
    """Addresses of the chapter of a number, or of all."""
    every = {
        match[1]: address
        for _, address in addresses(contents_file(root))
        if (match := CHAPTER.fullmatch(address))
    }
    if asked is None:
        return [*every.values()]
    if asked not in every:
        raise PipelineError(f"{asked!r} is no chapter; there are: {', '.join(every)}")
    return [every[asked]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.slides")
    parser.add_argument("chapter", nargs="?", help="its number, as in 4")
    asked = parser.parse_args().chapter
    folder = fresh_site()
    decks, path = chapters(asked), required_browser("make slides")
    (ROOT / TARGET).mkdir(exist_ok=True)
    with served(folder) as site, launched(path) as browser:
        for address in decks:
            text = deck(browser, site, folder, address)
            size = len(text.encode())
            target = TARGET / Path(address).name
            if size > BUDGET:
                raise PipelineError(
                    f"{target} would have {size} bytes, more than {BUDGET}: its chapter"
                    " needs simpler figures"
                )
            replace(ROOT / target, text)
            count = text.count('<section class="slide ')
            print(f"slides: {count} in {target}, {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    run_main(main, "no slides were left half-written")
