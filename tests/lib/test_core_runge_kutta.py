"""When a step of the classical method is said to be too long."""

import numpy as np
import pytest

from lib.core.runge_kutta import StepCheck, runge_kutta


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0])
def test_a_linear_equation_is_refused_by_its_rate_and_not_by_its_size(size):
    """Of x' = −λx the quotient of the stages is λh/2, for an x of any size."""

    def one_step(rate):
        check = StepCheck((-1,), 1, 1.0, "numbers")
        return runge_kutta(lambda x: -rate * x, 1.0, check)(np.array([size, 0.0]))

    x = one_step(0.8)
    assert x[0] == pytest.approx(size * (1 - 0.8 + 0.32 - 0.8**3 / 6 + 0.8**4 / 24))
    with pytest.raises(ValueError, match="steps=1 is too small .* these numbers"):
        one_step(2.4)


@pytest.mark.parametrize("rate", [3.0, 30.0, 300.0])
def test_the_number_of_steps_it_names_is_enough(rate):
    def run(steps):
        check, x = StepCheck((-1,), steps, 1.0, "numbers"), np.array([1e-3, 0.0])
        step = runge_kutta(lambda x: -rate * x, 1 / steps, check)
        for _ in range(steps):
            x = step(x)

    with pytest.raises(ValueError, match="take about") as refusal:
        run(1)
    run(int(str(refusal.value).split()[-1]))
