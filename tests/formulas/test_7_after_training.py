"""The formula of the chapter on training."""

from itertools import combinations

import numpy as np
from means import frame, mean, variables
from printed import formula
from sympy import QQ


@formula(
    "prop-row-variance",
    r"\sigma_{\mathrm{row}}^2 = \Big( 1 - \frac1m \Big) (1 - \bar c) .",
)
def test_variance_within_a_row(rng):
    m, n = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    # Tokens over sqrt(n), and weights times sqrt(n), are rational and standard normal.
    X = np.array([frame(rng, 1, n)[0] for _ in range(m)])
    Q, K = variables((n, n), (n, n))
    scores = X @ Q @ (X @ K).T  # times sqrt(n), so that the variance of each is n
    cosines = [X[i] @ X[j] for i, j in combinations(range(m), 2)]
    c = sum(cosines) / len(cosines)
    for row in scores:
        assert all(mean(p**2) == n for p in row)
        variance = sum(p**2 for p in row) * QQ(1, m) - (sum(row) * QQ(1, m)) ** 2
        assert mean(variance) / n == (1 - QQ(1, m)) * (1 - c)
