"""The measures of a page: right on small pages, and red for each planted fault."""

import json

import pytest

from tools import reading
from tools.citations import BIBLIOGRAPHY
from tools.command import PipelineError
from tools.serve import served

CODE = "x = 1\n"
FIGURE = (
    '<figure style="margin:0"><svg role="img" width="300" height="400"'
    ' viewBox="0 0 300 400"><text x="9" y="40" style="font-size:14px">axis</text></svg>'
    '<input type="range" min="0" max="1" step="any"></figure>'
)
TEXT = '<p style="height:200px;margin:0">Words.</p>'
GOOD = f"""
<h1>A page</h1><p>A question?</p>{FIGURE}
<section><h2>Heat</h2>{TEXT}<div class="cell_input"><pre style="height:60px;margin:0">
{CODE * 6}</pre></div>{TEXT}
<div class="proof admonition"><p class="admonition-title">Theorem</p>7 checks hold</div>
{FIGURE}<p>A check <span>HOLDS</span> in the line.</p>
<details><summary>Code</summary><div class="cell_input"><pre>{CODE * 40}</pre></div>
</details></section><section><h2>Notes</h2><p>Read the notes.</p></section>
"""


def body(article, style=""):
    return (
        "<!DOCTYPE html><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'><style>"
        f"body{{margin:0}} pre{{overflow:auto}} {style}</style>"
        f"<article style='display:block;padding:0 10px'>{article}</article>"
    )


@pytest.fixture(scope="module")
def measured(browser, tmp_path_factory):
    """What is measured on a small page."""
    folder = tmp_path_factory.mktemp("pages")
    with served(folder) as site:

        def measure(article, style="", name="chapters/1-page.html"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(body(article, style), "utf-8")
            return reading.reading(browser, site, name, ready="load")

        yield measure


def faults(values, address="chapters/1-page.html"):
    """The measures that a page misses."""
    return {line.split(": ")[1] for line in reading.missed(address, values)}


def test_good_page_misses_nothing(measured):
    values = measured(GOOD)
    assert faults(values) == set()
    assert values["exhibit"] == values["exhibit_phone"] == 1
    assert values["live"] == 2 and values["words"] < 60
    assert values["code"] == pytest.approx(60 / 1700, abs=0.02)
    assert values["figures"] == pytest.approx(800 / 1700, abs=0.1)


LONG = '<p style="height:3000px">Words.</p>'
TABLE = "<table><tr>" + "<td>a_very_long_number</td>" * 20 + "</tr></table>"
WIDE = '<mjx-container style="display:inline-block;width:{}px">f</mjx-container>'
BLOCK = (
    '<mjx-container display="true" style="display:block;{}"><i>f</i></mjx-container>'
)
CHECK = (
    '<p class="verdict"><b>{}</b> a long claim<span style="display:block">and numbers'
    "</span></p>"
)
SVG = '<figure><svg width="300" height="120" viewBox="0 0 900 360">{}</svg></figure>'
BOTH = {"exhibit on the first screen", "… of a phone"}
LABEL = "smallest label on a phone, px"
CUE = "too wide for a phone, without cue"
CELL = "sections without short open cell"
CUT = "formulas cut on a phone"
SENTENCES = "sentences about the sources"
PLANTED = {
    "no exhibit": (GOOD.replace(FIGURE, "", 1), BOTH),
    "exhibit below": (LONG.replace("3000", "700") + GOOD, BOTH),
    "below on a phone only": (
        '<p style="font-size:30px">' + "word " * 150 + "</p>" + GOOD,
        {"… of a phone"},
    ),
    "a picture that nobody moves": (GOOD.replace("<input", "<i", 1), BOTH),
    "open code": (
        GOOD + f'<div class="cell_input"><pre style="height:600px">{CODE}</pre></div>',
        {"open code, of the height"},
    ),
    "cell too long": (GOOD.replace(CODE * 6, CODE * 7), {CELL}),
    "cell folded": (
        GOOD.replace(
            '<div class="cell_input"><pre style',
            '<details><summary>c</summary><div class="cell_input"><pre style',
        ).replace(f"{CODE * 6}</pre></div>", f"{CODE * 6}</pre></div></details>"),
        {CELL},
    ),
    "few pictures": (
        GOOD + LONG,
        {"figures, of the height", "screens without a picture"},
    ),
    "a long way": (GOOD + LONG + FIGURE * 3, {"screens without a picture"}),
    "too many words": (
        GOOD + f"<p style='font-size:1px'>{'word ' * 4500}</p>",
        {"words"},
    ),
    "a box": (GOOD + CHECK.format("HOLDS"), {"check boxes in the flow"}),
    "an unfolded box": (
        GOOD + CHECK.format("A tempting mistake, rejected:"),
        {"check boxes in the flow"},
    ),
    "refuted theorem": (
        GOOD.replace("7 checks hold", "<p>Checked: <a>holds</a> · <a>refuted</a></p>"),
        {"statements that say refuted"},
    ),
    "formula that leaves": (GOOD + f"<p>{WIDE.format(500)}</p>", {CUT}),
    "formula that is cut": (
        GOOD + f'<p style="overflow-x:hidden">{WIDE.format(500)}</p>',
        {CUT},
    ),
    "display without cue": (
        GOOD + f'<div style="overflow:auto">{BLOCK.format("width:600px")}</div>',
        {CUE},
    ),
    "table that sticks out": (GOOD + TABLE, {CUE}),
    "table without cue": (GOOD + f'<div style="overflow-x:auto">{TABLE}</div>', {CUE}),
    "print without cue": (
        GOOD + f'<div class="cell_output"><pre>{"1234567890 " * 20}</pre></div>',
        {CUE},
    ),
    "small label": (
        GOOD + SVG.format('<text y="90" style="font-size:30px">x</text>'),
        {LABEL},
    ),
    "small words in an exhibit": (
        GOOD.replace("</figure>", "<b style='font-size:9px'>0.1</b></figure>", 1),
        {LABEL},
    ),
    "the notes": (GOOD + "<p>So far the notes are right.</p>", {SENTENCES}),
    "the poster, folded": (
        GOOD + "<details class='sd-dropdown'><summary>Answer</summary>"
        "<p>The poster says 2.</p></details>",
        {SENTENCES},
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_found_and_no_other(measured, fault):
    article, missed = PLANTED[fault]
    assert faults(measured(article)) == missed


HARMLESS = {
    "formula that scrolls": f'<p style="overflow-x:auto">{WIDE.format(500)}</p>',
    "formula that is cut in a fold": (
        f"<details><summary>Proof</summary><p>{WIDE.format(500)}</p></details>"
    ),
    "shade where a table goes on": (
        '<div style="overflow-x:auto;mask-image:linear-gradient(90deg,#000,#0000)">'
        f"{TABLE}</div>"
    ),
    "shadow where a table goes on": (
        '<div style="overflow-x:auto;box-shadow:inset -1rem 0 .9rem -.9rem #000">'
        f"{TABLE}</div>"
    ),
    "arrow where a table goes on": (
        f'<div class="cue" style="overflow:auto">{TABLE}</div>'
    ),
    "chip in the margin": CHECK.format("REFUTED").replace(
        "<p ", '<p style="float:right" '
    ),
    "chip in the line": "<p>So it is. <b>HOLDS</b></p>",
    "box in a fold": (
        f"<details><summary>Three</summary>{CHECK.format('HOLDS')}</details>"
    ),
    "unfolded check of a line": "<p class='verdict'><b>Holds:</b> in a line</p>",
    "small exponent": SVG.format(
        '<text y="90" style="font-size:36px"><tspan>10</tspan>'
        '<tspan style="font-size:20px">2</tspan></text>'
    ),
    "words of checks": (
        f"<details><summary>3 checks</summary><p>{'word ' * 5000}</p></details>"
    ),
    "source code": "<p>Its source code.</p>",
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_no_fault_is_none(measured, what):
    style = ".cue::after{content:'→'}"
    assert faults(measured(GOOD + HARMLESS[what], style)) == set()


def test_words_on_a_canvas_are_labels(measured):
    painted = """<figure><canvas id="c" width="600" height="200"
      style="width:300px;height:100px"></canvas></figure><script>
      const pen = document.getElementById('c').getContext('2d');
      pen.font = '20px serif'; pen.fillText('tick', 9, 30);</script>"""
    values = measured(GOOD + painted)
    assert values["label"] == pytest.approx(10) and values["smallest"] == "tick"


def test_reference_is_held_to_less_and_errata_may_speak_of_sources(measured):
    text = "<h1>x</h1><p>So far the notes are right.</p>" + CHECK.format("HOLDS")
    for name, missed in (
        ("chapters/reference/teaching.html", {"sentences about the sources"}),
        ("chapters/reference/errata.html", set()),
    ):
        assert faults(measured(text, name=name), name) == missed


def test_missed_target_says_page_value_target_and_place(measured):
    values = measured(GOOD + "<p>So far the notes are right.</p>")
    (line,) = reading.missed("chapters/1-page.html", values)
    assert line == (
        "chapters/1-page.html: sentences about the sources: 1, wanted 0\n"
        "    So far the notes are right."
    )


def test_first_hit_is_that_of_the_finished_list(browser, tmp_path):
    (tmp_path / "search.html").write_text(
        "<div id=search-results></div><script>setTimeout(() => {"
        "document.querySelector('#search-results').innerHTML ="
        "`<ul><li><a href='chapters/a.html?highlight=x#b'>B</a></li></ul>`"
        "}, 300)</script>"
    )
    with served(tmp_path) as site:
        assert reading.first_hit(browser, site, "two words") == "chapters/a.html#b"


def test_search_wants_a_section_of_a_chapter():
    measure = next(each for each in reading.OF_BOOK if each.key == "search heat")
    assert measure.met("chapters/3-sinkhorn-to-heat-flow.html#the-flow")
    for bad in ("chapters/3-a.html", "chapters/reference/api.html#lib.heat", ""):
        assert not measure.met(bad)


def test_table_has_targets_and_marks_what_misses_them():
    page = {
        "exhibit": 1.0, "exhibit_phone": 0.5, "code": 0.27, "sections": ["A"],
        "figures": 0.25, "way": 3.0, "words": 4500, "boxes": [], "refuted": [],
        "cut": [], "overflow": [], "label": None, "sentences": [], "live": 1,
    }  # fmt: skip
    head, *lines = reading.table(
        {"chapters/1-a.html": page, "chapters/reference/b.html": page}
    )
    assert head.split() == ["target", "chapter", "1", "b"]
    rows = {line[:36].strip(): line[36:].split() for line in lines}
    assert rows["open code, of the height"] == ["≤", "12", "%", "27", "%", "!"]
    assert rows["words"] == ["≤", "4500", "4500"]
    assert rows["smallest label on a phone, px"] == ["≥", "11", "—", "—"]


def test_unknown_page_is_one_sentence():
    names = ["chapters/index.html", "chapters/1-a.html"]
    assert reading.chosen("1", names) == reading.chosen("1-a", names) == names[1]
    with pytest.raises(PipelineError, match="'7' is no page; there are: index, 1-a"):
        reading.chosen("7", names)


def test_run_is_recorded_with_a_date(tmp_path, monkeypatch, capsys):
    values = {
        "exhibit": 1 / 3, "exhibit_phone": 0.5, "code": 0.2, "sections": ["A"],
        "figures": 0.2, "way": 4.0, "words": 5, "boxes": [], "refuted": [], "cut": [],
        "overflow": [], "label": 8.1, "smallest": "x", "sentences": ["s"], "live": 1,
    }  # fmt: skip
    (tmp_path / reading.RECORD).parent.mkdir(parents=True)
    (tmp_path / BIBLIOGRAPHY).write_text("@misc{one, title = {One}}")
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    monkeypatch.setattr(reading, "fresh_site", lambda: tmp_path)
    monkeypatch.setattr(reading, "required_browser", lambda purpose: "none")
    monkeypatch.setattr(reading, "launched", lambda path: served(tmp_path))
    monkeypatch.setattr(reading, "contents_file", dict)
    monkeypatch.setattr(reading, "addresses", lambda toc: [("", "chapters/1-a.html")])
    monkeypatch.setattr(reading, "reading", lambda *args: values)
    monkeypatch.setattr(reading, "first_hit", lambda *args: "chapters/1-a.html#b")
    monkeypatch.setattr("sys.argv", ["reading"])
    reading.main()
    record = json.loads((tmp_path / reading.RECORD).read_text("utf-8"))
    assert record["pages"]["chapters/1-a.html"]["exhibit"] == 0.333
    assert record["pages"]["chapters/1-a.html"]["sentences"] == 1
    assert record["book"]["uncited"] == 1
    assert record["book"]["search heat"] == "chapters/1-a.html#b"
    assert len(record["date"]) == 10 and "8.1 !" in capsys.readouterr().out


def test_pages_of_the_second_edition_are_pages():
    names = {name for _, name in reading.addresses(reading.contents_file())}
    assert set(reading.SECOND_EDITION) <= names


@pytest.mark.parametrize("address", reading.SECOND_EDITION)
def test_page_of_the_second_edition_meets_its_targets(site, browser, address):
    assert reading.missed(address, reading.reading(browser, site, address)) == []
