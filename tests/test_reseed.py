"""Claims under fresh seeds: only what they need is run, failures are counted."""

import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from docutils import nodes
from nbformat.v4 import new_output
from pairs import write_pair
from scipy.stats import binom

from lib.claims import MIME_TYPE, verify
from tools import reseed
from tools.command import ROOT, PipelineError
from tools.site.records import fresh_seeds, rate_table
from tools.verdicts import collect

AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"  # as numpy 2.4 names them

CELLS = [
    "import numpy as np\nfrom lib.claims import generator, verify",
    "data = {}",
    "data['x'] = generator(7).normal()",
    "picture = expensive_figure(data)",
    "y = 1",
    "z = y + 1\nprint('noise')",
    "verify('x is positive', measured=data['x'], at_least=0.0)",
    "verify('z is 2', measured=z, expected=2, tolerance=0.1)",
]


def book(folder, cells):
    return write_pair(folder / "chapters" / "1-test.md", cells)


def test_claims_bring_what_they_need_and_leave_the_figures():
    kept = reseed.claim_cells(CELLS)
    assert kept == [cell for cell in CELLS if "picture" not in cell]


def test_cells_that_change_what_a_claim_reads_are_kept():
    cells = [
        "x, y = [], {}",
        "x.append(1)",
        "y['a'] = 2",
        "print('noise')",
        "z.append(3)",
        "verify('two', measured=len(x) + len(y), at_least=2.0)",
    ]
    assert reseed.claim_cells(cells) == [cells[k] for k in (0, 1, 2, 5)]
    assert reseed.claim_cells(cells, {4}) == []


def test_a_check_is_what_its_cells_do():
    """Neither comments, imports and names of claims are part of it, nor the rest."""
    same = [cell.replace(" = ", "=") + "  # so" for cell in CELLS]
    same[0] = f"import math\n{same[0]}"
    same[3] = "picture = another(data)"
    same[6] = same[6].replace("x is positive", "x is above 0")
    drawn, again = (
        [
            *CELLS[:2],
            f'{CELLS[2]}\nf(x, alt="{said}", caption="{said}", n={n})',
            *CELLS[3:],
        ]
        for said, n in (("One.", 1), ("Two.", 1))
    )
    assert reseed.check_of(drawn, 6) == reseed.check_of(again, 6)
    again[2] = again[2].replace("n=1", "n=2")
    assert reseed.check_of(drawn, 6) != reseed.check_of(again, 6)
    other = [*CELLS]
    other[2] = other[2].replace("7", "8")
    assert reseed.check_of(same, 6) == reseed.check_of(CELLS, 6)
    assert reseed.check_of(other, 6) != reseed.check_of(CELLS, 6)
    assert reseed.check_of(other, 7) == reseed.check_of(CELLS, 7)
    other[6] = other[6].replace("at_least=0.0", "at_least=0.1")
    assert reseed.check_of([*CELLS[:6], other[6]], 6) != reseed.check_of(CELLS, 6)


def test_each_offset_draws_anew_and_failures_are_recorded(
    tmp_path, monkeypatch, capsys
):
    path = book(tmp_path, CELLS)
    monkeypatch.setattr(reseed, "page_name", lambda path: "chapters/1-test")
    runs = [run for k in range(1, 13) for run in reseed.outcomes(path, k)]
    rows = reseed.summary(runs)
    assert [row["claim"] for row in rows] == ["x is positive", "z is 2"]
    assert 0 < rows[0]["passed"] < rows[0]["runs"] == 12
    assert rows[0]["words"]["FAILS"] + rows[0]["words"]["HOLDS"] == 12
    assert rows[0]["least"] < 0 < rows[0]["largest"]
    assert rows[1]["passed"] == 12
    assert capsys.readouterr().out == ""


def test_broken_cell_names_page_and_offset(tmp_path, monkeypatch):
    path = book(tmp_path, ["from lib.claims import verify", "verify(1 / 0)"])
    monkeypatch.setattr(reseed, "page_name", lambda path: "chapters/1-test")
    with pytest.raises(PipelineError, match="1-test, offset 3: ZeroDivisionError"):
        reseed.outcomes(path, 3)


def test_one_page_is_run_and_the_others_keep_their_record(tmp_path, monkeypatch):
    path = book(tmp_path, CELLS)
    other = {"page": "chapters/0-other", "claim": "c", "passed": 2, "runs": 2}
    stale = {"page": "chapters/1-test", "claim": "gone", "passed": 0, "runs": 2}
    record = tmp_path / reseed.RESULTS
    record.parent.mkdir()
    record.write_text(json.dumps({"claims": [stale, other]}))
    monkeypatch.setattr(reseed, "texts", lambda root: [path])
    chosen, kept = reseed._chosen("1-test", tmp_path)
    assert chosen == [path] and kept == [other]
    assert reseed._chosen(None, tmp_path) == ([path], [])
    with pytest.raises(PipelineError, match="--page must be one of 1-test, got x"):
        reseed._chosen("x", tmp_path)


def test_runs_that_claims_lack_are_added_to_those_they_had(tmp_path, monkeypatch):
    """Of four claims one lacks none, one a run, two both, as the check of one of them
    has changed; what they need is run."""
    cells = [
        "import os\nfrom lib.claims import verify\n"
        "offset = float(os.environ['ATTENTION_LIMIT_SEED_OFFSET'])",
        "x = 1\nverify('known', measured=x, at_least=0.0)",
        "y = 2",
        "verify('new', measured=y, at_least=0.0)\n"
        "verify('also known', measured=offset, at_least=-1.0)",
        "verify('another check', measured=3, at_least=0.0)",
    ]
    path = book(tmp_path, cells)
    notebook = nbformat.read(path.with_suffix(".ipynb"), 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    of_cells = {1: ["known"], 3: ["new", "also known"], 4: ["another check"]}
    for number, claims in of_cells.items():
        for claim in claims:
            verdict = {
                "id": anchor(claim), "claim": claim,
                "word": "HOLDS", "statement": None, "numbers": "",
            }  # fmt: skip
            data = {MIME_TYPE: verdict, "text/html": ""}
            code[number].outputs.append(new_output("display_data", data))
    nbformat.write(notebook, path.with_suffix(".ipynb"))
    row = {"page": "chapters/1-test", "passed": 2, "runs": 2}
    row |= {"words": {"HOLDS": 2}, "least": 1.0, "largest": 1.0}
    known, gone, few, other = (
        {**row, "id": anchor(claim), "claim": claim, "check": check}
        for claim, check in (
            ("known", reseed.check_of(cells, 1)), ("gone", ""),
            ("also known", reseed.check_of(cells, 3)), ("another check", "of before"),
        )
    )  # fmt: skip
    few |= {"runs": 1, "passed": 0, "words": {"FAILS": 1}, "least": -3.0}
    record = tmp_path / reseed.RESULTS
    record.parent.mkdir()
    record.write_text(json.dumps({"claims": [known, gone, few, other]}))
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTION_LIMIT_SEED_OFFSET", "0")
    monkeypatch.setattr(reseed, "texts", lambda root: [path])
    monkeypatch.setattr(reseed, "page_name", lambda path: "chapters/1-test")
    monkeypatch.setattr(reseed, "ProcessPoolExecutor", OneByOne)
    asked, outcomes = [], reseed.outcomes

    def noted(path, offset, ids):
        asked.append((offset, sorted(ids.values())))
        return outcomes(path, offset, ids)

    monkeypatch.setattr(reseed, "outcomes", noted)
    assert reseed.main(["2", "--new"], tmp_path) == 1  # as one had failed before
    assert asked == [(1, [3, 3, 4]), (2, [3, 3, 4])]
    assert reseed.claim_cells(cells, {3, 4}) == [cells[0], *cells[2:]]
    rows = json.loads(record.read_text())["claims"]
    assert [(each["claim"], each["runs"]) for each in rows] == [
        ("known", 2), ("new", 2), ("also known", 2), ("another check", 2),
    ]  # fmt: skip
    assert rows[0] == known and rows[3]["least"] == 3
    # The first of its runs is the one of the record, which failed: it is not repeated.
    assert rows[2]["words"] == {"FAILS": 1, "HOLDS": 1} and rows[2]["passed"] == 1
    assert (rows[2]["least"], rows[2]["largest"]) == (-3.0, 2.0)
    monkeypatch.setattr(reseed, "outcomes", None)  # nothing is run any more
    for fewer in ("2", "1"):
        assert reseed.main([fewer, "--new"], tmp_path) == 1
    assert json.loads(record.read_text())["claims"] == rows


def anchor(claim):
    return verify(claim, measured=1.0, at_least=0.0).anchor


def test_what_was_run_is_kept_when_a_later_run_stops(tmp_path, monkeypatch, capfd):
    """The second of three offsets fails at first; it alone and the third are run."""
    ran = tmp_path / "ran"
    cells = [
        "import os, pathlib",
        f"ran = pathlib.Path({str(ran)!r})",
        "offset = os.environ['ATTENTION_LIMIT_SEED_OFFSET']",
        f"go = pathlib.Path({str(tmp_path / 'go')!r})",
        "with ran.open('a') as file: file.write(offset)\n"
        "from lib.claims import verify\nassert offset != '2' or go.exists(), 'not yet'",
        "verify('one is one', measured=1, expected=1, tolerance=0.1)",
    ]
    path = book(tmp_path, cells)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTION_LIMIT_SEED_OFFSET", "0")  # as it was, afterwards
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / reseed.RESULTS).parent.mkdir()
    monkeypatch.setattr(reseed, "page_name", lambda path: "chapters/1-test")
    monkeypatch.setattr(reseed, "texts", lambda root: [path])
    monkeypatch.setattr(reseed, "ProcessPoolExecutor", OneByOne)
    with pytest.raises(PipelineError, match="offset 2: AssertionError: not yet"):
        reseed.main(["3"], tmp_path)
    first = ran.read_text()
    assert not (tmp_path / reseed.RESULTS).exists() and first in ("12", "123")
    (tmp_path / "go").touch()
    # As a machine that was switched off leaves it: a last line without its end.
    journal = tmp_path / reseed.JOURNAL
    journal.write_text(journal.read_text() + '["1-test", 3, "')
    assert reseed.main(["3"], tmp_path) == 0
    assert ran.read_text()[len(first) :] == ("23" if first == "12" else "2")
    assert f"{len(first) - 1} of 3 runs were kept" in capfd.readouterr()[0]
    record = json.loads((tmp_path / reseed.RESULTS).read_text())
    assert [row["runs"] for row in record["claims"]] == [3] and not journal.exists()


def test_runs_of_another_text_are_not_kept(tmp_path):
    journal = tmp_path / "journal"
    rows = [["one", 1, "old", []], ["one", 2, "new", [1]], ["gone", 1, "x", []]]
    journal.write_text("\n".join(json.dumps(row) for row in rows))
    assert reseed.finished(journal, {"one": "new"}) == {("one", 2): [1]}


def recorded_runs(name, least=0.0, largest=1.0, **words):
    """A claim of the record with so many verdicts of each word."""
    runs, kept = sum(words.values()), ("HOLDS", "REFUTED")
    return {
        "page": "p", "id": name, "claim": name, "runs": runs, "words": words,
        "passed": sum(words.get(word, 0) for word in kept),
        "least": least, "largest": largest,
    }  # fmt: skip


def test_false_alarms_and_misses_are_counted():
    """What never varies does not count; an inconclusive false variant is no miss."""
    claims = [
        recorded_runs("true", HOLDS=20),
        recorded_runs("unlucky", HOLDS=17, FAILS=2, INCONCLUSIVE=1),
        recorded_runs("exact", least=1.0, HOLDS=20),
        recorded_runs("false", REFUTED=3, INCONCLUSIVE=1),
        recorded_runs("passes as true", FAILS=4),
        recorded_runs("false and exact", least=1.0, FAILS=4),
    ]
    names = ("false", "passes as true", "false and exact")
    alarms, misses = reseed.rates(claims, {("p", name) for name in names})
    assert alarms == (2, 40, 3) and misses == (2, 8, 4)
    cells = [cell.astext() for cell in rate_table(alarms, misses).findall(nodes.entry)]
    assert cells[5:10] == ["true claims that did not hold", "2", "40", "3", "0.18"]
    assert cells[10:] == ["false variants that passed as true", "2", "8", "4", "0.81"]


@pytest.mark.parametrize(("runs", "wrong"), [(3000, 0), (1000, 3), (40, 39), (5, 5)])
def test_at_the_bound_so_few_wrong_verdicts_have_a_chance_of_a_twentieth(runs, wrong):
    bound = reseed.Rate(1, runs, wrong).bound
    chance = binom.cdf(wrong, runs, bound)
    assert chance == pytest.approx(0.05) if wrong < runs else bound == 1


def test_it_is_said_how_many_claims_had_how_many_fresh_seeds():
    claims = [recorded_runs("a", HOLDS=20), recorded_runs("b", HOLDS=4)]
    claims += [recorded_runs("c", HOLDS=20), recorded_runs("d", HOLDS=2)]
    assert fresh_seeds({"date": "today", "claims": claims}) == (
        "By today, 2 of the 4 claims had been run under 20 fresh seeds, 1 under 4 and 1"
        " under 2; none of them failed."
    )
    claims[0] = recorded_runs("a", HOLDS=19, FAILS=1)
    said = fresh_seeds({"date": "today", "claims": claims[:1]})
    assert said.endswith("claims had been run under 20 fresh seeds; 1 of them failed.")
    assert reseed.counts_of_runs(claims) == {20: 2, 4: 1, 2: 1}


class OneByOne(ThreadPoolExecutor):
    """Tasks one after the other, in this process."""

    def __init__(self, **options):
        super().__init__(max_workers=1)


def test_count_must_be_positive():
    with pytest.raises(PipelineError, match="offsets must be at least 1, got 0"):
        reseed.main(["0"])


@pytest.mark.slow
@pytest.mark.skipif(
    f"{platform.system()} {platform.machine()}" != "Linux x86_64",
    reason="numbers are compared where they were stored",
)
def test_numbers_do_not_depend_on_the_kernels_of_the_processor():
    """Each claim prints what is stored, with other kernels of OpenBLAS and numpy."""
    code = (
        "import json; from tools import reseed, texts; print(json.dumps("
        "[run for path in texts.texts() for run in reseed.outcomes(path, 0)]))"
    )
    # Not Haswell: forced where it is not found, it crashes in the wheel of numpy 2.5.
    kernels = {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": AVX512}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **kernels},
        capture_output=True, text=True,
    )  # fmt: skip
    if "DataUnavailable" in answer.stderr and not os.environ.get("CI"):
        pytest.skip("the images are missing")
    assert answer.returncode == 0, answer.stderr
    fresh = {
        (run["page"], run["id"]): run["numbers"] for run in json.loads(answer.stdout)
    }
    assert fresh == {(row.page, row.id): row.numbers for row in collect()}


def test_stored_result_covers_every_claim():
    stored = json.loads((ROOT / reseed.RESULTS).read_text("utf-8"))
    known = {(row["page"], row["id"]) for row in stored["claims"]}
    assert known == {(row.page, row.id) for row in collect()}
    assert [row for row in stored["claims"] if row["passed"] < row["runs"]] == []
