"""Sphinx extension: after an edit, only the pages that it reaches are made again.

Sphinx reads a page again when a file of it is newer than the page, and writes what it
has read. Two things are added here. Files are compared by content, because an old
version that comes back brings its old time with it. And a page is written again when
something changed that it shows of others: titles in the sidebar, numbers of statements,
labels that it may link to, verdicts under its statements. A build that begins with the
pages of the last one then ends with the files of a build from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.digests import sha
from tools.verdicts import statement_kinds

READS_VERDICTS = "reads-verdicts"  # in the metadata of a page that lists them all


def forget_nothing(app: Any) -> None:
    """Remains of the last build in its environment, before this one writes there."""
    for name in ("limit_contents", "limit_shared", "limit_tables"):
        if not hasattr(app.env, name):
            setattr(app.env, name, {})


def with_other_contents(
    app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]
) -> set[str]:
    """Pages to read again: what they are made of is not what it was."""
    before, env.limit_tables = env.limit_tables, tables(env)
    other = {name for name in env.limit_tables if _differs(name, before, env)}
    stale = set()
    if "verdicts" in other:
        stale |= {page for page, own in env.metadata.items() if READS_VERDICTS in own}
    if "used in" in other:
        stale |= {each.docname for each in env.domains["py"].objects.values()}
    return stale | {
        page
        for page in env.found_docs - added
        if env.limit_contents.get(page) != contents(env, page)
    }


def _differs(name: str, before: dict[str, str], env: Any) -> bool:
    return bool(before) and before.get(name) != env.limit_tables[name]


def tables(env: Any) -> dict[str, str]:
    """Data that directives read of all notebooks at once."""
    return {
        "verdicts": repr((env.limit_rows, statement_kinds())),
        "used in": repr(env.limit_used_in),
    }


def contents(env: Any, page: str) -> dict[str, str]:
    """Digests of the files that a page is made of."""
    files = [env.doc2path(page), *sorted(env.dependencies[page])]
    return {str(file): _content(Path(env.srcdir, file)) for file in files}


def _content(path: Path) -> str:
    return sha(path.read_bytes()) if path.is_file() else "missing"


def to_write(app: Any, env: Any) -> Iterable[str]:
    """Pages to write again, beyond those that were read."""
    env.limit_contents = {page: contents(env, page) for page in env.found_docs}
    before, env.limit_shared = env.limit_shared, shared(env)
    checks = {key: value for key, value in before.items() if key[0] == "checks"}
    if not before.items() - checks.items() <= env.limit_shared.items():
        return set(env.found_docs)
    # What is new is shown by nobody yet, less the verdicts under a statement.
    return _indexed(env) | {
        env.proof_list[label]["docname"]
        for _, label in _changed(checks, env.limit_shared)
        if label in env.proof_list
    }


def _changed(
    checks: dict[tuple[str, str], str], now: dict[tuple[str, str], str]
) -> set[tuple[str, str]]:
    keys = checks.keys() | {key for key in now if key[0] == "checks"}
    return {key for key in keys if checks.get(key) != now.get(key)}


def _indexed(env: Any) -> set[str]:
    """Sphinx does not take the entries of these pages from its stored search index."""
    entries = env.domains["index"].entries
    return {page for page, own in entries.items() if own}


def shared(env: Any) -> dict[tuple[str, str], str]:
    """All that one page may show of another, by kind and name."""
    facts = {("title", page): title.astext() for page, title in env.titles.items()} | {
        ("pages below", page): repr(below) for page, below in _below(env)
    }
    for page, own in env.toc_secnumbers.items():
        facts |= {("section", f"{page}{id}"): repr(x) for id, x in own.items()}
    for page, kinds in env.toc_fignumbers.items():
        for kind, own in kinds.items():
            facts |= {("figure", f"{page} {kind} {k}"): repr(x) for k, x in own.items()}
    for name, entry in getattr(env, "proof_list", {}).items():
        facts["statement", name] = repr({k: v for k, v in entry.items() if k != "node"})
        own = [row for row in env.limit_rows if row.statement == name]
        facts["checks", name] = repr(own)
    standard = env.domains["std"]
    for table in (standard.labels, standard.anonlabels, standard.objects):
        facts |= {("label", repr(name)): repr(place) for name, place in table.items()}
    for domain in ("math", "py"):
        table = env.domains[domain].data["objects"]
        facts |= {(domain, name): repr(place) for name, place in table.items()}
    facts["cited", ""] = repr(
        [(each.key, each.citation_id, each.bibliography_key.docname,
          each.formatted_entry.label, str(each.formatted_entry.text))
         for each in env.domains["cite"].citations]
    )  # fmt: skip
    return facts


def _below(env: Any) -> Iterable[tuple[str, list[str]]]:
    return env.toctree_includes.items()


def without_lost_words(app: Any) -> list[Any]:
    """Words that are on no page any more leave the search index that Sphinx reads."""
    for words in (app.builder.indexer._mapping, app.builder.indexer._title_mapping):
        for word in [word for word, pages in words.items() if not pages]:
            del words[word]
    return []


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", forget_nothing)
    app.connect("env-get-outdated", with_other_contents)
    # After Sphinx has numbered what the pages have, and the works that they cite.
    app.connect("env-updated", to_write, priority=900)
    app.connect("html-collect-pages", without_lost_words)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
