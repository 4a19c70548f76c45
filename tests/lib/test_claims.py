"""The verdict rule, its two forms, and the fitted orders."""

import re

import numpy as np
import pytest

from lib.claims import (
    MIME_TYPE,
    SEED_OFFSET,
    ClaimFailed,
    convergence_order,
    generator,
    local_orders,
    verify,
)


def word(**arguments):
    """The verdict as one word, whichever way it comes."""
    try:
        return verify("a claim", **arguments).word
    except ClaimFailed as error:
        return str(error).split(":")[0]


TWO = {"expected": 2.0, "tolerance": 0.1}


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"measured": 2.05, **TWO}, "HOLDS"),
        ({"measured": 2.2, **TWO}, "FAILS"),
        ({"measured": 2.05, **TWO, "stderr": 0.02}, "HOLDS"),
        ({"measured": 2.0, **TWO, "stderr": 0.03}, "INCONCLUSIVE"),
        ({"measured": np.nan, **TWO}, "FAILS"),
        ({"measured": np.inf, "at_least": 1.0}, "FAILS"),
        ({"measured": -np.inf, "at_most": 1.0}, "FAILS"),
        ({"measured": 1.5, "at_least": 1.0, "stderr": 0.1}, "HOLDS"),
        ({"measured": 1.3, "at_least": 1.0, "stderr": 0.1}, "INCONCLUSIVE"),
        ({"measured": 0.9, "at_least": 1.0, "stderr": 0.1}, "INCONCLUSIVE"),
        ({"measured": 0.5, "at_least": 1.0, "stderr": 0.1}, "FAILS"),
        ({"measured": 1.0, "at_most": 1.0}, "HOLDS"),
        ({"measured": 3.0, **TWO, "refuted": True}, "REFUTED"),
        ({"measured": 2.05, **TWO, "refuted": True}, "FAILS"),
        ({"measured": 2.2, **TWO, "stderr": 0.05, "refuted": True}, "INCONCLUSIVE"),
        ({"measured": np.nan, **TWO, "refuted": True}, "FAILS"),
        ({"measured": 1.0, "at_most": 1.0, "refuted": True}, "FAILS"),
        ({"measured": 1.5, "at_most": 1.0, "stderr": 0.1, "refuted": True}, "REFUTED"),
        ({"measured": [2.0, 2.2], **TWO}, "FAILS"),
        ({"measured": [2.0, np.nan], **TWO}, "FAILS"),
        ({"measured": [2.0, 2.09], **TWO, "stderr": [0.03, 0.0]}, "INCONCLUSIVE"),
        ({"measured": [3.0, 2.0], **TWO, "refuted": True}, "FAILS"),
    ],
)
def test_verdict_rule(arguments, verdict):
    assert word(**arguments) == verdict


def test_worst_entry_is_named():
    with pytest.raises(ClaimFailed, match=r"a claim.*at \[0, 1\].*expected 0"):
        verify("a claim", measured=[[0, 5], [1, 0]], expected=0, tolerance=2)


def test_text_and_html_say_the_same():
    verdict = verify("x < y", measured=2.0312, **TWO, stderr=0.02, statement="prop-x")
    html = re.sub("<[^>]+>", "", verdict._repr_html_())
    assert html.replace("&lt;", "<") == f"{verdict.word} x < y {verdict.numbers()}"
    assert repr(verdict) == f"{verdict.word}: x < y: {verdict.numbers()}"
    assert 'href="#prop-x"' in verdict._repr_html_()
    assert verdict._repr_mimebundle_() == {MIME_TYPE: verdict.data()}
    assert verdict.data() == {
        "id": verdict.anchor, "word": verdict.word, "claim": verdict.claim,
        "statement": "prop-x", "numbers": verdict.numbers(),
    }  # fmt: skip
    assert (verdict.passed, verdict.expected, verdict.tolerance) == (True, 2.0, 0.1)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ({"measured": 2.0312, **TWO}, "measured 2.03;"),
        (
            {"measured": 3e-16, "expected": 0, "tolerance": 1e-12},
            "measured 0 (to 1e-13);",
        ),
        ({"measured": 1803.72, "at_least": 200}, "measured 1803.7;"),
        ({"measured": 0.0931, "at_most": 1}, "measured 0.093;"),
    ],
)
def test_numbers_are_rounded_to_what_is_stable(arguments, printed):
    assert printed in repr(verify("a claim", **arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measured": 1, "expected": 1}, "tolerance is missing"),
        ({"measured": 1}, "exactly one"),
        ({"measured": 1, "expected": 1, "at_most": 2, "tolerance": 1}, "exactly one"),
        ({"measured": 1, "at_most": 2, "tolerance": 1}, "tolerance belongs"),
        ({"measured": 1, "expected": 1, "tolerance": 0}, "tolerance must be"),
        ({"measured": 1, "expected": np.nan, "tolerance": 1}, "expected is nan"),
        ({"measured": 1, **TWO, "stderr": -1}, "stderr must not be negative"),
        ({"measured": 1, **TWO, "stderr": np.nan}, "stderr is nan"),
        ({"measured": [], **TWO}, "measured is empty"),
    ],
)
def test_senseless_claims_are_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        verify("a claim", **arguments)


def test_false_alarm_and_miss_rates():
    """At the edge of conclusiveness, 4·stderr = tolerance, over 200,000 measurements.

    A true claim fails with probability P(|N(0,1)| > 4) = 6.3e-5; one that is off by
    twice the tolerance passes as rarely, P(N(0,1) > 4).
    """
    rng, tolerance, runs = np.random.default_rng(3), 1.0, 200_000
    noise = rng.standard_normal(runs) * tolerance / 4
    alarms = np.count_nonzero(np.abs(noise) > tolerance)
    misses = np.count_nonzero(np.abs(noise + 2 * tolerance) <= tolerance)
    assert alarms <= 12.7 + 4 * 12.7**0.5
    assert misses <= 6.4 + 4 * 6.4**0.5
    # verify() is that same rule, entry by entry.
    sample = noise[:300]
    passed = [
        word(measured=x, expected=0, tolerance=1, stderr=0.25) == "HOLDS"
        for x in sample
    ]
    assert passed == list(np.abs(sample) <= tolerance)


def test_order_of_a_power_law_is_exact():
    sizes = np.array([4, 8, 16, 32, 64])
    order, stderr = convergence_order(sizes, 3.0 / sizes)
    assert order == pytest.approx(-1, abs=1e-12) and stderr < 1e-12
    np.testing.assert_allclose(local_orders(sizes, 3.0 / sizes), -1)


@pytest.mark.parametrize("weighted", [True, False])
def test_standard_error_of_the_order_covers_the_truth(weighted):
    """Within 1.96 standard errors in 95 % of 2,000 fits, to 4 binomial s.e."""
    rng, sizes = np.random.default_rng(4), 2.0 ** np.arange(2, 8)
    noise = 0.02 * np.ones(6)
    inside = 0
    for _ in range(2000):
        errors = sizes**-0.5 * np.exp(noise * rng.standard_normal(6))
        given = errors * noise if weighted else None
        order, stderr = convergence_order(sizes, errors, given)
        inside += abs(order + 0.5) <= 1.96 * stderr
    assert inside / 2000 == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 2000) ** 0.5)


@pytest.mark.parametrize(
    ("sizes", "errors", "message"),
    [
        ([1, 2, 4, 8], [1, 1, 1, 1], "at least five"),
        ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], "factor of at least 8"),
        ([1, 2, 4, 8, 16], [1, 1, 1, 1, 0], "errors must be positive"),
        ([1, 2, 4, 8, 16], [1, 1, 1, 1, np.nan], r"errors\[4\] is nan"),
        ([1, 2, 4, 8, 16], [1, 1], "one length"),
        ([1, 1, 4, 8, 16], [1, 1, 1, 1, 1], "differ"),
    ],
)
def test_orders_that_cannot_be_fitted(sizes, errors, message):
    with pytest.raises(ValueError, match=message):
        convergence_order(sizes, errors)


def test_generator_repeats_and_moves_with_the_offset(monkeypatch):
    monkeypatch.delenv(SEED_OFFSET, raising=False)
    first = generator(7).random()
    assert generator(7).random() == first
    assert first == np.random.default_rng([0, 7]).random()
    monkeypatch.setenv(SEED_OFFSET, "3")
    assert generator(7).random() == np.random.default_rng([3, 7]).random()
    monkeypatch.setenv(SEED_OFFSET, "-1")
    with pytest.raises(ValueError, match=SEED_OFFSET):
        generator(7)


def test_entry_named_does_not_depend_on_rounding():
    noise = 1e-16 * np.array([1.0, 3.0, 2.0])
    zero = verify("x", measured=noise, expected=0, tolerance=1e-12)
    assert zero.entry == " at [0]"
    wrong = verify(
        "x", measured=[0.1, 0.9, 0.9 + 1e-15], expected=1, tolerance=1, refuted=False
    )
    assert wrong.measured == 0.1
    with pytest.raises(ClaimFailed, match="measured nan at \\[1\\]"):
        verify("x", measured=[0.0, np.nan, 5.0], expected=0, tolerance=1)
