"""``python -m tools.coursework``: see :mod:`coursework.course`."""

from coursework.course import main
from tools.command import run_main

if __name__ == "__main__":
    run_main(main)
