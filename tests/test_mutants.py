"""Mutants: where they are, which tests are asked, and a campaign that goes on."""

import ast
import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from tools.command import ROOT, PipelineError, exclusive
from tools.mutants import __main__ as command
from tools.mutants import campaign, record
from tools.mutants.campaign import COPIED, FOLDER
from tools.mutants.sites import files, mutants, sample
from tools.mutants.tests import Candidate, Traced

# -- Where they are ----------------------------------------------------------------


def made(tmp_path, source):
    """The mutants of a module with this source, as (was, to), in order."""
    path = tmp_path / "lib" / "module.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source, "utf-8")
    return mutants(path, tmp_path)


def changes(tmp_path, source):
    return [(each.was, each.to) for each in made(tmp_path, source)]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x = a + b", [("+", "-")]),
        ("x = a ** b", [("**", "*")]),
        ("x += a", [("+=", "-=")]),
        ("x = a / b", [("a / b", "(a)"), ("/", "*")]),
        ("x = (a + 1) * b", [
            ("(a + 1) * b", "(a + 1)"), ("(a + 1) * b", "(b)"), ("+", "-"), ("1", "2"),
            ("*", "/"),
        ]),
        ("x = a @ b", [("a @ b", "((b) @ (a))"), ("a @ b", "(a)"), ("a @ b", "(b)")]),
        ("x = a.T", [("a.T", "(a)")]),
        ("x = a < b", [("<", "<="), ("<", ">=")]),
        ("x = a == b", [("==", "!=")]),
        ("x = -a", [("-a", "(a)")]),
        ("x = not a or b", [("not a", "(a)"), ("or", "and")]),
        ("x = [0, 2.5, True, 1j]", [
            ("0", "1"), ("2.5", "5.0"), ("True", "False"), ("1j", "2j"),
        ]),
        ("f(a, axis=-1)", [("-1", "-2")]),
        ("f(a, axis=0)", [("0", "1")]),
        ("f(a, b)", [("a, b", "b, a")]),
        ("np.sin(a)", [("sin", "cos")]),
        # What the order of arguments does not change, and what is no number.
        ("max(a, b)", [("max", "min")]),
        ("f('a', b)", []),
        ("x = 'a' + b", []),
        ("x = f'{a + 1}'", []),
        # An operator in a comment is none, and letters may take several bytes.
        ("x = (a  # a + b\n    - b)", [("-", "+")]),
        ("ξ, x = 'é', (α  # + β\n  - β)", [("-", "+")]),
        # What says and does not compute.
        ('def f():\n    """1 + 1"""\n', []),
        ("def f(x: g[1]) -> g[2]:\n    raise ValueError(x + 1)\n", []),
        ("@f(1)\ndef g():\n    warnings.warn(a + b)\n", []),
        ("def __repr__(self):\n    return 1\n", []),
        ("with np.errstate(a=1):\n    pass\n", []),
        ("zip(a, b, strict=True)", []),
    ],
)  # fmt: skip
def test_each_change_of_a_statement_and_no_other(tmp_path, source, wanted):
    assert sorted(changes(tmp_path, source)) == sorted(wanted)


def test_mutants_of_lib_are_one_change_each_and_have_names():
    """Those drawn are programs that differ, in the statement that they name."""
    every = [each for path in files(ROOT) for each in mutants(path, ROOT)]
    assert len({each.key for each in every}) == len(every) > 5000
    for each in sample(every, 300, 5, ROOT):
        source = (ROOT / each.file).read_bytes()
        changed = each.applied(source)
        assert source[each.start : each.end].decode() == each.was
        before, after = (ast.dump(ast.parse(text)) for text in (source, changed))
        assert before != after
        first, last = each.unit.lines
        assert first <= each.line <= last
        lines, others = source.splitlines(), changed.splitlines()
        assert lines[: first - 1] == others[: first - 1]
        assert lines[last:] == others[len(others) - len(lines) + last :]


def test_tests_of_the_numerics_read_only_what_a_copy_has():
    texts = [path.read_text("utf-8") for path in (ROOT / "tests/lib").glob("*.py")]
    assert {*re.findall(r'ROOT / "([^"/]*)', "".join(texts))} <= {*COPIED}


def test_a_larger_sample_begins_with_a_smaller_one():
    every = [each for path in files(ROOT)[:4] for each in mutants(path, ROOT)]
    large = sample(every, 40, 3, ROOT)
    assert sample(every, 15, 3, ROOT) == large[:15]
    assert sample(every, 40, 4, ROOT) != large
    # Where statements come or go, the others keep their order.
    fewer = sample(every[::2], 15, 3, ROOT)
    assert [each for each in large if each in every[::2]][:10] == fewer[:10]
    with pytest.raises(PipelineError, match="are asked for"):
        sample(every, len(every) + 1, 3, ROOT)


def test_a_name_stays_with_its_statement(tmp_path):
    """Whatever is added elsewhere; of equal statements each has its own."""
    source = "def f(a, b):\n    a = a + b\n    a = a + b\n    return a\n"
    keys = [each.key for each in made(tmp_path, source)]
    moved = '"""More."""\n\nC = 3\n\n\n' + source
    assert [each.key for each in made(tmp_path, moved)][1:] == keys
    assert len({*keys}) == len(keys) == 2
    for other in ("def g(a, b):\n    a = a + b\n", "def f(a, b):\n    a = a + c\n"):
        assert not {each.key for each in made(tmp_path, other)} & {*keys}


# -- Which tests are asked ---------------------------------------------------------


def test_tests_of_its_line_are_asked_own_and_fastest_first(tmp_path):
    source = "C = 2\n\ndef f(a, b=1):\n    a = a + C\n    return a * b\n"
    own = "tests/lib/test_module.py"
    seen = {
        f"{own}::slow": (3.0, [4, 5]),
        f"{own}::fast": (1.0, [4, 5]),
        f"{own}::early": (0.5, [4]),
        "tests/lib/test_module_more.py::more": (0.1, [5]),
        "tests/lib/test_other.py::other": (0.2, [5]),
        "tests/lib/test_other.py::none": (0.1, []),
    }
    tests = {
        name: {"seconds": s, "lines": {"lib/module.py": lines} if lines else {}}
        for name, (s, lines) in seen.items()
    }
    (tmp_path / "lines.json").write_text(json.dumps({"import": {}, "tests": tests}))
    all_mutants = made(tmp_path, source)
    traced = Traced([tmp_path / "lines.json"], tmp_path)

    def asked(code, was):
        mutant = next(m for m in all_mutants if m.line == code and m.was == was)
        return [test.name.partition("::")[2] for test in traced.noticing(mutant)]

    assert asked(5, "*") == ["fast", "slow", "more", "other"]
    assert asked(4, "+") == ["early", "fast", "slow"]
    # A constant of the module, and a default: all that use the module, the function.
    assert asked(1, "2") == asked(3, "1") == ["early", "fast", "slow", "more", "other"]


def test_only_so_many_seconds_of_tests_are_run():
    tests = [Candidate(str(s), s, {}) for s in (5.0, 1.0, 9.0, 2.0)]
    assert [t.seconds for t in campaign.within(tests, 8)] == [5, 1, 2]
    assert [t.seconds for t in campaign.within(tests, 1)] == [5]
    assert campaign.within([], 1) == []


# -- A campaign --------------------------------------------------------------------

SHAPES = '''
"""Areas."""

import os

SIDES = (3, 4)[1]


def rectangle(a, b):
    return a * b


def size(a):
    return a if a >= 0 else -a


def down(n):
    while n > 0:
        n -= 1
    return n


def alive(n):
    os.kill(os.getpid(), 0)
    return n


def unused(a, b):
    return a % b
'''
TESTS = """
import pytest

from lib import shapes


@pytest.fixture(scope="module")
def area():
    return shapes.rectangle(2, 3)


def test_first(area):
    assert True


def test_second(area):
    assert area == 6


def test_size():
    assert shapes.size(-2) == 2 == shapes.size(2)


def test_down():
    assert shapes.down(5) == 0


def test_alive():
    assert shapes.alive(3) == 3
"""


def small_book(root):
    """A small book, with the plugin."""
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, root)
    for name, text in {
        "conftest.py": "",
        "lib/__init__.py": "",
        "lib/shapes.py": SHAPES,
        "tests/lib/test_shapes.py": TESTS,
        "tools/__init__.py": "",
        "tools/mutants/__init__.py": "",
        "tools/mutants/plugin.py": (ROOT / "tools/mutants/plugin.py").read_text(),
        str(record.REASONS): "",
        str(record.RECORD): "{}",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def every(book):
    return [each for path in files(book) for each in mutants(path, book)]


def called(book, count=None, *words):
    """Status and record of a call for some mutants, or for all of them."""
    count = count or len(every(book))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Candidate, "limit", lambda self: 2.0)
        status = command.main([str(count), "--jobs", "2", *words], book)
    return status, json.loads((book / record.RECORD).read_text("utf-8"))


def sources(book):
    paths = {*book.rglob("*.py")} - {*(book / "_build").rglob("*.py")}
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A book all of whose mutants were judged, its sources before, and the status."""
    # One mutant hangs up on itself, which a command under nohup would not notice.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    book = small_book(tmp_path_factory.mktemp("finished"))
    before = sources(book)
    return book, before, called(book)[0]


@pytest.fixture
def judged_book(finished, tmp_path):
    """A copy of it, to go on with."""
    return Path(shutil.copytree(finished[0], tmp_path / "judged"))


@pytest.fixture
def book(tmp_path):
    return small_book(tmp_path)


def test_every_fate_is_found_and_the_tree_is_left_alone(finished):
    book, before, status = finished
    recorded = json.loads((book / record.RECORD).read_text("utf-8"))
    fates = {(r["code"], r["was"], r["to"]): r for r in recorded["mutants"]}
    assert len(fates) == len(every(book)) == recorded["of"]

    def how(*key):
        test = fates[key]["test"] or ""
        return fates[key]["how"], test.partition("::")[2]

    # The area is computed in a fixture, for the first test; the second one notices.
    product = "return a * b"
    assert how(product, "*", "/") == ("fails", "test_second")
    assert how(product, product[7:], "(a)") == ("fails", "test_second")
    assert how("return a if a >= 0 else -a", "-a", "(a)") == ("fails", "test_size")
    assert how("return a if a >= 0 else -a", ">=", ">") == (None, "")
    assert how("n -= 1", "-=", "+=") == ("hangs", "test_down")
    assert how("os.kill(os.getpid(), 0)", "0", "1") == ("crashes", "test_alive")
    assert how("SIDES = (3, 4)[1]", "1", "2") == ("stops the collection", "")
    assert how("SIDES = (3, 4)[1]", "3", "4") == (None, "")
    rest = fates["return a % b", "%", "*"]
    assert (rest["how"], rest["tests"], rest["not_run"]) == (None, 0, 0)
    assert {r["by"] for r in recorded["mutants"] if r["test"]} == {"own"}
    counts = recorded["summary"]
    assert counts["mutants"] == counts["noticed"] + counts["alive"] == len(fates)
    assert counts["noticed"] == counts["by the module's own tests"] + 1
    assert status == 1
    assert sources(book) == before


@pytest.fixture
def judged(monkeypatch):
    """Keys of the mutants that tests are run on, in all calls."""
    keys, judge = [], campaign.judge

    def counted(mutant, *words):
        keys.append(mutant.key)
        return judge(mutant, *words)

    monkeypatch.setattr(campaign, "judge", counted)
    return keys


def test_what_was_judged_is_kept_and_counted_once(book, judged, capsys):
    """A campaign that stops, with a line that is cut, goes on and gives one record."""
    chosen = sample(every(book), 4, 2, book)
    called(book, 2, "--seed", "2")
    journal = book / FOLDER / "journal.jsonl"
    with journal.open("a") as file:
        file.write('["' + chosen[2].key)
    _, recorded = called(book, 4, "--seed", "2")
    assert sorted(judged) == sorted(each.key for each in chosen)
    assert [r["key"] for r in recorded["mutants"]] == [each.key for each in chosen]
    assert "2 of 4 were kept" in capsys.readouterr().out
    _, again = called(book, 4, "--seed", "2")
    assert again["mutants"] == recorded["mutants"] and len(judged) == 4


def test_an_interruption_ends_the_processes_and_keeps_what_was_judged(
    book, monkeypatch
):
    """As by Ctrl-C, while a test waits for ever."""
    path = book / "tests/lib/test_shapes.py"
    waiting = (
        "if shapes.size(-2) < 0:\n        open('stuck', 'w')\n        sleep(1e6)\n"
    )
    path.write_text("from time import sleep\n" + TESTS.replace(
        "assert shapes.size", f"{waiting}    assert shapes.size"
    ))  # fmt: skip
    add, kept = campaign.Journal.add, []

    def interrupted(self, mutant, outcome):
        add(self, mutant, outcome)
        kept.append(mutant.key)
        if [*(book / FOLDER).glob("copy-*/stuck")]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(campaign.Journal, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            called(book)
    assert (book / record.RECORD).read_text() == "{}"
    assert (
        {*campaign.Journal(book, 600.0).kept()}
        == {*kept}
        < {each.key for each in every(book)}
    )


def test_what_an_outcome_depends_on(judged_book, judged):
    """A new test is tried on those alive alone, one that changed on its own as well."""
    book = judged_book
    shapes = book / "lib/shapes.py"
    shapes.write_text(SHAPES.replace("Areas.", "Areas and more.\n\nIn words."))
    _, before = called(book)
    assert judged == []
    (book / "tests/lib/test_more.py").write_text(
        "from lib import shapes\n\n\ndef test_rest():\n"
        "    assert shapes.unused(5, 3) == 2\n"
    )
    _, after = called(book)
    alive = {r["key"] for r in before["mutants"] if r["how"] is None}
    assert {*judged} == alive and len(judged) == len(alive)
    path = book / "tests/lib/test_shapes.py"
    path.write_text(TESTS.replace("shapes.down(5)", "shapes.down(6)"))
    down = {r["key"] for r in after["mutants"] if "test_down" in (r["test"] or "")}
    judged.clear()
    called(book)
    still = {r["key"] for r in after["mutants"] if r["how"] is None}
    assert {*judged} == down | still and down
    by_code = {r["code"]: r["how"] for r in after["mutants"]}
    assert by_code["return a % b"] == "fails"
    judged.clear()
    shapes.write_text(SHAPES.replace("a % b", "a % b + 0"))
    called(book, 2)
    assert len(judged) == 2


def test_a_reason_belongs_to_a_mutant_that_is_alive(judged_book, judged, capsys):
    book = judged_book
    by_change = {(m.was, m.to): m.key for m in every(book)}
    reasons, same = book / record.REASONS, by_change[">=", ">"]
    reasons.write_text(f'{same} = "both sides are 0 there"\n')
    _, recorded = called(book)
    row = next(r for r in recorded["mutants"] if r["key"] == same)
    assert row["reason"] == "both sides are 0 there"
    assert recorded["summary"]["equivalent"] == 1
    assert f"alive {by_change['%', '*']}: lib/shapes.py:" in capsys.readouterr().out
    reasons.write_text(f'{by_change["*", "/"]} = "luck"\n')
    assert called(book)[0] == 1
    assert "said to be equivalent, and tests/lib/test_sh" in capsys.readouterr().out
    for text, sentence in {
        '000000000000 = "gone"': "there is no mutant 000000000000 any more",
        f'{same} = " "': f"{same} needs a sentence",
        f"{same} = ": "equivalent.toml: ",
    }.items():
        reasons.write_text(text)
        with pytest.raises(PipelineError, match=sentence):
            called(book, 1)
    assert judged == []


def test_what_fails_before_anything_is_changed_is_said(book):
    path = book / "tests/lib/test_shapes.py"
    path.write_text(TESTS.replace("== 6", "== 7"))
    with pytest.raises(PipelineError, match="test_shapes.py does not pass before"):
        called(book, 1)
    assert (book / record.RECORD).read_text() == "{}"


def test_two_campaigns_at_once_are_refused_and_so_are_senseless_numbers(book):
    (book / FOLDER).mkdir(parents=True)
    with (
        exclusive(book / FOLDER, "make mutants"),
        pytest.raises(PipelineError, match="another make mutants is running here"),
    ):
        called(book, 1)
    for words in (["0"], ["1", "--jobs", "0"], ["1", "--seconds", "nan"]):
        with pytest.raises(PipelineError, match="must be at least 1, got"):
            command.main(words, book)


def test_the_committed_record_is_of_mutants_that_there_are():
    """At least 300, of every package of lib."""
    stored = json.loads((ROOT / record.RECORD).read_text("utf-8"))
    every = [mutant for path in files(ROOT) for mutant in mutants(path, ROOT)]
    rows = stored["mutants"]
    assert record.summary(rows) == stored["summary"]
    named = {(row["key"], row["file"]) for row in rows}
    assert len(named) == len(rows) >= 300
    packages = {Path(mutant.file).parent for mutant in every} - {Path("lib")}
    assert {Path(row["file"]).parent for row in rows} >= packages
    assert named - {(mutant.key, mutant.file) for mutant in every} == set()
    record.reasons(every, ROOT)
