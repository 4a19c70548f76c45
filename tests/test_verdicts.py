"""Verdicts collected from notebooks: every one of them, and only those."""

import re

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from lib.claims import MIME_TYPE, ClaimFailed, verify
from tools.command import ROOT, PipelineError
from tools.site.scoreboard import ERRATA
from tools.texts import texts
from tools.verdicts import (
    Row,
    code_of,
    collect,
    names_of_lib,
    page_rows,
    statement_kinds,
    unmatched,
    used_in,
)


def test_a_verdict_is_stored_as_data(tmp_path):
    """What a kernel makes of it, as a page of a notebook has it."""
    verdict = verify(
        "a < b & “c”", measured=1.0, expected=1, tolerance=0.1, statement="thm-x"
    )
    bare = verify("c", measured=1, at_most=2)
    text = notebook_with(
        tmp_path, *(DisplayFormatter().format(v)[0] for v in (verdict, bare))
    )
    first, second = page_rows(text, tmp_path)
    assert first == Row(
        "page", "Section", verdict.anchor, "HOLDS", "a < b & “c”", "thm-x",
        verdict.numbers(), verdict._repr_html_(),
    )  # fmt: skip
    assert second.statement is None and second.claim == "c"


def notebook_with(folder, *data):
    """The text of a notebook whose one cell has these outputs."""
    cell = new_code_cell(
        "verify()", outputs=[new_output("display_data", d) for d in data]
    )
    notebook = new_notebook(cells=[new_markdown_cell("# Section"), cell])
    nbformat.write(notebook, folder / "page.ipynb")
    return folder / "page.md"


def test_a_verdict_without_data_is_one_sentence(tmp_path):
    verdict = verify("c", measured=1, at_most=2)
    text = notebook_with(tmp_path, {"text/html": verdict._repr_html_()})
    with pytest.raises(PipelineError, match="^page: .*without data; make notebooks"):
        list(page_rows(text, tmp_path))


def test_every_call_of_verify_shows_its_verdict():
    """A verdict in the middle of a cell would be checked but not shown."""
    for text in texts():
        for cell in nbformat.read(text.with_suffix(".ipynb"), 4).cells:
            if cell.cell_type == "code":
                shown = [o for o in cell.outputs if MIME_TYPE in o.get("data", {})]
                calls = len(re.findall(r"^ *verify\(", cell.source, re.M))
                assert len(shown) == calls, cell.source


def test_every_statement_is_checked_and_every_check_has_its_statement():
    kinds = statement_kinds()
    assert len(kinds) > 50 and unmatched(kinds, collect()) == []


def test_what_does_not_match_is_said():
    kinds = {"thm-a": "theorem", "def-b": "definition", "obs-c": "observation"}

    def row(statement, word="HOLDS"):
        return Row("page", "s", "id", word, "c", statement, "measured 1; at most 2", "")

    assert unmatched(kinds, [row("thm-a"), row("obs-c"), row(None)]) == []
    # That a false variant fails does not test the statement.
    first, second = unmatched(kinds, [row("thm-a"), row("obs-c", "REFUTED"), row("d")])
    assert first.startswith("the observation 'obs-c' has no check that holds")
    assert second == "page: the check 'c' names the statement 'd', which no page has"


def test_verdicts_of_a_page_have_names_of_their_own():
    places = [(row.page, row.id) for row in collect()]
    assert len(set(places)) == len(places)


def test_every_erratum_is_refuted_as_printed_and_holds_corrected():
    sections = {}
    for row in collect():
        if row.page == ERRATA:
            sections.setdefault(row.section, []).append(row)
    assert sections
    for rows in sections.values():
        assert [row.word for row in rows] == ["REFUTED", "HOLDS"]
        # What is not printed word for word is said to be a reading.
        assert rows[0].claim.startswith(("as printed: ", "read as: "))
        assert rows[1].claim.startswith("corrected")
    headings = re.findall(r"^## (.+)$", (ROOT / f"{ERRATA}.md").read_text(), re.M)
    assert headings == list(sections)


def test_names_taken_from_lib():
    source = "from lib import a\nfrom lib.b import c as d\nimport x\na.f(d)\nx.g"
    assert names_of_lib(source) == {"lib.a", "lib.a.f", "lib.b.c"}
    assert "chapters/1-softmax-expansion" in used_in()["lib.attention.softmax"]


def test_failed_claim_carries_its_verdict():
    try:
        verify("x", measured=2, at_most=1)
    except ClaimFailed as failure:
        assert not failure.verdict.passed and failure.verdict.measured == 2
    assert code_of(texts()[0])
