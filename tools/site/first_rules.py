"""The rules of a page up to its exhibit, within the page: it moves before the rest.

A style sheet in the head holds back all of a page until it is there, and the one of the
book shares a slow line with the text. A page with an exhibit has in its head the *first
rules* instead, those that can apply to something as far as the end of the exhibit, and
the complete sheet behind it: there a sheet holds back what follows it and nothing that
precedes it. It comes later and has every first rule as well, so that it decides all.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tinycss2
from bs4 import BeautifulSoup

from tools.site.bundle import (
    GROUPS,
    TRIMMED,
    URL,
    kept_rules,
    names_in,
    pages,
    readable_rules,
    selected_names,
    text_of,
)
from tools.site.markup import one

FIRST = "first-rules"  # the identifier of their element
PLACE = re.compile(rf'(<style id="{FIRST}">)(.*?)(</style>)', re.S)
# Before that place stand the scripts of exhibits, and behind it those of all pages.
SCRIPT = re.compile(r'_static/([\w-]+\.mjs)"')
ELEMENT = re.compile(r"<([a-z][a-z0-9]*)")
# Names of elements as a script has them that makes some: in quotes, or as markup.
MADE = re.compile(r"[\"'`<]([a-z][a-z0-9]*)[\"'`>\s]")


class Seen(NamedTuple):
    """Names up to the end of the exhibits of pages, or that a script may put there."""

    names: frozenset[str]  # classes and identifiers, and every word of a script
    elements: frozenset[str]


def put_first_rules(tree: BeautifulSoup, name: str) -> None:
    """Make a place for the first rules of a page, and put its sheet behind its exhibit.

    Nothing is drawn before the exhibit has come in, which is soon: what is drawn line
    by line takes a slow processor from reading on.
    """
    exhibit = tree.select_one("figure.book-exhibit")
    if exhibit is None:
        return
    caption = one(exhibit, name, "a caption with a name", "figcaption[id]")
    whole = {"rel": "expect", "href": f"#{caption['id']}", "blocking": "render"}
    sheet = one(tree, name, "a style sheet", "head > link[rel=stylesheet]")
    modules = "head > link[rel=modulepreload]:not(:has(~ link[rel=modulepreload]))"
    one(tree, name, "modules of its exhibit", modules).insert_after(
        tree.new_tag("style", id=FIRST), tree.new_tag("link", attrs=whole)
    )
    exhibit.insert_after(sheet.extract())


def take_first_rules(tree: BeautifulSoup, name: str) -> None:
    """Put the sheet of a page back into its head: for a page that has other parts."""
    for place in tree.select(f"style#{FIRST}"):
        one(tree, name, "what it waits for", "link[rel=expect]").decompose()
        sheet = one(
            tree, name, "a sheet behind its exhibit", "body link[rel=stylesheet]"
        )
        place.replace_with(sheet.extract())


def write_first_rules(root: Path) -> None:
    """Fill the places for first rules in the pages of a finished site.

    The rules are the same in all pages that name the same style sheet.
    """
    static = root / "_static"
    texts = {path: path.read_text("utf-8") for path in pages(root)}
    texts = {path: text for path, text in texts.items() if PLACE.search(text)}
    seen = seen_in(map(beginning, texts.values()), static)
    rules: dict[str, str] = {}
    for path, text in texts.items():
        sheet = TRIMMED.search(text)[0]  # type: ignore[index]  # it is one of pages()
        if sheet not in rules:
            rules[sheet] = first_rules((static / sheet).read_text("utf-8"), seen)
        here = posixpath.relpath(static.as_posix(), path.parent.as_posix())
        new = filled(text, URL.sub(rf'url("{here}/\2")', rules[sheet]))
        if new != text:
            path.write_text(new, "utf-8")


def filled(page: str, rules: str) -> str:
    """A page with these first rules; of another build it may have had others."""
    return PLACE.sub(lambda match: f"{match[1]}{rules}{match[3]}", page)


def beginning(page: str) -> str:
    """A page up to the end of its first exhibit, behind which its sheet is named."""
    page = filled(page, "")
    return page[: TRIMMED.search(page).start()]  # type: ignore[union-attr]


def seen_in(beginnings: Iterable[str], static: Path) -> Seen:
    """Names that beginnings of pages have, and those that their scripts may add."""
    beginnings = list(beginnings)
    heads = [page.partition(f'<style id="{FIRST}"')[0] for page in beginnings]
    files = {file for head in heads for file in SCRIPT.findall(head)}
    scripts = [(static / file).read_text("utf-8") for file in sorted(files)]
    elements = {each for page in beginnings for each in ELEMENT.findall(page)}
    made = {each for script in scripts for each in MADE.findall(script)}
    return Seen(names_in(beginnings, scripts), frozenset(elements | made))


def first_rules(sheet: str, seen: Seen) -> str:
    """The rules of a sheet that can apply, with no property that nothing reads."""

    def applies(selector: list[Any]) -> bool:
        elements = (each.lower() for each in selected_elements(selector))
        return seen.names.issuperset(
            selected_names(selector)
        ) and seen.elements.issuperset(elements)

    rules = readable_rules(kept_rules(sheet, applies))
    read = words_read(declared(rules), seen.names)
    return "".join(written(rules, read))


def selected_elements(selector: list[Any]) -> Iterator[str]:
    """The kinds of elements that a selector names; brackets are not looked into."""
    after = zip([None, *selector], selector, strict=False)
    for before, token in after:
        if token.type == "ident" and before != "." and before != ":":
            yield token.value


def declared(rules: Iterable[Any]) -> Iterator[tuple[str, set[str]]]:
    """The properties that rules set, each with the words of its value."""
    for rule in rules:
        if rule.type == "qualified-rule":
            for each in declarations(rule):
                yield each.name, set(words_of(each.value))
        elif rule.content is not None and rule.lower_at_keyword in GROUPS:
            yield from declared(readable_rules(rule.content))


def declarations(rule: Any) -> list[Any]:
    """Declarations of a rule without pictures: icons cost as much as all the rest.

    For each a browser opens a document. What is no declaration it passes over.
    """
    parts = tinycss2.parse_blocks_contents(
        rule.content, skip_comments=True, skip_whitespace=True
    )
    return [
        each
        for each in parts
        if each.type == "declaration" and not any(map(is_address, each.value))
    ]


def is_address(token: Any) -> bool:
    """Say whether part of a value is a picture, or leads to one."""
    return token.type == "url" or (
        token.type == "function" and token.lower_name == "url"
    )


def words_of(tokens: Iterable[Any]) -> Iterator[str]:
    """Names and texts of a value, within brackets as well."""
    for token in tokens:
        if token.type in ("ident", "string"):
            yield token.value
        inner = getattr(token, "arguments", None) or getattr(token, "content", None)
        yield from words_of(inner or ())


def words_read(
    properties: Iterable[tuple[str, set[str]]], names: Iterable[str]
) -> set[str]:
    """Words that values have: of custom properties, those that are read themselves.

    ``names`` are read by others, as the colors are that a script asks for.
    """
    read, custom = set(names), {}
    for name, words in properties:
        if name.startswith("--"):
            custom[name] = custom.get(name, set()) | words
        else:
            read |= words
    while now := read & custom.keys():
        for name in now:
            read |= custom.pop(name)
    return read


def written(rules: Iterable[Any], read: set[str]) -> Iterator[str]:
    """Rules in short, without properties, letters and movements that nothing reads."""
    for rule in rules:
        if rule.type == "qualified-rule":
            own = [
                f"{each.name}:{text_of(each.value)}{'!important' * each.important}"
                for each in declarations(rule)
                if not each.name.startswith("--") or each.name in read
            ]
            if own:
                yield f"{text_of(rule.prelude)}{{{';'.join(own)}}}"
        elif rule.content is None:
            yield rule.serialize()
        elif rule.lower_at_keyword in GROUPS:
            if inner := "".join(written(readable_rules(rule.content), read)):
                yield f"@{rule.at_keyword} {text_of(rule.prelude)}{{{inner}}}"
        elif read.issuperset(names_of(rule)):
            yield rule.serialize()


def names_of(rule: Any) -> Iterator[str]:
    """Names that other rules give to the letters or movements of a rule."""
    if rule.lower_at_keyword == "font-face":
        for each in declarations(rule):
            if each.lower_name == "font-family":
                yield from words_of(each.value)
    else:
        yield from words_of(rule.prelude)
