"""Each check lets good input through unchanged and names what it refuses."""

import numpy as np
import pytest

from lib.core import checks
from lib.sphere.geometry import require_unit


def test_good_input_passes_unchanged():
    array = np.arange(6.0).reshape(2, 3)
    assert checks.as_float("x", array) is array
    assert checks.require_finite("x", array) is array
    assert checks.as_float("x", [1, 2]).dtype == np.float64
    masked = np.array([0.0, -np.inf])
    assert checks.require_finite("x", masked, masked=True) is masked
    assert checks.require_positive("eps", np.float32(2)) == 2.0
    assert checks.require_count("n", np.int64(3)) == 3
    assert checks.require_flag("normalize", np.True_) is True
    unit = np.array([[0.6, 0.8], [1.0, 1e-5]])
    assert require_unit("x", unit) is unit


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: checks.as_float("x", ["a"]), ["x", "U1"]),
        (lambda: checks.as_float("x", [1j]), ["x", "complex"]),
        (lambda: checks.as_float("x", [[1], [1, 2]]), ["x", "rectangular"]),
        (lambda: checks.as_float("x", None), ["x", "object"]),
        (
            lambda: checks.require_finite("x", np.array([[0, np.nan]])),
            ["x[0, 1]", "nan"],
        ),
        (lambda: checks.require_finite("x", np.array(np.inf)), ["x is inf"]),
        (
            lambda: checks.require_finite("x", np.array([np.inf]), masked=True),
            ["x[0]", "inf"],
        ),
        (lambda: checks.require_last_axis("x", np.zeros((2, 0))), ["x", "(2, 0)"]),
        (lambda: checks.require_square("x", np.zeros((2, 3))), ["x", "(2, 3)"]),
        (lambda: checks.require_matrix("x", np.zeros(3)), ["x", "(3,)"]),
        (lambda: checks.require_positive("eps", 0), ["eps", "0"]),
        (lambda: checks.require_positive("eps", float("nan")), ["eps", "nan"]),
        (lambda: checks.require_positive("eps", "1"), ["eps", "'1'"]),
        (lambda: checks.require_count("n", 2.0), ["n", "2.0"]),
        (lambda: checks.require_count("n", True), ["n", "True"]),
        (lambda: checks.require_choice("order", 4, (1, 2)), ["order", "1, 2", "4"]),
        (lambda: checks.require_generator("rng", 0), ["rng", "0"]),
        (lambda: checks.require_flag("shifted", 1), ["shifted", "1"]),
        (lambda: require_unit("x", np.ones(3)), ["x", "(3,)"]),
        (lambda: require_unit("x", np.ones((1, 2, 2))), ["x[0, 0]", "1.41421356"]),
        (lambda: require_unit("x", [[np.nan, 1.0]]), ["x[0, 0]", "nan"]),
        (lambda: require_unit("x", [[1e300, 1.0]]), ["x[0]", "norm inf"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words)
