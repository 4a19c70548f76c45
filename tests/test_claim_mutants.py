"""A mutant for each claim: where a verdict turns red, and nothing else counts."""

import json
import shutil

import pytest
from pairs import write_pair

from tools.command import ROOT, PipelineError, exclusive
from tools.mutants import __main__ as command
from tools.mutants import claims, claims_record
from tools.mutants.campaign import FOLDER
from tools.mutants.pages import Book, parts
from tools.mutants.sites import files, mutants
from tools.texts import texts
from tools.verdicts import collect

TOY = '''
"""Areas."""


def rectangle(a, b):
    return a * b


def down(n):
    while n > 0:
        n -= 1
    return n


def inverse(x):
    return 1 / x
'''
START = (
    "import numpy as np\nfrom lib import toy\nfrom lib.claims import generator, verify"
)
AREA = "verify('an area', measured=toy.rectangle(2.0, 3.0), expected=6, tolerance=0.1)"
NEVER = "verify('anything', measured=np.sin(toy.rectangle(2.0, 3.0)), at_most=2.0)"


@pytest.fixture
def book(tmp_path):
    """A small book, whose pages ``write`` makes."""
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    core = ("lib/core/__init__.py", "lib/core/checks.py", "lib/core/memory.py")
    for name in ("lib/claims.py", *core):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "lib/__init__.py").touch()
    (tmp_path / "lib/toy.py").write_text(TOY)
    (tmp_path / claims_record.RECORD).parent.mkdir(parents=True)
    (tmp_path / claims_record.REASONS).parent.mkdir(parents=True)
    (tmp_path / claims_record.REASONS).touch()
    return tmp_path


def write(book, *cells, name="1-test"):
    return write_pair(book / "chapters" / f"{name}.md", cells)


def called(book, *words):
    """Status of a call, and the rows of the record by claim."""
    status = command.main(["--claims", *words], book)
    return status, {row["claim"]: row for row in claims_record.read(book)}


def runs(book):
    """Keys of the runs that the journal has, in order; lines that were cut left out."""
    keys = []
    for line in (book / claims.JOURNAL).read_text("utf-8").splitlines():
        try:
            keys.append(json.loads(line)[1])
        except ValueError:
            continue
    assert len({*keys}) == len(keys)
    return keys


def test_the_verdict_itself_turns_red(book):
    write(book, START, AREA)
    before = (book / "lib/toy.py").read_bytes()
    status, rows = called(book)
    row = rows["an area"]
    assert status == 0 and row["mutant"]["file"] == "lib/toy.py"
    assert row["mutant"]["function"] == "rectangle"
    assert row["mutant"]["was"] == "a * b"
    wanted = {"a / b": 2 / 3, "(a)": 2.0, "(b)": 3.0}
    assert row["red"]["measured"] == pytest.approx(wanted[row["mutant"]["to"]])
    assert row["red"]["word"] == "FAILS"
    assert (book / "lib/toy.py").read_bytes() == before


def test_what_raises_hangs_or_gives_no_number_does_not_count(book):
    """Each of these claims meets such mutants, and no other but those of the cell."""
    write(
        book, START,
        "where = [0, 5][int(toy.rectangle(1, 1)) - 1]",
        "verify('an end', measured=toy.down(3), at_most=0.0)",
        "with np.errstate(all='ignore'):\n"
        "    far = toy.inverse(np.float64('inf')) * 0",
        "verify('no number', measured=far, expected=0, tolerance=1.0)",
    )  # fmt: skip
    status, rows = called(book, "--tries", "20")
    outcomes = [
        json.loads(line)[3]
        for line in (book / claims.JOURNAL).read_text("utf-8").splitlines()
        if line
    ]
    assert any(each["raised"] == "hangs or crashes" for each in outcomes)
    for each in rows.values():
        if each["red"]:
            assert abs(each["red"]["measured"]) < float("inf")
    assert rows["an end"]["mutant"]["to"] in ("n >= 0", "n <= 0", "n > 1")
    assert rows["no number"]["mutant"] is None and status == 1


def test_nan_and_what_passes_are_not_red():
    said = {"id": "a", "passed": False, "measured": 1.0}
    others = [said | {"measured": float("nan")}, said | {"passed": True}]
    assert claims.red({"verdicts": [[0, said]]}) == {"a": said}
    assert claims.red({"verdicts": [[0, each] for each in others]}) == {}


def test_what_a_claim_asks_for_is_never_changed(book):
    path = write(
        book, START,
        "bound = 2 + 1\nexact = 5.0\nrng = generator(11)",
        "x = rng.normal() * 7\n"
        "verify('claim 1 + 1', measured=x + 13, at_most=bound + 17)\n"
        "verify('two', measured=x, expected=exact, tolerance=19 * 23.0)\n"
        "verify('three', measured=x, expected=29 + 1, tolerance=99.0, refuted=False)",
    )  # fmt: skip
    changed = {(each.line, each.was) for each in Book(path, book).mutants}
    first = path.read_text().splitlines().index("x = rng.normal() * 7") + 1
    assert changed == {
        (first, "7"), (first, "*"), (first, "rng.normal() * 7"),
        (first + 1, "13"), (first + 1, "+"),
    }  # fmt: skip


def test_a_claim_of_the_cells_alone_has_a_mutant_of_them(book):
    write(book, START, "x = 3.0\nother = 4", "y = x + 1", "verify(\n"
                 "    'a sum', measured=y, expected=4, tolerance=0.1,\n)")  # fmt: skip
    status, rows = called(book)
    mutant = rows["a sum"]["mutant"]
    assert status == 0 and mutant["file"] == "chapters/1-test.md"
    assert mutant["was"] in ("3.0", "x + 1", "+", "1") and mutant["function"] is None


def test_a_claim_that_cannot_fail_is_reported(book, capsys):
    write(book, START, AREA, NEVER)
    status, rows = called(book, "--tries", "3")
    weak = rows["anything"]
    assert status == 1 and weak["mutant"] is None is weak["red"]
    assert rows["an area"]["mutant"]
    assert f"{weak['id']}: anything: no mutant was found" in capsys.readouterr().out
    reasons = book / claims_record.REASONS
    reasons.write_text(f'{weak["id"]} = "It is a number times zero."\n')
    assert called(book, "--tries", "3")[0] == 0
    for text, sentence in {
        'verdict-0 = "gone"': "there is no claim verdict-0 any more",
        f'{weak["id"]} = " "': "needs a sentence",
        f'{rows["an area"]["id"]} = "x"': "has a mutant, and needs no reason",
        "x = ": "claims.toml: ",
    }.items():
        reasons.write_text(text)
        with pytest.raises(PipelineError, match=sentence):
            called(book, "--tries", "3")


def test_what_was_run_is_kept_and_counted_once(book, monkeypatch):
    """An interruption, and a line that is cut; the next call goes on."""
    write(book, START, AREA, "verify('one', measured=toy.inverse(2.0), at_least=0.4)")
    add, seen = claims.Journal.add, []

    def interrupted(self, page, key, outcome):
        add(self, page, key, outcome)
        seen.append(key)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(claims.Journal, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            called(book, "--jobs", "1")
    assert sum(row["mutant"] is not None for row in claims_record.read(book)) < 2
    with (book / claims.JOURNAL).open("a") as file:
        file.write('["chapters/1-test", "cut')
    assert runs(book) == seen
    status, rows = called(book, "--jobs", "1")
    assert status == 0 and all(row["mutant"] for row in rows.values())
    made = runs(book)
    assert made[:4] == seen
    assert called(book)[1] == rows and runs(book) == made


def test_a_later_run_tries_what_is_recorded_and_searches_what_is_gone(book):
    write(book, START, AREA, "verify('one', measured=toy.inverse(2.0), at_least=0.4)")
    _, rows = called(book)
    shutil.rmtree(book / FOLDER)
    assert called(book)[1] == rows
    first = sorted(key.split()[0] for key in runs(book))
    keys = sorted(row["mutant"]["key"] for row in rows.values())
    assert first == sorted(["page", "part", "part", *keys])  # one mutant each
    # Another statement: its mutant is gone, and the other claim keeps its own.
    toy = book / "lib/toy.py"
    toy.write_text(TOY.replace("return a * b", "return b * a"))
    status, after = called(book)
    assert status == 0 and after["one"] == rows["one"]
    assert after["an area"]["mutant"]["key"] != rows["an area"]["mutant"]["key"]


def test_one_page_is_asked_and_the_others_keep_their_rows(book):
    write(book, START, AREA)
    write(book, START, AREA.replace("an area", "another"), name="2-test")
    _, rows = called(book)
    (book / "lib/toy.py").write_text(TOY.replace("a * b", "b * a"))
    _, after = called(book, "--page", "2-test")
    assert after["an area"] == rows["an area"] and [*after] == ["an area", "another"]
    assert after["another"]["mutant"]["was"] == "b * a"
    with pytest.raises(PipelineError, match="--page must be one of 1-test, 2-test"):
        called(book, "--page", "3-test")


def test_a_named_mutant_is_tried_first_and_for_named_claims_alone(book):
    """By its key, or with those that share its place."""
    write(book, START, AREA, "verify('one', measured=toy.inverse(2.0), at_least=0.4)")
    _, rows = called(book)
    before = rows["an area"]
    line = [m for m in mutants(book / "lib/toy.py", book) if m.line == 6]
    other = next(m.key for m in line if m.key != before["mutant"]["key"])
    for named, known in ((other, {other}), ("lib/toy.py:6", {m.key for m in line})):
        shutil.rmtree(book / FOLDER)
        words = "--claim", before["id"], "--first", named, "--tries", "1"
        _, after = called(book, *words)
        assert after["one"] == rows["one"]
        assert after["an area"]["mutant"]["key"] in known
        made = [key.split()[0] for key in runs(book)]
        assert made == ["page", "part", after["an area"]["mutant"]["key"]]
    with pytest.raises(PipelineError, match="has no claim verdict-0"):
        called(book, "--claim", "verdict-0")
    with pytest.raises(PipelineError, match="lib/toy.py:1 is neither the key nor"):
        called(book, "--first", "lib/toy.py:1")


def test_a_page_that_fails_unchanged_is_said_and_run_again(book):
    write(book, START, AREA.replace("expected=6", "expected=7"))
    with pytest.raises(PipelineError, match="unchanged: 'an area' is not as stated"):
        called(book)
    write(book, START, AREA, "raise OSError('no data')\nverify")
    with pytest.raises(PipelineError, match="unchanged: OSError: no data"):
        called(book)
    assert runs(book) == ["page"]  # the first alone, which ended


def test_one_at_a_time_and_only_sensible_numbers(book):
    write(book, START, AREA)
    (book / FOLDER).mkdir(parents=True)
    with (
        exclusive(book / FOLDER, "make mutants"),
        pytest.raises(PipelineError, match="another make mutants is running here"),
    ):
        called(book)
    with pytest.raises(PipelineError, match="tries must be at least 1, got 0"):
        called(book, "--tries", "0")
    for words in (
        [], ["3", "--claims"], ["3", "--page", "1-test"], ["3", "--claim", "verdict-0"],
        ["3", "--first", "lib/toy.py:6"],
    ):  # fmt: skip
        with pytest.raises(SystemExit):
            command.main(words, book)


def test_claims_that_share_their_work_are_run_together():
    steps = [
        {"needs": [], "seconds": 9.0}, {"needs": [0], "seconds": 1.0},
        {"needs": [0], "seconds": 1.0}, {"needs": [], "seconds": 1.0},
        {"needs": [3], "seconds": 0.1},
    ]  # fmt: skip
    shared = parts(steps, {"a": 1, "b": 2, "c": 4})
    assert [(each.pieces, each.claims) for each in shared] == [
        ((0, 1, 2), ("a", "b")), ((3, 4), ("c",)),
    ]  # fmt: skip


def test_a_part_has_what_its_claim_needs_and_no_more(book):
    """Also what changes an object in place, and what a function draws from."""
    cells = [
        START,
        "rng, seen = generator(3), []\nx = 1\nfigure = toy.rectangle(1, 1)",
        "def draw(rng=rng):\n    return rng.normal()\n\nx = 2.0",
        "seen.append(draw())\nunused = toy.down(2)\ny = x + draw()",
        "verify('drawn', measured=y + len(seen), at_least=-9.0)",
        "verify('two', measured=x, expected=2, tolerance=0.1)",
    ]
    path = write(book, *cells)
    page = Book(path, book)
    search = claims.Search(book, [page], 1)
    (book / FOLDER).mkdir(parents=True)
    outcome = search.original(page)
    places = {said["id"]: piece for piece, said in outcome["verdicts"]}
    by_claim = {
        said["claim"]: {page.pieces[n].source.splitlines()[0] for n in part.pieces}
        for part in parts(outcome["steps"], places)
        for _, said in outcome["verdicts"]
        if said["id"] in part.claims
    }
    assert "x = 1" not in by_claim["two"] and "x = 2.0" in by_claim["two"]
    assert by_claim["drawn"] > {"x = 2.0", "y = x + draw()", "seen.append(draw())"}
    assert "unused = toy.down(2)" not in by_claim["drawn"]
    assert {"x = 2.0", cells[-1]} < by_claim["two"]
    assert len(by_claim["two"]) == 3  # with the import of verify


def test_mutants_of_the_record_are_changes_of_what_stands_now():
    """Elsewhere a statement or a cell has changed, and its claims ask anew."""
    keys = {each.key for path in files(ROOT) for each in mutants(path, ROOT)}
    keys |= {each.key for path in texts(ROOT) for each in Book(path, ROOT).mutants}
    gone = [
        row["id"]
        for row in claims_record.read(ROOT)
        if row["mutant"] and row["mutant"]["key"] not in keys
    ]
    assert gone == [], "python -m tools.mutants --claims --claim ID finds others"


def test_every_claim_has_a_mutant_or_a_reason():
    rows = claims_record.read(ROOT)
    known = claims_record.reasons(rows, ROOT)
    assert [(row["page"], row["id"]) for row in rows] == [
        (row.page, row.id) for row in collect()
    ]
    assert {row["id"] for row in rows if row["mutant"] is None} == {*known}
    for row in rows:
        assert not row["mutant"] or row["red"]["word"] in ("FAILS", "INCONCLUSIVE")
