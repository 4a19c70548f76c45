"""Tricks of students' notebooks on a grader: by accident, from curiosity, or worse.

Each trick changes a notebook whose answers are right, or one whose first answer is
wrong, and says which checks are lost all the same. The tests and the benchmark grade
them all; the page for teachers lists them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

from nbformat import NotebookNode


class Trick(NamedTuple):
    """A trick, what answers it, and the marks that are due.

    ``loses`` is ``none``, ``its`` (what a wrong first answer loses) or ``first`` (all
    checks of the first answer). ``wrong`` says that the first answer is a wrong one;
    ``note`` is in the report, '' where there need not be one.
    """

    what: str
    answered: str
    spoil: Callable[[NotebookNode, str], None]
    loses: str = "none"
    wrong: bool = False
    note: str = ""


def index(notebook: NotebookNode, name: str) -> int:
    """Place of a cell by its name."""
    ids = [c.metadata.get("nbgrader", {}).get("grade_id") for c in notebook.cells]
    return ids.index(name)


def _before(code: str) -> Callable[[NotebookNode, str], None]:
    def spoil(notebook: NotebookNode, answer: str) -> None:
        cell = notebook.cells[index(notebook, answer)]
        cell.source = f"{code.strip()}\n{cell.source}"

    return spoil


def _delete(offset: int) -> Callable[[NotebookNode, str], None]:
    def spoil(notebook: NotebookNode, answer: str) -> None:
        del notebook.cells[index(notebook, answer) + offset]

    return spoil


def _twin(name: str | None) -> Callable[[NotebookNode, str], None]:
    def spoil(notebook: NotebookNode, answer: str) -> None:
        place = index(notebook, answer) + 1
        twin = copy.deepcopy(notebook.cells[place])
        twin.id += "-2"
        twin.metadata.nbgrader.grade_id = name or twin.metadata.nbgrader.grade_id
        notebook.cells.insert(place, twin)

    return spoil


def _edit_check(notebook: NotebookNode, answer: str) -> None:
    notebook.cells[index(notebook, answer) + 1].source = "print('passed')"


def _more_points(notebook: NotebookNode, answer: str) -> None:
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader |= {"points": 1000, "locked": False, "grade": True}


def _own_output(notebook: NotebookNode, answer: str) -> None:
    check = notebook.cells[index(notebook, answer) + 1]
    check.metadata.nbgrader["solution"] = True
    check.metadata.nbgrader["grade"] = False


OVER = "it is over with this cell: the process ends, and only what it defines is lost"
SANDBOX = "the sandbox has no such file or process"
KERNEL = "the kernel of the system refuses"
APART = "the checks run in another process"

TRICKS = {
    # Patching what checks.
    "patched-checks": Trick(
        "patch agree, holds and Answer in lib.coursework", APART,
        _before("import lib.coursework as cw\n"
                "cw.agree = cw.holds = cw.Answer = lambda *args, **kw: None"),
        "its", True),
    "shadowed-checks": Trick(
        "give agree and holds another meaning", APART,
        _before("agree = holds = Answer = lambda *args, **kwargs: None"), "its", True),
    "patched-numpy": Trick(
        "patch numpy so that the comparisons of checks hold", APART,
        _before("import sys\nimport numpy\nreal = numpy.all\n"
                "numpy.all = lambda *a, **k: 'coursework' in sys._getframe(1)"
                ".f_globals['__name__'] or real(*a, **k)"),
        "its", True),
    "patched-builtins": Trick(
        "patch print and all", APART,
        _before("import builtins\nbuiltins.all = lambda x: True\n"
                "builtins.print = lambda *a, **k: None"), "its", True),
    "equal-to-all": Trick(
        "return an object that equals everything", APART,
        _before("class Same:\n    def __eq__(s, o): return True\n"
                "    def __array__(s, *a, **k): return 0\n    __sub__ = __rsub__ = "
                "__lt__ = __eq__"), "its", True),
    "forged-answers": Trick(
        "write on the channel to the grader",
        "what is written there is a value at most",
        _before("import os\nfor fd in range(3, 64):\n    try:\n"
                "        os.write(fd, b'x' * 64)\n    except OSError:\n        pass"),
        "first", False, "sent what is"),
    # Looking for secrets.
    "reads-seed": Trick(
        "print the environment, the history and all frames",
        "the process never had the seed or a hidden part",
        _before("import gc, os, sys\nprint(dict(os.environ), In)\n"
                "frame = sys._getframe()\nwhile frame:\n"
                "    print(frame.f_code.co_name, sorted(frame.f_locals)[:50])\n"
                "    frame = frame.f_back\n"
                "print([o for o in gc.get_objects() if isinstance(o, str)][:50])")),
    "reads-proc": Trick(
        "read the environment and the memory of other processes", SANDBOX,
        _before("from pathlib import Path\nfor p in Path('/proc').glob('[0-9]*'):\n"
                "    for name in ('environ', 'cmdline'):\n        try:\n"
                "            print((p / name).read_bytes()[:500])\n"
                "        except OSError:\n            pass")),
    "reads-course": Trick(
        "look for the seed, the limits and other submissions on the disk", SANDBOX,
        _before("from pathlib import Path\nof_system = ('/usr', '/proc', '/sys')\n"
                "tops = [p for p in Path('/').glob('*')"
                " if not str(p.resolve()).startswith(of_system)]\n"
                "for top in (*tops, Path('..')):\n    for p in top.glob('**/*'):\n"
                "        if p.name in ('term.txt', 'limits.json', 'collected'):\n"
                "            raise SystemExit(f'found {p}')")),
    "reads-solutions": Trick(
        "read the texts of the sets in the clone of the book", SANDBOX,
        _before("import lib\nfrom pathlib import Path\n"
                "top = Path(lib.__file__).parent.parent\n"
                "assert not (top / 'coursework' / 'source').exists()")),
    # Attacking the machine.
    "kills-all": Trick(
        "kill every process that /proc lists, by ctypes", KERNEL,
        _before("import ctypes, os\nlibc = ctypes.CDLL(None)\n"
                "for pid in [p for p in os.listdir('/proc') if p.isdigit()]:\n"
                "    assert libc.kill(int(pid), 9) == -1\nlibc.kill(-1, 9)")),
    "kills-by-python": Trick(
        "os.kill of the parent", "an audit hook tells, and the kernel refuses",
        _before("import os\nos.kill(os.getppid(), 9)"), "first", False,
        "no process may be ended"),
    "ctypes-system": Trick(
        "run a shell by ctypes", KERNEL,
        _before("import ctypes\n"
                "assert ctypes.CDLL(None).system(b'touch /tmp/pwned-by-ctypes') != 0")),
    "fork-bomb": Trick(
        "fork without end, by ctypes", KERNEL,
        _before("import ctypes\nlibc = ctypes.CDLL(None)\n"
                "for _ in range(10_000):\n    assert libc.fork() == -1")),
    "starts-program": Trick(
        "os.system", "an audit hook tells, and the kernel refuses",
        _before("import os\nos.system('ls')"), "first", False,
        "no other program"),
    "network": Trick(
        "open a connection", "there is no network in the sandbox",
        _before("import urllib.request\n"
                "urllib.request.urlopen('http://127.0.0.1:1', timeout=5)"), "first",
        False, ""),
    "clears-its-traces": Trick(
        "clear_output after what was refused", "notes are not kept in the output",
        _before("from IPython.display import clear_output\nimport os\ntry:\n"
                "    os.system('ls')\nexcept Exception:\n    clear_output()"), "none",
        False, "no other program"),
    "fills-the-disk": Trick(
        "write files without end", "the scratch folder is in memory and is small",
        _before("try:\n    for k in range(100):\n"
                "        open(f'big{k}', 'wb').write(bytes(50_000_000))\n"
                "    raise SystemExit('the disk has no end')\n"
                "except OSError:\n    pass")),
    "writes-the-book": Trick(
        "change the package of the book on the disk", "the sandbox sees it read-only",
        _before("import lib.coursework as cw\ntry:\n"
                "    open(cw.__file__, 'a').write('#')\n"
                "    raise SystemExit('the book was changed')\n"
                "except OSError:\n    pass")),
    # Running out.
    "infinite-loop": Trick(
        "a loop without end", "limits count processor time",
        _before("while True:\n    pass"), "first", False, "processor time"),
    "stubborn-loop": Trick(
        "a loop without end that catches every exception",
        "limits count processor time",
        _before("while True:\n    try:\n        while True:\n            pass\n"
                "    except BaseException:\n        pass"), "first", False,
        "processor time"),
    "loop-of-threads": Trick(
        "loops without end in eight threads", "processor time of all threads counts",
        _before("import threading\ndef spin():\n    while True:\n        pass\n"
                "for _ in range(8):\n    threading.Thread(target=spin).start()\n"
                "spin()"), "first", False, "processor time"),
    "sleeps": Trick(
        "sleep for hours", "a process that does nothing for a minute is stopped",
        _before("import time\nwhile True:\n    try:\n        time.sleep(10_000)\n"
                "    except BaseException:\n        pass"), "first", False,
        "did nothing"),
    "waits-for-input": Trick(
        "input()", "there is nobody to ask",
        _before("input('your name? ')"), "first"),
    "runaway-output": Trick(
        "print without end", "a cell prints 100,000 characters",
        _before("while True:\n    print('x' * 1000)"), "first", False, "LimitReached"),
    "shows-too-much": Trick(
        "display 100 MB", "too large forms are left out",
        _before("from IPython.display import HTML, display\n"
                "display(HTML('x' * 100_000_000))")),
    "one-big-array": Trick(
        "ask for a terabyte", "4 GiB for a process",
        _before("y = bytearray(1 << 40)"), "first", False, "MemoryError"),
    "doubling-list": Trick(
        "a list that doubles without end", "4 GiB for a process",
        _before("y = [0]\nwhile True:\n    y = y + y"), "first", False, "cell"),
    "endless-recursion": Trick(
        "recursion without end and without its limit", OVER,
        _before("import sys\nsys.setrecursionlimit(10**9)\n"
                "def deeper(x):\n    return [deeper([y]) for y in [x]]\ndeeper(0)"),
        "first", False, "cell"),
    "process-death": Trick(
        "os._exit", OVER, _before("import os\nos._exit(1)"), "first", False,
        "ended its process"),
    "segmentation-fault": Trick(
        "read from address 0", OVER, _before("import ctypes\nctypes.string_at(0)"),
        "first", False, "ended its process"),
    # Notebooks that are not as they were given.
    "syntax-error": Trick(
        "a syntax error", "it costs its cell", _before("def f(:"), "first", False,
        "SyntaxError"),
    "indentation-error": Trick(
        "an indentation error", "it costs its cell", _before("  x = 1\n y = 2"),
        "first", False, "IndentationError"),
    "tab-error": Trick(
        "tabs and blanks mixed", "it costs its cell",
        _before("if 1:\n\tx = 1\n        y = 2"), "first", False, "TabError"),
    "deleted-check": Trick(
        "delete a check", "it is put back", _delete(1), "none", False, "is missing"),
    "deleted-answer": Trick(
        "delete an answer", "it costs its checks", _delete(0), "first", False,
        "is missing"),
    "doubled-check": Trick(
        "double a check", "one is graded", _twin(None), "none", False,
        "stands 2 times"),
    "foreign-cell": Trick(
        "paste a cell of another set", "it is an ordinary cell",
        _twin("of-another-set"), "none", False, "does not belong"),
    "edited-check": Trick(
        "edit a check", "it is graded as given", _edit_check, "none", False,
        "was edited"),
    "more-points": Trick(
        "give oneself 1000 points in the metadata", "metadata are as given",
        _more_points),
    "check-made-answer": Trick(
        "mark a check as an answer in the metadata", "metadata are as given",
        _own_output),
    "pip-install": Trick(
        "!pip install, as the first cell of the book says", "it is left out",
        _before("!pip install something\n%pip install something")),
    "own-step": Trick(
        "use a name of the term for something else",
        "no check reads a name of the student but the answers",
        _before("step = row = share = crowd = cold = width = 0.1")),
}  # fmt: skip
