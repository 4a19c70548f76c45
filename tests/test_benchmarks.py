"""The benchmarks: counts, orders and agreement with references; never seconds."""

import gc
import json
import os
import sys
from dataclasses import replace
from importlib import import_module
from inspect import getmembers, isfunction
from itertools import count
from pkgutil import walk_packages

import numpy as np
import pytest
from docutils import nodes

import benchmarks
import lib
from benchmarks import __main__ as command
from benchmarks import harness, machine, timing
from benchmarks.harness import Growth, Row
from tools.command import ROOT
from tools.site.ratio_figure import ratio_figure
from tools.site.records import module_section

DECLARED = harness.collect()
COMPARED = [row for _, row in DECLARED if isinstance(row, Row)]
GROWTHS = [row for _, row in DECLARED if isinstance(row, Growth)]
UNITS = {"bytes": 1e-3, "exp": 1.0, "normals": 2.0, "flop": 1e-6}
ABSENT = "no-such-distribution"
RECORD = json.loads((ROOT / "benchmarks/results.json").read_text("utf-8"))

# Simulators whose cost is that of one function, and this one has a growth.
STEPS = {
    "lib.circle.field:simulate": "lib.circle.field:attention_field",
    "lib.circle.noise:langevin": "lib.circle.field:attention_field",
    "lib.sphere.field:simulate": "lib.sphere.field:attend",
    "lib.sphere.cosines:simulate": "lib.sphere.field:attend",
}
OTHERS = {
    "lib.sphere.coalescence:coalesce", "lib.netsor.program:limit",
    "lib.netsor.program:finite", "lib.hierarchical.finite:finite_width",
    "lib.heat.flows:bridge_flow", "lib.circle.noise:langevin",
}  # fmt: skip


class Recorder:
    """Calls that note their letter, and a clock that only they move on."""

    def __init__(self, slow_after=10**9):
        self.now, self.log, self.slow_after = 0.0, "", slow_after

    def clock(self):
        return self.now

    def call(self, letter, seconds, result=1.0):
        def called():
            self.now += seconds * (4 if len(self.log) >= self.slow_after else 1)
            self.log += letter
            return result

        return called


def toy(record, **changed):
    ours, peer = record.call("A", 1.0), record.call("B", 3.0)
    row = Row(name="a toy", ours=ours, peer=peer, peer_name="b", reference=1.0)
    return replace(row, **changed)


def test_rows_of_every_module_are_collected(tmp_path, monkeypatch):
    modules = {p.stem for p in (ROOT / "benchmarks").glob("[a-z]*.py")}
    modules -= harness.NO_ROWS
    assert {module for module, _ in DECLARED} == modules
    assert modules <= {p.stem for p in (ROOT / "lib").rglob("*")}
    monkeypatch.setattr(benchmarks, "__path__", [*benchmarks.__path__, str(tmp_path)])
    (tmp_path / "a_module.py").write_text("ROWS = ['a row']")
    assert harness.collect() == [("a_module", "a row"), *DECLARED]
    (tmp_path / "b_module.py").write_text("")
    with pytest.raises(harness.BenchmarkError, match="b_module.py has no list ROWS"):
        harness.collect()


def test_rows_are_told_apart():
    names = [(module, r.name, getattr(r, "peer_name", "")) for module, r in DECLARED]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("row", COMPARED, ids=lambda r: f"{r.name}, {r.peer_name}")
def test_both_sides_agree_with_the_reference(row):
    errors_of = harness.errors(row)
    assert "ours" in errors_of and ("peer" in errors_of or row.needs)
    # Samples miss by standard errors; a row with a measure of error of its own says
    # in it what it compares: a given error, or a density from draws.
    own = row.error is not harness.relative_error
    most = 5 if row.sampled else 0.05 if own else 1e-12
    assert max(errors_of.values()) <= row.accuracy <= most and row.pairs >= 5
    assert not row.limit or machine.least_time(row.limit, UNITS)["seconds"] > 0


@pytest.mark.parametrize("growth", GROWTHS, ids=lambda g: g.name)
def test_growths_run_and_can_be_fitted(growth):
    assert len(growth.sizes) >= 5 and max(growth.sizes) >= 10 * min(growth.sizes)
    assert np.isfinite(growth.run(min(growth.sizes))()).all()


def simulators():
    """Functions of lib that are called simulate, and others that simulate.

    Not those that draw all weights, which are peers.
    """
    names = (each.name for each in walk_packages(lib.__path__, "lib."))
    own = (
        f"{function.__module__}:{name}"
        for module in map(import_module, names)
        for name, function in getmembers(module, isfunction)
        if name.startswith("simulate")
    )
    return {*own, *OTHERS}


def called_by(growths):
    """Functions of lib that run at the smallest sizes."""
    seen = set()

    def note(frame, event, _):
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            seen.add(f"{name}:{frame.f_code.co_name}")

    for growth in growths:
        call, before = growth.run(min(growth.sizes)), sys.getprofile()
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(before)
    return seen


def test_every_simulator_has_a_growth():
    names, seen = simulators(), called_by(GROWTHS)
    assert names >= STEPS.keys() and len(names) > len(STEPS) + len(OTHERS)
    assert {each for each in names if STEPS.get(each, each) not in seen} == set()


def test_a_row_that_loses_says_why():
    """In the record, and there as the row is declared."""
    declared = {(m, r.name, r.peer_name): r for m, r in DECLARED if isinstance(r, Row)}
    losing = [
        row for row in RECORD["rows"] if row.get("ratio", {"median": 1})["median"] < 1
    ]
    assert [row["name"] for row in losing if not row.get("reason")] == []
    for row in RECORD["rows"]:
        key = row["module"], row["name"], row["peer_name"]
        if key in declared:
            assert row.get("reason", "") == declared[key].reason
            assert row.get("beyond", "") in ("", declared[key].beyond)
    sentences = [row.reason for row in COMPARED] + [row.beyond for row in COMPARED]
    assert all(each.endswith(".") for each in sentences if each)


def test_a_row_far_from_the_limit_says_what_takes_the_time():
    far = [
        row
        for row in RECORD["rows"]
        if row.get("limit", {"ours_over_limit": 1})["ours_over_limit"] > harness.FAR
    ]
    assert [row["name"] for row in far if not row.get("beyond")] == []
    assert [row for row in RECORD["rows"] if "beyond" in row] == far
    with_limit = sum("limit" in row for row in RECORD["rows"])
    assert len(far) < with_limit / 2


def test_a_reason_is_recorded_and_printed_where_the_peer_is_faster():
    record, reason = Recorder(), "The peer does less."
    lost = toy(record, peer=record.call("B", 0.5), reason=reason)
    won = toy(record, reason=reason)
    results = [harness.measure(row, UNITS, record.clock) for row in (lost, won)]
    assert [each["reason"] for each in results] == [reason] * 2
    assert "reason" not in harness.measure(toy(record), UNITS, record.clock)
    lines = [*command.table({"unit_seconds": UNITS, "rows": results, "growths": []})]
    assert [line.strip() for line in lines].count(reason) == 1
    del results[0]["reason"]
    lines = [*command.table({"unit_seconds": UNITS, "rows": results, "growths": []})]
    assert lines[5].strip() == "and nobody has said why we lose"


def test_what_takes_the_time_is_printed_beyond_three_times_the_limit():
    record, beyond = Recorder(), "Calls of numpy."
    for times, said in ((2.9, False), (3.1, True)):
        row = toy(record, limit={"exp": 1 / times}, beyond=beyond)
        result = harness.measure(row, UNITS, record.clock)
        results = {"unit_seconds": UNITS, "rows": [result], "growths": []}
        assert result.get("beyond") == (beyond if said else None)
        lines = [line.strip() for line in command.table(results)]
        assert (beyond in lines) == said
        result.pop("beyond", None)
        last = [*command.table(results)][-1].strip()
        assert (last == "and nobody has said what takes the time") == said


def test_the_sides_take_turns():
    record = Recorder()
    result = harness.measure(toy(record), UNITS, record.clock)
    # One call each for the error, one for the calibration, then the pairs.
    assert record.log == "AB" * (2 + harness.PAIRS) and harness.PAIRS >= 9
    words = {"seconds": "1 s", "error": "0e+00"}
    assert result["ours"] == {"seconds": 1, "error": 0, "words": words}
    assert result["peer"]["seconds"] == 3 and result["peer"]["error"] == 0
    assert result["ratio"] == {"median": 3, "low": 3, "high": 3, "pairs": harness.PAIRS}


def test_times_are_per_result():
    record = Recorder()
    result = harness.measure(toy(record, pieces=(4, 2)), UNITS, record.clock)
    assert result["ours"]["seconds"] == 0.25 and result["peer"]["seconds"] == 1.5
    assert result["ratio"]["median"] == 6


def test_a_machine_that_slows_down_does_not_move_the_ratio():
    """One pair is torn; the others keep their ratio at either pace."""
    record = Recorder(slow_after=4 + harness.PAIRS)
    ratio = harness.measure(toy(record), UNITS, record.clock)["ratio"]
    assert ratio["low"] == ratio["median"] == ratio["high"] == 3


def test_blocks_repeat_until_they_are_long_enough(monkeypatch):
    monkeypatch.setattr(timing, "BLOCK", 1.0)
    record = Recorder()
    calls = [record.call("A", 0.375), record.call("B", 1.0)]
    times = timing.interleaved(calls, 2, record.clock)
    assert record.log == "A" + "AA" + "AAAA" + "B" + "AAAAB" * 2
    assert times == [[0.375, 0.375], [1.0, 1.0]]


def test_nothing_is_collected_while_timing():
    seen = []
    timing.interleaved([lambda: seen.append(gc.isenabled())], 3, count().__next__)
    assert seen and not any(seen) and gc.isenabled()


def test_a_wrong_side_is_no_row():
    record = Recorder()
    for side in ("ours", "peer"):
        for wrong in (1 + 1e-9, np.nan):
            row = toy(record, **{side: record.call("C", 1.0, wrong)})
            with pytest.raises(harness.BenchmarkError, match="a toy: the error of"):
                harness.measure(row, UNITS, record.clock)


def test_a_peer_that_does_a_share_is_charged_for_all():
    record = Recorder()
    result = harness.measure(toy(record, pieces=(1, 0.125)), UNITS, record.clock)
    assert result["peer"]["seconds"] == 24 and result["ratio"]["median"] == 24


def test_an_absent_peer_is_said_and_ours_is_still_measured():
    record = Recorder()
    row = toy(record, needs=ABSENT, limit={"exp": 2})
    result = harness.measure(row, UNITS, record.clock)
    assert result["note"] == f"peer {ABSENT} not installed"
    assert not {"peer", "ratio"} & result.keys() and set(record.log) == {"A"}
    assert result["limit"]["ours_over_limit"] == 0.5
    lines = list(
        command.table({"unit_seconds": UNITS, "rows": [result], "growths": []})
    )
    assert lines[-1].endswith(f"b: peer {ABSENT} not installed")
    assert ABSENT not in machine.versions([ABSENT])


def test_arithmetic_adds_up_and_memory_overlaps_with_it():
    work = {"exp": 3, "normals": 2, "bytes": 6000}
    assert machine.least_time(work, UNITS)["seconds"] == 7
    assert machine.least_time(work, UNITS)["by"] == "arithmetic"
    least = machine.least_time(work | {"bytes": 8000}, UNITS)
    assert least == {"seconds": 8, "by": "memory", "work": work | {"bytes": 8000}}
    with pytest.raises(harness.BenchmarkError, match="counts logs, which is none of"):
        machine.least_time({"logs": 1}, UNITS)


def test_growth_finds_the_exponent():
    record, sizes = Recorder(), (1, 2, 4, 8, 16)
    growth = Growth("cubes", sizes, lambda n: record.call(f"{n},", 0.01 * n**3), 3)
    result = harness.measure_growth(growth, record.clock)
    assert result["exponent"] == pytest.approx(3) and result["expected"] == 3
    assert result["seconds"] == pytest.approx([0.01 * n**3 for n in sizes])
    assert record.log == "1,2,4,8,16," * (1 + harness.GROWTH_ROUNDS)  # in turns


def test_results_survive_json(tmp_path, monkeypatch, capsys):
    """The command from start to end, on toys: what it writes is what it measured."""
    record = Recorder()
    growth = Growth("squares", (1, 2, 4, 8, 16), lambda n: lambda: None, 2)
    rows = [("attention", toy(record)), ("attention", toy(record, needs=ABSENT))]
    monkeypatch.setattr(command, "collect", lambda: [*rows, ("attention", growth)])
    monkeypatch.setattr(command.machine, "machine_limits", lambda: UNITS)
    monkeypatch.setattr(command.machine, "stay_on_one_core", lambda: None)
    monkeypatch.setattr(
        command, "measure", lambda row, u: harness.measure(row, u, record.clock)
    )
    fit = {"name": "squares", "exponent": 2.0, "stderr": 0.1, "expected": 2}
    monkeypatch.setattr(command, "measure_growth", lambda growth: fit)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    for name in machine.THREADS:
        monkeypatch.setenv(name, "1")
    command.main()
    stored = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert [row.get("note") for row in stored["rows"]] == [
        None, f"peer {ABSENT} not installed",
    ]  # fmt: skip
    assert stored["rows"][0]["ratio"]["median"] == 3
    assert stored["growths"] == [{"module": "attention", **fit}]
    assert stored["unit_seconds"] == UNITS
    assert stored["machine"].keys() == {"processor", "cores", "system"}
    assert {"python", "numpy", "scipy"} == stored["versions"].keys()
    printed = capsys.readouterr().out
    assert "squares: exponent 2.00 ± 0.10 (s.e.), expected 2" in printed
    assert list(tmp_path.iterdir()) == [tmp_path / "results.json"]
    assert "\n".join(command.table(stored)) in printed


def test_machine_limits_are_positive():
    """On a clock that ticks once a reading, so that every block is one call."""
    limits = machine.machine_limits(count().__next__, rounds=1)
    assert limits.keys() == UNITS.keys() and min(limits.values()) > 0


def test_more_than_one_thread_is_refused_in_one_sentence(monkeypatch):
    for name in machine.THREADS:
        monkeypatch.setenv(name, "1")
    machine.require_one_thread(os.environ)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("MKL_NUM_THREADS")
    sentence = "so OPENBLAS_NUM_THREADS, MKL_NUM_THREADS must be 1 when Python starts"
    with pytest.raises(harness.BenchmarkError, match=sentence):
        command.main()


def test_sides_are_told_in_words():
    assert harness.side_of(3e-4, 8.0e-17, False)["words"] == {
        "seconds": "300 µs", "error": "8e-17",
    }  # fmt: skip
    assert harness.side_of(0.0421, 0.55, True)["words"] == {
        "seconds": "42.1 ms", "error": "0.6 s.e.",
    }  # fmt: skip


def test_an_interrupted_run_keeps_the_results_of_the_last(tmp_path, monkeypatch):
    kept = tmp_path / "results.json"
    kept.write_text("{}")
    monkeypatch.setattr(command, "RESULTS", kept)
    monkeypatch.setattr(command, "collect", list)
    monkeypatch.setattr(command.machine, "stay_on_one_core", lambda: None)
    for name in machine.THREADS:
        monkeypatch.setenv(name, "1")

    def interrupted(rows):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command.main()
    assert kept.read_text() == "{}" and list(tmp_path.iterdir()) == [kept]


# -- The page ----------------------------------------------------------------------


def measured(name, ratio=None, over=None, **more):
    """A row of the record; without a ratio its peer was absent."""
    side = {"seconds": 1.0, "words": {"seconds": "1 s", "error": "1e-16"}}
    row = {"module": "cosines", "name": name, "peer_name": "b", "ours": side, **more}
    if ratio:
        spread = {"low": 0.9 * ratio, "high": 1.2 * ratio}
        row |= {"peer": side, "ratio": {"median": ratio, **spread}}
    if over:
        row["limit"] = {"ours_over_limit": over, "by": "memory"}
    return row


ROWS = [
    measured("won", 250.0, 4.0, reason="Not told.", beyond="Calls."),
    measured("lost", 0.25, 8.0, reason="The peer does less.", beyond="Calls."),
    measured("alone", over=2.0, note="peer b not installed"),
    measured("without a limit", 3.0),
]


def marks(fig, marker):
    """Places of one kind of mark: height and ratio."""
    lines = [line for line in fig.axes[0].lines if line.get_marker() == marker]
    points = (point for line in lines for point in line.get_xydata().tolist())
    return {row: ratio for ratio, row in points}


def test_the_figure_of_a_module_has_peers_and_limits_beside_ours():
    drawn = ratio_figure("lib.sphere.cosines", ROWS)
    assert marks(drawn.source, "s") == {1: 250.0, 2: 0.25, 4: 3.0}
    assert marks(drawn.source, "^") == {1: 0.25, 2: 0.125, 3: 0.5}
    assert drawn.caption == "Left of the line the peer is faster: in 1 of 4 rows."
    assert drawn.alt == (
        "4 rows of the benchmarks of lib.sphere.cosines on a logarithmic scale: the"
        " peers take 0.25 to 250 times our time, and the limit of the machine is 0.12"
        " to 0.5 of it."
    )
    top, bottom = drawn.source.axes[0].get_ylim()[::-1]
    assert top < 1 and bottom > 4  # the first row above
    assert ratio_figure("lib.x", ROWS[:1]).caption == "No peer is faster."
    assert "no peer was present" in ratio_figure("lib.x", [measured("x", note="")]).alt


def test_figures_of_the_record_can_be_read_on_a_phone():
    """Inside the axes, in letters of 11 pixels or more where 4.8 inches are 358."""
    for module in {row["module"] for row in RECORD["rows"]}:
        rows = [row for row in RECORD["rows"] if row["module"] == module]
        drawn = ratio_figure(module, rows)
        fig, (ax,) = drawn.source, drawn.source.axes
        sizes = [
            text.get_fontsize()
            for text in fig.findobj(lambda o: hasattr(o, "get_fontsize"))
        ]
        assert min(sizes) * 358 / (72 * fig.get_figwidth()) >= 11
        low, high = ax.get_xlim()
        places = [*marks(fig, "s").values(), *marks(fig, "^").values()]
        assert low < min(places) and max(places) < high
        assert len(marks(fig, "s")) == sum("ratio" in row for row in rows)
        assert "#010203" not in drawn.svg and "currentColor" in drawn.svg


def test_a_module_of_the_page_is_figure_table_and_reasons():
    part = module_section("cosines", ROWS)
    title, drawn, board, said, reasons, far, beyond = part.children
    assert title.astext() == "lib.sphere.cosines"
    assert 'role="img"' in drawn.astext() and drawn["format"] == "html"
    body = next(board.findall(nodes.tbody))
    cells = [[cell.astext() for cell in row] for row in body]
    assert cells[1] == [
        "2. lost", "b", "1 s", "0.25 (0.23–0.3)", "1e-16, 1e-16", "8.0 × memory",
    ]  # fmt: skip
    assert cells[2][3] == "peer b not installed" and cells[3][5] == "—"
    assert said.astext() == "Why peers are faster:"
    assert [each.astext() for each in reasons] == ["2: The peer does less."]
    assert far.astext() == "What takes more than three times the limit:"
    assert [each.astext() for each in beyond] == ["1, 2: Calls."]
    assert len(module_section("sde", ROWS[2:]).children) == 3
