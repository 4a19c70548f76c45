"""Every displayed formula of a statement is recomputed by a test, and none other is."""

import ast
from importlib import import_module
from inspect import getsource
from pathlib import Path

import pytest
from printed import RECOMPUTED, printed

HERE = Path(__file__).parent
for each in sorted(HERE.glob("test_[0-9]*.py")):
    import_module(each.stem)


@pytest.mark.parametrize("each", printed(), ids=lambda each: each.label)
def test_every_formula_is_recomputed(each):
    assert each in RECOMPUTED, f"no test of {each.label} says: {each.tex}"


def test_only_printed_formulas_are_recomputed():
    gone = [each for each in RECOMPUTED if each not in printed()]
    assert not gone, f"no statement prints: {gone}"


def test_the_list_is_that_of_the_book():
    assert len(printed()) == len({*printed()}) > 50


def test_what_recomputes_a_formula_is_a_test_that_can_fail():
    for tests in RECOMPUTED.values():
        for test in tests:
            tree = ast.parse(getsource(test))
            assert test.__name__.startswith("test_")
            assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))
