"""Entries of the bibliography say whether they were checked, and a page says why."""

import re

import pytest

from tools.citations import BIBLIOGRAPHY, cited, entries, uncited
from tools.command import ROOT

ENTRIES = entries()
UNCHECKED = "Entry not checked against the source"
GUIDE = (ROOT / "chapters/reference/literature.md").read_text("utf-8")


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


def test_every_entry_is_cited():
    assert uncited() == []


def test_an_entry_that_no_page_cites_is_said(tmp_path):
    files = {
        BIBLIOGRAPHY: "".join(f"@misc{{{key}, title = {{T}}}}\n" for key in "abcd"),
        "chapters/reference/x.md": "{cite:t}`a, b` and `d`",
        "lib/x.py": '"""By :cite:p:`c`, and not :cit:`d`."""',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (sentence,) = uncited(tmp_path)
    assert sentence.startswith("the entry 'd' of the bibliography is cited on no page")


def test_the_guide_has_every_entry():
    assert sorted(set(ENTRIES) - cited([GUIDE])) == []


def under_mark(text, mark):
    """The keys cited in a sentence that ends with a mark."""
    sentences = re.split(r"(?<=\.)\s+|\n", text)
    return cited(each for each in sentences if each.endswith(f"*({mark})*."))


def test_the_guide_marks_what_was_not_checked():
    memory = {k for k, e in ENTRIES.items() if e.fields.get("note") == UNCHECKED}
    assert under_mark(GUIDE, "memory") == memory
    assert not under_mark(GUIDE, "title") & memory


def test_a_mark_holds_for_its_sentence():
    text = "- {cite:t}`a` has it. See {cite}`b`, {cite}`c` *(memory)*.\n- {cite}`d`."
    assert under_mark(text, "memory") == {"b", "c"}
    assert under_mark(text, "title") == set()
