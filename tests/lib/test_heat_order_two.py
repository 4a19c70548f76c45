"""lib.heat.order_two and the derivatives it is made of."""

import numpy as np
import pytest

from lib import heat, sinkhorn

LAWS = {
    "two modes": heat.GaussianMixture([-2, 2], [1, 1], [0.5, 0.5]),
    "uneven": heat.GaussianMixture([-1, 0.5, 3], [0.4, 1.5, 0.8], [0.2, 0.5, 0.3]),
}
x = np.linspace(-4, 5, 19)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
class TestDerivatives:
    def test_first_is_the_score(self, law):
        assert law.log_derivatives(x, 1)[0] == pytest.approx(law.score(x), abs=1e-13)

    @pytest.mark.parametrize("order", [2, 3, 4, 5])
    def test_each_is_the_derivative_of_the_one_before(self, law, order):
        h = 1e-4
        ahead, behind = (law.log_derivatives(x + s, order - 1)[-1] for s in (h, -h))
        slope = law.log_derivatives(x, order)[-1]
        assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-5)

    def test_shapes(self, law):
        grid = x[:18].reshape(3, 6)
        assert law.log_derivatives(grid, 4).shape == (4, 3, 6)
        assert heat.jerk(law, grid).shape == (3, 6)
        assert heat.leading_error(law, grid, 0.5).shape == (3, 6)
        assert heat.leading_error(law, 0.3, 0.5).shape == ()

    def test_acceleration_and_jerk_are_those_of_the_flow_map(self, law):
        h = 0.01
        one, two, back, far = (
            law.transport(x, law.heat(t)) for t in (h, 2 * h, -h, -2 * h)
        )
        second = (-two + 16 * one - 30 * x + 16 * back - far) / (12 * h**2)
        assert heat.acceleration(law, x) == pytest.approx(second, abs=2e-5)
        third = (two - 2 * one + 2 * back - far) / (2 * h**3)
        assert heat.jerk(law, x) == pytest.approx(third, abs=0.02)

    def test_one_layer_is_off_by_the_jerk(self, law):
        def share(ε):
            nodes, w = heat.quadrature(law, 0.3 * np.sqrt(ε))
            step = sinkhorn.bridge_step(nodes, ε, weights=w, tol=1e-14)
            off = step - law.transport(nodes, law.heat(ε))
            term = -(ε**3) / 6 * heat.jerk(law, nodes)
            return (w @ (off * term) / (w @ term**2))[0]

        assert 2 * share(0.01) - share(0.02) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("means", "variance", "horizon"), [([0.0], 1.0, 1.0), ([2.0], 0.5, 3.0)]
)
def test_leading_error_of_a_gaussian(means, variance, horizon):
    """The variance lacks ε²/8 (1/s − 1/(s + T)), by prop-gaussian-flow."""
    law = heat.GaussianMixture(means, [variance], [1.0])
    end = variance + horizon
    lost = (1 / variance - 1 / end) / 8
    expected = -(x - means[0]) * lost / (2 * end)
    error = heat.leading_error(law, x, horizon)
    assert error == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("horizon", [0.02, 1.0, 40.0])
def test_nodes_are_enough_at_short_and_long_times(horizon, monkeypatch):
    from lib.heat import order_two

    law = heat.GaussianMixture([-2, 2], [1, 0.3], [0.4, 0.6])
    error = heat.leading_error(law, x, horizon)
    monkeypatch.setattr(order_two, "_TIMES", 60)
    monkeypatch.setattr(order_two, "_STEP", 0.07)
    finer = heat.leading_error(law, x, horizon)
    assert error == pytest.approx(finer, rel=1e-5, abs=1e-9)


def test_translation_moves_everything():
    law = LAWS["uneven"]
    moved = heat.GaussianMixture(law.means + 7, law.variances, law.weights)
    for function in (heat.acceleration, heat.jerk):
        assert function(moved, x + 7) == pytest.approx(function(law, x), abs=1e-12)


@pytest.mark.parametrize("order", [0, -1, 1.5, "2", True])
def test_bad_order(order):
    with pytest.raises(ValueError, match="order"):
        LAWS["uneven"].log_derivatives(x, order)


@pytest.mark.parametrize("function", [heat.acceleration, heat.jerk])
class TestBadInput:
    def test_law(self, function):
        with pytest.raises(ValueError, match="law must be a GaussianMixture"):
            function("normal", x)

    @pytest.mark.parametrize("place", [np.nan, np.inf, 1e200, "a"])
    def test_place(self, function, place):
        with pytest.raises(ValueError, match="x"):
            function(LAWS["uneven"], place)


@pytest.mark.parametrize("horizon", [0, -1, np.nan, np.inf, "1"])
def test_bad_horizon(horizon):
    with pytest.raises(ValueError, match="horizon"):
        heat.leading_error(LAWS["uneven"], x, horizon)


def test_place_of_the_leading_error_must_be_finite():
    with pytest.raises(ValueError, match="x"):
        heat.leading_error(LAWS["uneven"], np.nan, 1.0)
