"""Commands of the kernels: --list, --example NAME, --parity, --build FOLDER."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.command import PipelineError, run_main
from tools.kernels import build, parity


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.kernels")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="one JSON line a kernel")
    what.add_argument("--example", metavar="NAME", help="inputs, and what lib gives")
    what.add_argument("--parity", action="store_true", help="record errors and times")
    what.add_argument("--build", metavar="FOLDER", type=Path, help="write the modules")
    parser.add_argument("--size", type=int, default=7, help="every free size")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.list:
        for each in build.KERNELS:
            print(build.as_json(build.listed(each)))
    elif options.example:
        if options.size < 1:
            raise PipelineError(f"--size must be at least 1, got {options.size}")
        kernel = build.kernel(options.example)
        print(build.as_json(build.example(kernel, options.size, options.seed)))
    elif options.parity:
        for name, measured in parity.measure()["engines"].items():
            print(f"{name}: error at most {max(measured['errors'].values()):.1e}")
    else:
        build.build(options.build)


if __name__ == "__main__":
    run_main(main)
