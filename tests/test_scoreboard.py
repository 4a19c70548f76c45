"""The scoreboard: filters that a keyboard, a link, paper and no script can use."""

import json
from itertools import pairwise

import pytest
from playwright.sync_api import expect
from waits import arrived

from tools.command import ROOT
from tools.mutants import claims_record
from tools.mutants.record import RECORD as MUTANTS
from tools.reseed import RESULTS as RESEED
from tools.reseed import rates
from tools.site.records import fresh_seeds, times
from tools.site.scoreboard import SCOREBOARD, companion, kind, stem
from tools.verdicts import collect, statement_kinds

ADDRESS = f"{SCOREBOARD}.html"
ROWS = ".claims tbody tr"
COUNT = ".claim-filters [role=status]"
READ = """([rows, count]) => [
    [...document.querySelectorAll(rows)]
        .filter((row) => row.checkVisibility())
        .map((row) => [row.cells[0].innerText, row.cells[1].innerText]),
    document.querySelector(count).innerText,
]"""
# The page sets the quotation marks of its text.
STRAIGHT = str.maketrans("“”’", '""\'')


@pytest.fixture
def board(site, browser):
    """The page of the scoreboard, which must not complain of anything."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, seen = context.new_page(), []
    page.on("console", lambda m: m.type == "error" and seen.append(m.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.goto(site + ADDRESS, wait_until="networkidle")
    arrived(page)
    yield page
    context.close()
    assert seen == []


def shown(page, wanted):
    """Verdict and claim of the rows on the screen: ``wanted``, or so many.

    A busy browser heeds keys and addresses late, so the number that the page says is
    waited for; the rows are then read with it in one go.
    """
    number = wanted if isinstance(wanted, int) else len(wanted)
    heeded = f"{number} of {len(collect())} claims shown"
    expect(page.locator(COUNT)).to_have_text(heeded)
    rows, said = page.evaluate(READ, [ROWS, COUNT])
    claims = [(word, claim.translate(STRAIGHT)) for word, claim in rows]
    assert (len(claims), said) == (number, heeded)
    assert wanted in (number, claims)
    return claims


def field(page, name):
    return page.locator(f".claim-filters [name={name}]")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("verdict", "refuted", lambda row: row.word == "REFUTED"),
        ("verdict", "holds", lambda row: row.word == "HOLDS"),
        ("kind", "theorem", lambda row: kind(row, statement_kinds()) == "kind-theorem"),
        ("kind", "none", lambda row: row.statement is None),
        ("page", "errata", lambda row: stem(row.page) == "errata"),
        # Any case, any order, and a hyphen for the minus sign.
        ("claim", "^-½  MEAN", lambda r: "mean" in r.claim and "^−½" in r.claim),
    ],
)
def test_filter_shows_the_rows_it_names(board, name, value, wanted):
    rows = collect()
    shown(board, len(rows))
    if name == "claim":
        field(board, name).press_sequentially(value)
    else:
        field(board, name).select_option(value)
    claims = shown(board, [(row.word, row.claim) for row in rows if wanted(row)])
    assert 0 < len(claims) < len(rows)
    board.locator(".claim-filters button").click()
    shown(board, len(rows))
    assert "#" not in board.url


def test_keyboard_filters_and_the_address_keeps_the_view(site, board):
    field(board, "page").focus()
    board.keyboard.press("Tab")
    board.keyboard.type("REF")
    board.keyboard.press("Tab")
    board.keyboard.press("Tab")
    board.keyboard.type("jacobian")
    board.keyboard.press("Enter")  # must not send the form
    rows = [row for row in collect() if row.word == "REFUTED"]
    wanted = [(row.word, row.claim) for row in rows if "jacobian" in row.claim.lower()]
    view = shown(board, wanted)
    assert view
    assert board.url.endswith("#?verdict=refuted&claim=jacobian")
    pages = {row.page for row in collect() if (row.word, row.claim) in view}
    assert board.locator("section.claims:visible").count() == len(pages)
    linked = board.context.new_page()
    linked.goto(board.url, wait_until="networkidle")
    shown(linked, view)
    assert field(linked, "claim").input_value() == "jacobian"
    assert linked.locator(".claim-filters").bounding_box()["y"] < 200
    # A place on the page is no view: it is shown, whatever was hidden before.
    linked.evaluate("location.hash = '#claims-errata'")
    linked.locator("#claims-errata").wait_for(state="visible")
    shown(linked, len(collect()))
    assert 0 <= linked.locator("#claims-errata").bounding_box()["y"] < 450
    linked.close()


def test_unknown_filters_of_an_address_show_everything(site, board):
    page = board.context.new_page()
    page.goto(f"{site}{ADDRESS}#?page=nowhere&verdict=maybe&x=%3Cb%3E")
    page.locator(".claim-filters").wait_for(state="visible")
    shown(page, len(collect()))
    assert field(page, "page").evaluate("e => e.selectedOptions[0].text") == "all pages"
    page.close()


def test_paper_has_the_chosen_rows_and_no_controls(board):
    field(board, "verdict").select_option("refuted")
    chosen = [(row.word, row.claim) for row in collect() if row.word == "REFUTED"]
    shown(board, chosen)
    board.emulate_media(media="print")
    assert len(shown(board, chosen)) < len(collect())
    controls = board.locator(".claim-filters :is(select, input, button)")
    assert controls.locator("visible=true").count() == 0 < controls.count()
    assert board.locator(".claim-filters [role=status]").is_visible()


def test_without_scripts_all_rows_and_no_filters(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + ADDRESS)
    assert page.locator(f"{ROWS}:visible").count() == len(collect())
    assert not page.locator(".claim-filters").is_visible()
    context.close()


def test_script_is_loaded_on_its_page_only(site, browser):
    for name, count in ((ADDRESS, 1), ("chapters/index.html", 0)):
        page = browser.new_page()
        page.goto(site + name)
        assert page.locator("script[src*='scoreboard.mjs']").count() == count
        page.close()


def test_rows_lead_to_verdict_and_statement(site, board):
    wanted = {row.id: row for row in collect()}
    rows = board.locator(ROWS).evaluate_all(
        "rows => rows.map((row) =>"
        " [...row.querySelectorAll('a')].map((a) => a.getAttribute('href')))"
    )
    for links in rows[:40]:
        source = wanted[links[0].partition("#")[2]]
        assert links[0].startswith(f"../{stem(source.page)}.html#")
        assert len(links) == (2 if source.statement else 1)
        assert not source.statement or links[1].endswith(f"#{source.statement}")


def test_on_a_phone_a_claim_is_a_card(site, browser):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(site + ADDRESS, wait_until="networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    cells = page.locator(f"{ROWS}:first-child td:visible").evaluate_all(
        "cells => cells.map((cell) => cell.getBoundingClientRect().toJSON())"
    )
    assert cells and all(box["left"] >= 0 and box["right"] <= 390 for box in cells)
    for control in page.locator(".claim-filters :is(select, input, button)").all():
        assert control.bounding_box()["height"] >= 44
    page.close()


def test_expected_failures_are_all_listed(board):
    rows = collect()
    failing = [row for row in rows if row.word == "REFUTED"]
    items = board.locator(".claims-failing > li").all()
    assert len(items) == len(failing) > 0
    for item, row in zip(items, failing, strict=True):
        text, links = item.inner_text().translate(STRAIGHT), item.locator("a")
        assert row.claim in text and row.numbers in text
        assert row.section.translate(STRAIGHT) in text
        assert links.first.get_attribute("href").endswith(f"#{row.id}")
        if beside := companion(row, rows):
            assert links.last.get_attribute("href").endswith(f"#{beside.id}")


def test_companion_holds_and_is_the_nearest_of_its_section():
    rows = collect()
    for row in rows:
        beside = companion(row, rows)
        if beside:
            assert beside.word == "HOLDS" and beside != row
            assert (beside.page, beside.section) == (row.page, row.section)
        else:
            near = [r for r in rows if (r.page, r.section) == (row.page, row.section)]
            assert all(r.word == "REFUTED" or r == row for r in near)
    first, second = next(
        pair
        for pair in pairwise(rows)
        if len({(row.page, row.section, row.word) for row in pair}) == 1
        and pair[0].word == "HOLDS"
    )
    assert companion(second, [first, second]) == first


def test_every_statement_of_a_claim_has_a_kind():
    kinds = statement_kinds()
    used = {kinds[row.statement] for row in collect() if row.statement}
    assert {"theorem", "proposition"} <= used and "proof" not in used


def test_fresh_seeds_are_told_in_words(board):
    assert times({"HOLDS": 19, "FAILS": 1}) == "HOLDS 19 times, FAILS once"
    part, tally = board.locator("#fresh-seeds"), json.loads((ROOT / RESEED).read_text())
    assert fresh_seeds(tally) in part.inner_text()
    rows = part.locator("tbody tr").evaluate_all(
        "rows => rows.map((r) => [...r.cells].slice(1).map((c) => c.innerText))"
    )
    refuted = {(row.page, row.id) for row in collect() if row.word == "REFUTED"}
    assert rows == [
        [*(f"{number:,}" for number in rate), f"{rate.bound:.2g}"]
        for rate in rates(tally["claims"], refuted)
    ]


def test_the_power_of_the_tests_is_that_of_the_record(board):
    """Each mutant that no test notices is a row, with its reason."""
    record = json.loads((ROOT / MUTANTS).read_text("utf-8"))
    power, counts = board.locator("#power-of-the-checks"), record["summary"]
    text = power.inner_text()
    wrong = counts["mutants"] - counts["equivalent"]
    assert f"notice {counts['noticed']} of the other {wrong}" in text
    rows = power.locator("tbody tr")
    alive = [row for row in record["mutants"] if row["how"] is None]
    assert rows.count() == len(alive) == counts["equivalent"] + counts["alive"]
    said = rows.evaluate_all("rows => rows.map((r) => r.cells[3].innerText)")
    reasons = [row["reason"] or "alive" for row in alive]
    assert sorted(x.translate(STRAIGHT) for x in said) == sorted(reasons)


def test_beside_each_verdict_stands_what_turns_it_red(board):
    """File, function, change and number of the record, in the order of the rows."""
    rows = claims_record.read(ROOT)
    cells = board.locator(ROWS).evaluate_all(
        "rows => rows.map((r) => r.cells[5].innerText)"
    )
    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        if mutant := row["mutant"]:
            places = [mutant["file"].partition("/")[2], mutant["function"]]
            assert ": ".join(filter(None, places)) in cell
            assert f"{mutant['was']} → {mutant['to']}" in cell
            assert row["red"]["numbers"].partition(";")[0] in cell
        else:
            assert cell == "none found"
