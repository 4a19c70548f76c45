"""The limit that a model is in, on the command line.

python -m lib.regimes --width 768 --depth 12 --heads 12 --tokens 1024
python -m lib.regimes --preset gpt2 --json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NoReturn

from lib.regimes import PRESETS, Row, describe, preset

SIZES = ("width", "depth", "heads", "tokens", "key_width")
NUMBERS = ("temperature", "residual_scale")
HELP = {
    "width": "n, coordinates of a token",
    "depth": "L, layers",
    "heads": "H, heads in a layer (1)",
    "tokens": "m, length of the context",
    "key_width": "coordinates of a key in a head (n/H)",
    "temperature": "what scores are divided by (the root of the key width)",
    "residual_scale": "γ, weight of a branch beside √(1 − γ²) of the skip (0.707)",
}


class _Parser(argparse.ArgumentParser):
    """A parser that refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"lib.regimes: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows; 2 and one sentence where they cannot be."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.list:
        for name, model in PRESETS.items():
            print(f"{name:16}{model.title}")
        return 0
    try:
        sizes = _sizes(given)
        rows = describe(**sizes)
    except ValueError as error:
        parser.error(str(error))
    if given.json:
        print(json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=1))
    else:
        print(_text(rows, given.preset))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m lib.regimes", description=__doc__.split("\n")[0])
    for name in (*SIZES, *NUMBERS):
        parser.add_argument(f"--{name.replace('_', '-')}", help=HELP[name])
    parser.add_argument(
        "--layers-shared", action="store_true", help="all layers have the same weights"
    )
    parser.add_argument("--preset", help="a published model; sizes given beside it win")
    parser.add_argument("--list", action="store_true", help="print the presets")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _sizes(given: argparse.Namespace) -> dict[str, Any]:
    """Arguments of describe; ValueError for texts that are no numbers."""
    sizes: dict[str, Any] = preset(given.preset).sizes if given.preset else {}
    for name in SIZES:
        if (text := getattr(given, name)) is not None:
            sizes[name] = _integer(name, text)
    for name in NUMBERS:
        if (text := getattr(given, name)) is not None:
            sizes[name] = _number(name, text)
    if given.layers_shared:
        sizes["layers_shared"] = True
    missing = [name for name in ("width", "depth", "tokens") if name not in sizes]
    if missing:
        options = ", ".join(f"--{name}" for name in missing)
        raise ValueError(f"the sizes of a model are needed: {options}, or --preset")
    return sizes


def _integer(name: str, text: str) -> int:
    try:
        if len(text) <= 40:
            return int(text)
    except ValueError:
        pass
    raise ValueError(f"{name} must be an integer, got {_short(text)}")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {_short(text)}") from None


def _short(text: str) -> str:
    return repr(text) if len(text) <= 40 else f"{text[:20]!r}… ({len(text)} characters)"


def _text(rows: Sequence[Row], name: str | None) -> str:
    """The rows as paragraphs, a quantity each."""
    parts = []
    if name:
        model = PRESETS[name]
        parts.append(
            f"{model.title}: {model.special}.\nSizes: {model.config}"
            f" [{model.family.source}]."
        )
    for row in rows:
        value = "not covered" if row.value is None else f"{row.value:.4g}"
        lines = [f"{row.quantity}: {value}"]
        for key in ("limit", "predicts", "correction", "statement"):
            said = getattr(row, key) or "—"
            lines += textwrap.wrap(
                said, 88, initial_indent=f"  {key:12}", subsequent_indent=" " * 14
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
