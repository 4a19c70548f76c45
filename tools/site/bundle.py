"""One style sheet a page instead of a dozen, and in it only what can apply.

On a slow line each style sheet costs a round trip before the first word appears, and
each rule for what the book never shows its bytes. Finished pages are read in one pass
over their text, because parsing them once more takes a sixth of a build: a name that is
none leaves a rule too many, and tests look in a browser for one too few.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tinycss2
from bs4 import BeautifulSoup

from tools.command import PipelineError
from tools.site.markup import some

IMPORT = re.compile(r'@import\s+(?:url\()?["\']([^"\']+)["\']\)?\s*;')
URL = re.compile(r"url\(([\"']?)(?!data:|#)([^)\"']+)\1\)")
# The icon font of the theme, none of whose icons the book shows.
ICON_FONT = re.compile(r"@font-face\s*\{[^{}]*Font ?Awesome[^{}]*\}")
# A style sheet with all rules, and the one with those in use that a page then names.
WHOLE = re.compile(r"book-([0-9a-f]{12})\.css")
TRIMMED = re.compile(r"book-([0-9a-f]{12})(?:-[0-9a-f]{12})?\.css")
NAMED = re.compile(r'\b(?:class|id)="([^"]*)"')
SCRIPT = re.compile(r"<script(?![^>]*json)[^>]*>(.*?)</script>", re.S)
STYLE = re.compile(r"<style[^>]*>.*?</style>", re.S)
WORD = re.compile(r"[\w-]+")
COMMENT = re.compile(r"^ *//.*\n", re.M)
GROUPS = ("media", "supports", "layer", "container")  # at-rules around other rules


def one_style_sheet(tree: BeautifulSoup, path: Path, root: Path) -> None:
    """Replace the style sheets of a page by one file that holds them all."""
    links = some(tree, path.name, "style sheets", "link[rel=stylesheet]")
    names = [str(link["href"]).partition("?")[0] for link in links]
    sheets = [style_sheet((path.parent / name).resolve(), root) for name in names]
    text, fonts = ICON_FONT.subn("", "\n".join(sheets))
    if not fonts:
        raise PipelineError(
            f"{path.name}: its style sheets should have the icon font; there is none"
        )
    name = f"book-{digest(text)}.css"
    target = root / "_static" / name
    if not target.exists():
        target.write_text(text, "utf-8")
    here = posixpath.relpath((root / "_static").as_posix(), path.parent.as_posix())
    links[0]["href"] = f"{here}/{name}"
    for link in links[1:]:
        link.decompose()


def style_sheet(path: Path, root: Path) -> str:
    """Text of a style sheet with its imports, its addresses as from ``_static``."""

    def rebased(match: re.Match[str]) -> str:
        target = (path.parent / match.group(2)).resolve().as_posix()
        here = (root / "_static").resolve().as_posix()
        return f'url("{posixpath.relpath(target, here)}")'

    text = path.read_text("utf-8").replace('@charset "UTF-8";', "")
    imports = [style_sheet(path.parent / name, root) for name in IMPORT.findall(text)]
    return "\n".join([*imports, URL.sub(rebased, IMPORT.sub("", text))])


def trim_style_sheets(root: Path) -> None:
    """Let every page of a finished site name a style sheet of the rules in use.

    A rule stays unless each of its selectors names a class or an identifier that
    stands in no page and is no word of any script.
    """
    static = root / "_static"
    texts = {path: path.read_text("utf-8") for path in pages(root)}
    names = names_in(texts.values(), scripts(static))
    sheets = {}
    for path in static.glob("book-*.css"):
        if match := WHOLE.fullmatch(path.name):
            text = trimmed(path.read_text("utf-8"), names)
            sheets[match[1]] = f"book-{match[1]}-{digest(text)}.css"
            (static / sheets[match[1]]).write_text(text, "utf-8")
    for path, text in texts.items():
        new = TRIMMED.sub(lambda match: sheets[match[1]], text)
        if new != text:
            path.write_text(new, "utf-8")
    for path in static.glob("book-*-*.css"):
        if path.name not in sheets.values():
            path.unlink()


def strip_comments(root: Path) -> None:
    """Let the scripts of the site lose their lines of comments, a seventh of them."""
    for path in (root / "_static").glob("*.mjs"):
        text = path.read_text("utf-8")
        if (bare := COMMENT.sub("", text)) != text:
            path.write_text(bare, "utf-8")


def pages(root: Path) -> Iterator[Path]:
    """The pages that have a style sheet of ours."""
    for path in sorted(root.rglob("*.html")):
        if "_static" not in path.parts and TRIMMED.search(path.read_text("utf-8")):
            yield path


def scripts(static: Path) -> Iterator[str]:
    """The scripts of the site."""
    for path in [*static.rglob("*.js"), *static.rglob("*.mjs")]:
        if "locales" not in path.relative_to(static).parts:
            yield path.read_text("utf-8")


def names_in(pages: Iterable[str], scripts: Iterable[str]) -> frozenset[str]:
    """Classes and identifiers of pages, and every word of a script."""
    used: set[str] = set()
    for page in pages:
        for names in NAMED.findall(STYLE.sub("", page)):
            used.update(names.split())
        for script in SCRIPT.findall(page):
            used.update(WORD.findall(script))
    for script in scripts:
        used.update(WORD.findall(script))
    return frozenset(used)


def trimmed(text: str, names: frozenset[str]) -> str:
    """A style sheet without the rules that can apply to nothing of these names."""
    return kept_rules(text, lambda selector: names.issuperset(selected_names(selector)))


def kept_rules(text: str, applies: Callable[[list[Any]], bool]) -> str:
    """A style sheet with the selectors that ``applies`` says can apply."""
    return "\n".join(_kept(readable_rules(text), applies))


def readable_rules(text: str | Iterable[Any]) -> list[Any]:
    """The rules of a style sheet, or of what stands within a rule."""
    rules = tinycss2.parse_rule_list(text, skip_comments=True, skip_whitespace=True)
    for rule in rules:
        if rule.type == "error":
            raise PipelineError(f"a style sheet cannot be read: {rule.message}")
    return list(rules)


def _kept(rules: list[Any], applies: Callable[[list[Any]], bool]) -> Iterator[str]:
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [each for each in _selectors(rule.prelude) if applies(each)]
            if selectors:
                yield f"{','.join(map(text_of, selectors))}{{{text_of(rule.content)}}}"
        elif rule.content is not None and rule.lower_at_keyword in GROUPS:
            if kept := "".join(_kept(readable_rules(rule.content), applies)):
                yield f"@{rule.at_keyword} {text_of(rule.prelude)}{{{kept}}}"
        else:
            yield rule.serialize()


def _selectors(prelude: Iterable[Any]) -> list[list[Any]]:
    """The selectors of a rule, apart from each other."""
    selectors: list[list[Any]] = [[]]
    for token in prelude:
        if token == ",":
            selectors.append([])
        else:
            selectors[-1].append(token)
    return selectors


def selected_names(selector: list[Any]) -> list[str]:
    """Classes and identifiers that a selector names; brackets are not looked into."""
    after = zip([None, *selector], selector, strict=False)
    return [
        token.value
        for before, token in after
        if token.type == "hash" or before == "." and token.type == "ident"
    ]


def text_of(tokens: Iterable[Any]) -> str:
    """Tokens as text, without comments and with single blanks."""
    return "".join(
        " " if token.type == "whitespace" else token.serialize()
        for token in tokens
        if token.type != "comment"
    ).strip()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
