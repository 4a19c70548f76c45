"""Formulas, typeset when the site is built: a page has their markup and no MathJax.

MathJax runs in an engine within this process, without a page and without a browser.
What it has made of a formula is kept in ``_build`` under its TeX, so that a build
typesets what is new. A formula that it refuses stops the build, and so does a macro
that it does not know or a letter that its fonts do not have. Formulas are found in one
pass over the text of the finished pages, because parsing and writing all of them once
more takes a sixth of a build; one that this pass misses stops the build as well.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from py_mini_racer import MiniRacer
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math

from tools.command import PipelineError, replace

STYLES = "formulas.css"
FONTS = "formulas"  # the folder of the fonts, beside the style sheet
STORE = "formulas.json"
PARTS = (
    *("loader.js", "core.js", "adaptors/liteDOM.js", "input/tex-full.js"),
    *("output/chtml.js", "output/chtml/fonts/tex.js", "a11y/assistive-mml.js"),
)
SCRIPT = Path(__file__).with_suffix(".js")
# A formula as Sphinx writes it, and one that is typeset: with its TeX as an attribute.
KIND = r'(?:[^"<>]* )?math notranslate nohighlight'
WRITTEN = re.compile(
    rf'<(?P<tag>span|div)(?P<attributes> class="{KIND}"(?: id="[^"]*")?)>'
    r'\s*(?P<number><span class="eqno">.*?</span>)?(?P<source>[^<]*)</(?P=tag)>',
    re.S,
)
LEFT = re.compile(rf'<\w+ class="{KIND}"(?!(?: id="[^"]*")? data-tex=)')


class Formula(NamedTuple):
    """Input of MathJax: TeX without its delimiters, in a line or displayed."""

    tex: str
    display: bool


class Typesetter:
    """MathJax with the settings of a book; ``store`` keeps what it has made."""

    def __init__(self, settings: dict[str, Any] | None, store: Path):
        self.settings = {k: (settings or {}).get(k, {}) for k in ("tex", "chtml")}
        self.store = store

    @cached_property
    def scripts(self) -> list[str]:
        paths = [*(mathjax_folder() / name for name in PARTS), SCRIPT]
        return [path.read_text("utf-8") for path in paths]

    def ask(self, what: str, *about: Any) -> Any:
        """An answer of MathJax; its engine starts in a tenth of a second."""
        with MiniRacer() as engine:
            engine.eval("globalThis.MathJax = {}; 0")
            for text in self.scripts:
                engine.eval(f"{text}\n;0")
            made = f"typesetter({json.dumps(self.settings)}, {json.dumps(FONTS)})"
            engine.eval(f"const book = {made}; 0")
            return engine.call(f"book.{what}", *about)

    def styles(self) -> str:
        """The rules of all formulas, with all letters of MathJax's fonts."""
        return str(self.ask("styles"))

    def markups(
        self, formulas: Iterable[Formula]
    ) -> tuple[dict[Formula, str], dict[Formula, str]]:
        """Markup of the formulas, and reasons for those that have none."""
        maker = _digest([*self.scripts, json.dumps(self.settings)])
        kept = self._kept(maker)
        wanted = {f"{'[' if f.display else '('}{f.tex}": f for f in formulas}
        new = [key for key in wanted if key not in kept]
        refused = {}
        if new:
            answers = self.ask("set", [wanted[key] for key in new])
            for key, answer in zip(new, answers, strict=True):
                if "markup" in answer:
                    kept[key] = answer["markup"]
                else:
                    refused[wanted[key]] = answer["refused"]
            content = {"maker": maker, "formulas": kept}
            replace(self.store, json.dumps(content, ensure_ascii=False))
        return {f: kept[key] for key, f in wanted.items() if key in kept}, refused

    def _kept(self, maker: str) -> dict[str, str]:
        """Content of the store, if the same scripts with the same settings made it."""
        if not self.store.exists():
            return {}
        content = json.loads(self.store.read_text("utf-8"))
        return dict(content["formulas"]) if content["maker"] == maker else {}


def mathjax_folder() -> Path:
    """The copy of MathJax that the package sphinx-mathjax-offline carries."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise PipelineError("sphinx-mathjax-offline is not installed: make serve does")
    return Path(spec.origin).parent / "static" / "mathjax"


def typeset_site(folder: Path, typesetter: Typesetter) -> None:
    """Typeset the formulas of a site that are not: of pages and of their previews."""
    files = [
        path
        for pattern in ("*.html", "*.previews.json")
        for path in sorted(folder.rglob(pattern))
        if "_static" not in path.relative_to(folder).parts
    ]
    texts = {path: path.read_text("utf-8") for path in files}
    pages: dict[Formula, str] = {}  # the first page with each formula

    def noted(path: Path) -> Callable[[re.Match[str]], str]:
        name = path.relative_to(folder).as_posix()

        def note(match: re.Match[str]) -> str:
            pages.setdefault(formula(match), name)
            return match[0]

        return note

    for path, text in texts.items():
        _mapped(path, text, noted(path))
    markups, refused = typesetter.markups(pages)
    if refused:
        raise PipelineError(
            "\n".join(
                f"{pages[each]}: MathJax refuses the formula {each.tex}: {why}"
                for each, why in refused.items()
            )
        )

    def typeset(match: re.Match[str]) -> str:
        asked = formula(match)
        tex = html.escape(asked.tex)
        return (
            f'<{match["tag"]}{match["attributes"]} data-tex="{tex}">'
            f"{match['number'] or ''}{markups[asked]}</{match['tag']}>"
        )

    for path, text in texts.items():
        if (new := _mapped(path, text, typeset)) != text:
            replace(path, new)
        if left := LEFT.search(new):
            raise PipelineError(f"{path.name}: a formula is not typeset: {left[0]}")


def formula(match: re.Match[str]) -> Formula:
    """The formula that Sphinx has written between delimiters, or as an environment."""
    text = html.unescape(match["source"]).strip()
    delimited = re.fullmatch(r"\\\((.*)\\\)|\\\[(.*)\\\]", text, re.S)
    if delimited is None:
        return Formula(text, True)
    inline, display = delimited.groups()
    return Formula((inline or display or "").strip(), inline is None)


def _mapped(path: Path, text: str, change: Callable[[re.Match[str]], str]) -> str:
    """A file with its formulas changed; of JSON, those in its strings."""

    def changed(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: changed(value) for key, value in part.items()}
        if isinstance(part, list):
            return [changed(each) for each in part]
        return WRITTEN.sub(change, part) if isinstance(part, str) else part

    if path.suffix == ".html":
        return str(changed(text))
    if not LEFT.search(text.replace('\\"', '"')):
        return text
    made = json.dumps(
        changed(json.loads(text)), ensure_ascii=False, separators=(",", ":")
    )
    return f"{made}\n"


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def write_styles(app: Any) -> None:
    """The style sheet and the fonts, before pages are written that name them."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    if not (static / FONTS).exists():
        fonts = mathjax_folder() / "output" / "chtml" / "fonts" / "woff-v2"
        shutil.copytree(fonts, static / FONTS)
        replace(static / STYLES, of_book(app).styles())


def of_book(app: Any) -> Typesetter:
    """With the settings of _config.yml; in store beside the site."""
    store = Path(app.outdir).parent / STORE
    return Typesetter(app.config.mathjax3_config, store)


def setup(app: Any) -> None:
    # As Sphinx writes them for MathJax, without its script.
    app.add_html_math_renderer(
        "typeset", (html_visit_math, None), (html_visit_displaymath, None)
    )
    app.connect("builder-inited", write_styles)
    # Last, as where MathJax itself adds its rules.
    app.add_css_file(STYLES, priority=950)
