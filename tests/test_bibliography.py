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
