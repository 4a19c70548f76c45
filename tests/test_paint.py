"""The first sight of a page: what is recorded of it and what is told."""

import json

from tools import paint
from tools.browser import first_movement
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
    paint.main()
    record = json.loads((tmp_path / paint.RECORD).read_text("utf-8"))
    assert record["pages"] == pages and len(record["date"]) == 10
    assert capsys.readouterr().out.splitlines() == [
        "paint: a.html: first contentful paint after 1.25 s at 1.6 Mbit/s, 2 kB",
        "paint: c.html: first contentful paint after 1.00 s at 1.6 Mbit/s, 2 kB;"
        " first movement after 1.50 s",
        "paint: b.html: no browser found",
    ]


def test_a_machine_without_browser_says_so_for_each_page(monkeypatch):
    monkeypatch.setattr(paint, "browser_path", lambda: None)
    assert [each["note"] for each in paint.paint()] == ["no browser found"] * len(
        paint.PAGES
    )
    assert [each["page"] for each in paint.paint()] == [*paint.PAGES]


def test_the_landing_page_and_every_chapter_are_measured():
    assert set(paint.PAGES) == set(SECOND_EDITION)


def test_the_first_frame_of_an_exhibit_is_timed(site, browser):
    moved = first_movement(browser, f"{site}{paint.PAGES[0]}", slowed=2)
    assert moved > 0
    assert first_movement(browser, f"{site}chapters/reference/notation.html") is None
