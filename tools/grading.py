"""``python -m tools.grading``: see :mod:`coursework.grading`."""

from coursework.grading import KEPT, main
from tools.command import run_main

if __name__ == "__main__":
    run_main(main, KEPT)
