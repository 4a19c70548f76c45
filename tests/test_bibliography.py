"""Every entry of the bibliography is complete and says whether it was checked."""

import re

import pytest
from pybtex.database import parse_file

from tools.command import ROOT

ENTRIES = parse_file(str(ROOT / "chapters/reference/references.bib")).entries
UNCHECKED = "Entry not checked against the source"


@pytest.mark.parametrize("key", ENTRIES)
def test_entry_is_complete_and_says_whether_it_was_checked(key):
    entry = ENTRIES[key]
    assert entry.persons.get("author") or entry.persons.get("editor")
    assert entry.fields["title"] and re.fullmatch(r"\d{4}", entry.fields["year"])
    where = {
        "eprint",
        "doi",
        "url",
        "journal",
        "booktitle",
        "publisher",
        "howpublished",
    }
    assert where & set(entry.fields)
    assert ("checked" in entry.fields) != (entry.fields.get("note") == UNCHECKED)


def test_entries_are_sorted_and_differ():
    assert list(ENTRIES) == sorted(ENTRIES)
    prints = [e.fields["eprint"] for e in ENTRIES.values() if "eprint" in e.fields]
    assert len(set(prints)) == len(prints)


def uncited(keys, texts):
    """A sentence for each entry that no page cites."""
    cited = {
        key.strip()
        for text in texts
        for keys_of in CITED.findall(text)
        for key in keys_of.split(",")
    }
    return [
        f"the entry {key!r} of the bibliography is cited on no page: cite it where it"
        " helps a reader, or take it out"
        for key in keys
        if key not in cited
    ]


CITED = re.compile(r"(?:\{cite[\w:]*\}|:cite[\w:]*:)`([^`]+)`")
PAGES = [p for p in (ROOT / "chapters").rglob("*.md") if p.stem != "bibliography"]


def test_entries_that_no_page_cites_do_not_become_more():
    """The first edition left 62; each page of the second cites what it builds on."""
    texts = [p.read_text("utf-8") for p in [*PAGES, *(ROOT / "lib").rglob("*.py")]]
    assert len(uncited(ENTRIES, texts)) <= 62


def test_an_entry_that_no_page_cites_is_said():
    texts = ["{cite:t}`a, b` and", ":cite:p:`c`", "`d`"]
    (sentence,) = uncited("abcd", texts)
    assert sentence.startswith("the entry 'd' of the bibliography is cited on no page")
