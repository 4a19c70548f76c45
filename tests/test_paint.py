"""The first sight of a page: what is recorded of it and what is told."""

import json

import pytest

from tools import paint
from tools.browser import first_movement, frames
from tools.reading import SECOND_EDITION


def test_what_was_measured_is_recorded_and_told(tmp_path, monkeypatch, capsys):
    pages = [
        {"page": "a.html", "seconds": 1.25, "bytes": 2000},
        {"page": "c.html", "seconds": 1, "bytes": 2000, "moves": 1.5},
        {"page": "b.html", "note": "no browser found"},
    ]
    (tmp_path / paint.RECORD).parent.mkdir(parents=True)
    monkeypatch.setattr(paint, "ROOT", tmp_path)
    monkeypatch.setattr(paint, "paint", lambda: pages)
    globe = {"tokens": 256, "frames": 60, "script": 4.25}
    monkeypatch.setattr(paint, "globe", lambda: globe)
    paint.main()
    record = json.loads((tmp_path / paint.RECORD).read_text("utf-8"))
    assert record["pages"] == pages and len(record["date"]) == 10
    assert record["globe"] == globe
    assert capsys.readouterr().out.splitlines() == [
        "paint: a.html: first contentful paint after 1.25 s at 1.6 Mbit/s, 2 kB",
        "paint: c.html: first contentful paint after 1.00 s at 1.6 Mbit/s, 2 kB;"
        " first movement after 1.50 s",
        "paint: b.html: no browser found",
        "paint: The globe with 256 tokens draws 60 frames a second, of the 60 shown,"
        " with 4.2 ms of script each.",
    ]


def test_a_machine_without_browser_says_so_for_each_page(monkeypatch):
    monkeypatch.setattr(paint, "browser_path", lambda: None)
    assert [each["note"] for each in paint.paint()] == ["no browser found"] * len(
        paint.PAGES
    )
    assert [each["page"] for each in paint.paint()] == [*paint.PAGES]
    assert paint.told_of_globe(paint.globe()) == (
        "The globe was not measured: no browser found."
    )


def test_the_landing_page_and_every_chapter_are_measured():
    assert set(paint.PAGES) == set(SECOND_EDITION)


def test_the_first_frame_of_an_exhibit_is_timed(site, browser):
    moved = first_movement(browser, f"{site}{paint.PAGES[0]}", slowed=2)
    assert moved > 0
    assert first_movement(browser, f"{site}chapters/reference/notation.html") is None


def test_frames_of_the_globe_are_counted_at_its_most_tokens(site, browser):
    where = (browser, site + paint.GLOBE)
    counts, cost = frames(*where, paint.MOST, 2, viewport=paint.DESK)
    assert len(counts) == 2 and min(counts) > 0 and cost > 0
    with pytest.raises(Exception, match="tokens are at most 256, not 300"):
        frames(*where, ("tokens", 300), 2, viewport=paint.DESK)
