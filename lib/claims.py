"""Claims with verdicts: what is predicted, what was measured, and whether it holds.

A claim that fails raises, so the page, the tests and the notebook run read one thing.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, as_float, require_count, require_finite, require_flag

#: Environment variable holding the offset that :func:`generator` adds, 0 by default.
SEED_OFFSET = "ATTENTION_LIMIT_SEED_OFFSET"

#: Media type of a verdict as data; outputs have it beside its text and its HTML.
MIME_TYPE = "application/vnd.attention-in-the-limit.verdict+json"

#: Standard errors between a measurement and the edge of its tolerance: a true claim
#: then fails about once in 16,000 runs.
MARGIN = 4.0

# Verdicts by gravity.
_HOLDS, _INCONCLUSIVE, _FAILS = 0, 1, 2


class ClaimFailed(AssertionError):
    """A claim did not come out as stated; the message names it and its numbers.

    The failed verdict itself is ``.verdict``.
    """

    def __init__(self, verdict: Verdict):
        super().__init__(repr(verdict))
        self.verdict = verdict

    def _render_traceback_(self) -> list[str]:
        """Give IPython the sentence alone to print, without the lines of the check."""
        return [f"ClaimFailed: {self}"]

    def __reduce__(self) -> tuple[type[ClaimFailed], tuple[Verdict]]:
        return type(self), (self.verdict,)


@dataclass(frozen=True)
class Verdict:
    """Outcome of :func:`verify`, with a text and an HTML form that say the same.

    Arrays are represented by their worst entry, which ``entry`` names.
    """

    claim: str
    passed: bool
    word: str
    measured: float
    expected: float | None
    tolerance: float | None
    stderr: float | None
    relation: str
    statement: str | None = None
    entry: str = ""

    def numbers(self) -> str:
        """The measured value, its standard error and what was asked of it."""
        unit = self._unit()
        text = f"measured {_rounded(self.measured, unit)}{self.entry}"
        if self.stderr is not None:
            text += f" ± {_rounded(self.stderr, _power_below(self.stderr / 10))} (s.e.)"
        # A hyphen before a number is a minus sign, except in an exponent.
        return re.sub(r"(?<![\w.])-(?=[\d.]|inf)", "−", f"{text}; {self.relation}")

    def _unit(self) -> float:
        """Resolution of the printed value: a tenth of the tolerance, rounded down.

        A one-sided claim has none; a thousandth of its bound stands in.
        """
        if self.tolerance is not None:
            return _power_below(self.tolerance / 10)
        return _power_below(abs(self.expected or self.measured) / 1000)

    @property
    def anchor(self) -> str:
        """Identifier of the verdict on its page."""
        key = hashlib.sha256(f"{self.statement}{self.claim}".encode()).hexdigest()
        return f"verdict-{key[:8]}"

    def __repr__(self) -> str:
        return f"{self.word}: {self.claim}: {self.numbers()}"

    def data(self) -> dict[str, str | None]:
        """The verdict in words: id, word, claim, statement, and numbers as printed."""
        return {
            "id": self.anchor,
            "word": self.word,
            "claim": self.claim,
            "statement": self.statement,
            "numbers": self.numbers(),
        }

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, dict[str, str | None]]:
        """Its data; a kernel adds the text and the HTML."""
        return {MIME_TYPE: self.data()}

    def _repr_html_(self) -> str:
        """HTML form; the claim links to its statement."""
        claim = escape(self.claim)
        if self.statement:
            claim = f'<a href="#{escape(self.statement)}">{claim}</a>'
        return (
            f'<p class="verdict verdict-{self.word.lower()}" id="{self.anchor}">'
            f'<strong class="verdict-word">{self.word}</strong> '
            f'<span class="verdict-claim">{claim}</span> '
            f'<span class="verdict-numbers">{escape(self.numbers())}</span></p>'
        )


def verify(
    claim: str,
    *,
    measured: npt.ArrayLike,
    expected: npt.ArrayLike | None = None,
    tolerance: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    stderr: npt.ArrayLike | None = None,
    refuted: bool = False,
    statement: str | None = None,
) -> Verdict:
    r"""Compare a measurement with a prediction and return the verdict, or raise.

    Two-sided (``expected`` and ``tolerance``): the claim holds iff
    \|measured − expected\| ≤ tolerance, and is inconclusive, which fails, unless
    4·stderr ≤ tolerance. One-sided (``at_least`` or ``at_most``): the measurement
    clears the bound by 4·stderr. With ``refuted=True`` a hypothesis is broken and the
    claim must fail by that same margin.

    Parameters
    ----------
    claim : str
        What is claimed, in one line.
    measured : array_like
        Measured value or values; the entry nearest to failure decides.
    expected, tolerance : array_like, float
        Prediction and its positive tolerance.
    at_least, at_most : float
        One-sided bound.
    stderr : array_like, optional
        Standard error of ``measured``, not negative.
    refuted : bool
        Whether the claim is expected to fail.
    statement : str, optional
        Label of the statement on the page that the claim belongs to.

    Returns
    -------
    Verdict
        With ``.passed`` True; its word is HOLDS, or REFUTED where that was expected.

    Raises
    ------
    ValueError
        When it is not said what to compare with, or a tolerance, bound or standard
        error makes no sense.
    ClaimFailed
        When the verdict is another one, a NaN or an infinity included; the message
        says *inconclusive* where noise is too large to tell.
    """
    relation, target, tolerance = _relation(expected, tolerance, at_least, at_most)
    if not isinstance(claim, str) or not claim.strip():
        raise ValueError(f"claim must be a sentence, got {claim!r}")
    values = as_float("measured", measured)
    if values.size == 0:
        raise ValueError(f"measured is empty for the claim {claim!r}")
    noise = _standard_error(stderr)
    refuted = require_flag("refuted", refuted)
    if not isinstance(statement, str | None):
        raise ValueError(f"statement must be a label, got {statement!r}")
    values, target, noise = _of_one_shape(values, target, noise)
    # Distance inside the claimed region; negative outside of it. What leaves the
    # float range is infinitely far.
    with np.errstate(over="ignore"):
        margin = MARGIN * noise
        if tolerance is not None:
            inside = tolerance - np.abs(values - target)
        else:
            inside = (values - target) * (1 if at_least is not None else -1)
    if refuted:
        inside = -inside
    status = _status(inside, margin, None if refuted else tolerance, refuted)
    status = np.where(np.isfinite(values), status, _FAILS)
    # The worst entry: the gravest verdict, then the least distance to spare.
    slack = np.where(status == status.max(), inside - margin, np.inf)
    # Entries are as bad where they differ by a tenth of what is printed.
    worst = _first_smallest(
        slack, (tolerance or float(np.abs(target).max()) / 100) / 100
    )
    word = ("REFUTED" if refuted else "HOLDS", "INCONCLUSIVE", "FAILS")[status[worst]]
    if values.ndim:
        relation += f" (worst of {values.size} entries)"
    verdict = Verdict(
        claim=claim,
        passed=bool(status[worst] == _HOLDS),
        word=word,
        measured=float(values[worst]),
        expected=float(target[worst]),
        tolerance=tolerance,
        stderr=None if stderr is None else float(noise[worst]),
        relation=relation.format(float(target[worst])),
        statement=statement,
        entry=f" at [{', '.join(map(str, worst))}]" if worst else "",
    )
    if not verdict.passed:
        raise ClaimFailed(verdict)
    return verdict


class Order(NamedTuple):
    """Exponent of a power law and its standard error."""

    order: float
    stderr: float


def convergence_order(
    sizes: npt.ArrayLike, errors: npt.ArrayLike, stderr: npt.ArrayLike | None = None
) -> Order:
    r"""Exponent p of ``errors`` ~ ``sizes``\ :sup:`p` by least squares on logarithms.

    Parameters
    ----------
    sizes : array_like, shape (k,)
        Positive, at least five, the largest at least 8 times the smallest.
    errors : array_like, shape (k,)
        Positive errors at these sizes.
    stderr : array_like, shape (k,), optional
        Their positive standard errors. With them the fit is weighted; without, the
        standard error is the regression's own, times :math:`t_{0.975}(k-2)/1.96`, so
        that few sizes are not trusted too much.

    Returns
    -------
    Order
        ``(order, stderr)``; −1 for an error that falls as 1/size.

    Raises
    ------
    ValueError
        For too few sizes, too narrow a range, or an error that is not positive.
    """
    from scipy.special import stdtrit

    x, y = _log_pairs(sizes, errors)
    if x.size < 5:
        raise ValueError(f"sizes must be at least five, got {x.size}")
    if np.ptp(x) < np.log(8) * (1 - 1e-12):
        raise ValueError(
            f"sizes must span a factor of at least 8, got {np.exp(np.ptp(x)):.3g}"
        )
    weights, scale = np.ones_like(x), 0.0
    if stderr is not None:
        noise = require_finite("stderr", as_float("stderr", stderr))
        if noise.shape != x.shape or (noise <= 0).any():
            raise ValueError(f"stderr must be {x.size} positive numbers, got {noise}")
        # 1 / variance of the logarithm, but for the factor e^scale.
        weights = 2 * (y - np.log(noise))
        scale = weights.max()
        weights = np.exp(weights - scale)
    x = x - np.average(x, weights=weights)
    spread = np.sum(weights * x**2)
    if stderr is not None:
        with np.errstate(over="ignore", divide="ignore"):
            own = spread**-0.5 * np.exp(-scale / 2)
        if not np.isfinite(own):
            raise ValueError("stderr is too large or too uneven next to errors")
        return Order(float(np.sum(weights * x * y) / spread), float(own))
    order = np.sum(weights * x * y) / spread
    residual = y - np.average(y) - order * x
    freedom = x.size - 2
    own = np.sqrt(np.sum(residual**2) / freedom / spread)
    return Order(float(order), float(own * stdtrit(freedom, 0.975) / 1.96))


def local_orders(sizes: npt.ArrayLike, errors: npt.ArrayLike) -> Array:
    """Exponents between neighboring sizes, shape (k − 1,): a straight line repeats one.

    Raises ValueError as :func:`convergence_order`, which needs more sizes.
    """
    x, y = _log_pairs(sizes, errors)
    if x.size < 2:
        raise ValueError(f"sizes must be at least two, got {x.size}")
    return np.diff(y) / np.diff(x)


def generator(key: int) -> np.random.Generator:
    """Random generator of one claim: ``default_rng([offset, key])``.

    The offset is read from the environment variable ``ATTENTION_LIMIT_SEED_OFFSET``,
    0 by default, so that all claims can be run again under fresh seeds. This is the
    one sanctioned piece of global state.

    Raises ValueError for a key or an offset that is not an integer ≥ 0.
    """
    require_count("key", key, least=0)
    text = os.environ.get(SEED_OFFSET, "0")
    if not text.isdecimal():
        raise ValueError(f"{SEED_OFFSET} must be an integer ≥ 0, got {text!r}")
    return np.random.default_rng([int(text), key])


def _relation(
    expected: npt.ArrayLike | None,
    tolerance: float | None,
    at_least: float | None,
    at_most: float | None,
) -> tuple[str, Array, float | None]:
    """Template of what is asked, its target, and the checked tolerance."""
    given = [x is not None for x in (expected, at_least, at_most)]
    if sum(given) != 1:
        raise ValueError("give exactly one of expected, at_least and at_most")
    if expected is not None:
        if tolerance is None:
            raise ValueError("tolerance is missing: a claim needs one")
        number = require_finite("tolerance", as_float("tolerance", tolerance))
        if number.ndim or number <= 0:
            raise ValueError(f"tolerance must be a positive number, got {tolerance!r}")
        target = require_finite("expected", as_float("expected", expected))
        return (
            f"expected {{:.6g}}, tolerance {float(number):.3g}",
            target,
            float(number),
        )
    if tolerance is not None:
        raise ValueError(f"tolerance belongs with expected, got {tolerance!r}")
    name = "at_least" if at_least is not None else "at_most"
    bound = at_least if at_least is not None else at_most
    target = require_finite(name, as_float(name, np.asarray(bound)))
    if target.ndim:
        raise ValueError(f"{name} must be one number, got shape {target.shape}")
    return name.replace("_", " ") + " {:.6g}", target, None


def _standard_error(stderr: npt.ArrayLike | None) -> Array:
    noise = require_finite(
        "stderr", as_float("stderr", 0 if stderr is None else stderr)
    )
    if (noise < 0).any():
        raise ValueError(f"stderr must not be negative, got {stderr!r}")
    return noise


def _first_smallest(values: Array, tie: float) -> tuple[int, ...]:
    """Index of the first value within ``tie`` of the smallest one, or of the first NaN.

    Which of many entries is smallest by rounding alone differs between machines.
    """
    least = values.min()
    place = np.argmax(values <= least + tie) if np.isfinite(least) else values.argmin()
    return tuple(int(i) for i in np.unravel_index(place, values.shape))


def _of_one_shape(values: Array, target: Array, noise: Array) -> list[Array]:
    shapes = [array.shape for array in (values, target, noise)]
    try:
        fitting = list(np.broadcast_arrays(values, target, noise))
    except ValueError as error:
        raise ValueError(
            f"measured, expected and stderr do not fit together: shapes {shapes}"
        ) from error
    if not fitting[0].size:
        raise ValueError(f"expected and stderr must not be empty, got shapes {shapes}")
    return fitting


def _status(
    inside: Array, margin: Array, tolerance: float | None, strict: bool
) -> npt.NDArray[np.int64]:
    """Verdict on each entry, ``inside`` its distance into the wanted region."""
    if tolerance is not None:  # two-sided: the noise must fit in the tolerance
        settled = np.where(inside >= 0, _HOLDS, _FAILS)
        return np.where(margin > tolerance, _INCONCLUSIVE, settled)
    cleared = inside > margin if strict else inside >= margin
    missed = np.where(inside > -margin, _INCONCLUSIVE, _FAILS)
    return np.where(cleared, _HOLDS, missed)


def _log_pairs(sizes: npt.ArrayLike, errors: npt.ArrayLike) -> tuple[Array, Array]:
    """Logarithms of sizes and errors, after their checks."""
    x, y = as_float("sizes", sizes), as_float("errors", errors)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"sizes and errors must be two lists of one length,"
            f" got shapes {x.shape} and {y.shape}"
        )
    for name, array in (("sizes", x), ("errors", y)):
        if (require_finite(name, array) <= 0).any():
            raise ValueError(f"{name} must be positive, got {array.min():.3g}")
    if (np.diff(np.sort(x)) == 0).any():
        raise ValueError("sizes must differ from one another")
    return np.log(x), np.log(y)


def _power_below(scale: float) -> float:
    """Largest power of ten that does not exceed ``scale``; 0 where there is none."""
    # The guard keeps a tenth of 0.1 at the power 0.01 that it is meant to be.
    return 10.0 ** np.floor(np.log10(scale) + 1e-9) if 0 < scale < np.inf else 0.0


def _rounded(value: float, unit: float) -> str:
    """``value`` to the resolution ``unit``, '0 (to unit)' where nothing is left."""
    # Rounding up would leave the float range.
    if not abs(value) < 1e300 or not unit:
        return f"{value:g}"
    if abs(value) < unit / 2:
        return f"0 (to {unit:.0e})".replace("e-0", "e-").replace("e+00", "")
    decimals = -int(round(np.log10(unit)))
    if decimals > 6:
        digits = int(np.floor(np.log10(abs(value)))) + decimals + 1
        return f"{value:.{min(max(digits, 1), 4)}g}"
    return f"{round(value, decimals):.{max(decimals, 0)}f}"
