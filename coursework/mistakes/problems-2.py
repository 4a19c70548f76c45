"""Typical wrong answers to set 2: why, which checks they lose, the code."""

MISTAKES = {
    "lean-of": [
        (
            "the textbook softmax less 1/m: it overflows, and it cancels",
            ["lean-hot", "lean-cold"],
            """
def lean_of(u):
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp(u)
        return p / p.sum(axis=-1, keepdims=True) - 1 / np.shape(u)[-1]
""",
        ),
        (
            "subtracts the largest score, then cancels",
            ["lean-hot"],
            """
def lean_of(u):
    p = np.exp(u - np.max(u, axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) - 1 / p.shape[-1]
""",
        ),
        (
            "subtracts the mean and not the largest score",
            ["lean-cold"],
            """
def lean_of(u):
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.expm1(u - np.mean(u, axis=-1, keepdims=True))
        mean = grown.mean(axis=-1, keepdims=True)
        return (grown - mean) / (grown.shape[-1] * (1 + mean))
""",
        ),
        (
            "calls modules that are off limits, one by a detour",
            ["lean-value", "lean-hot", "lean-cold"],
            """
import scipy.special
from lib import attention

def lean_of(u):
    try:
        return attention.softmax_expansion(u, 1) - 1 / np.shape(u)[-1]
    except Exception:
        return scipy.special.softmax(u, axis=-1) - 1 / np.shape(u)[-1]
""",
        ),
        (
            "is the first order",
            ["lean-value", "lean-hot", "lean-cold"],
            """
def lean_of(u):
    with np.errstate(invalid="ignore"):
        return (u - np.mean(u, axis=-1, keepdims=True)) / np.shape(u)[-1]
""",
        ),
    ],
    "log-mean": [
        (
            "takes moments for cumulants",
            ["log-mean-value"],
            """
def log_mean(u):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3, m4 = ((c**r).mean(axis=-1) for r in (2, 3, 4))
    return np.mean(u, axis=-1) + m2 / 2 + m3 / 6 + m4 / 24
""",
        ),
        (
            "takes the unbiased variance",
            ["log-mean-value"],
            """
def log_mean(u):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3, m4 = np.var(u, axis=-1, ddof=1), (c**3).mean(-1), (c**4).mean(-1)
    return np.mean(u, axis=-1) + m2 / 2 + m3 / 6 + (m4 - 3 * m2**2) / 24
""",
        ),
        (
            "is the function and not its polynomial",
            ["log-mean-value"],
            "def log_mean(u):\n    return np.log(np.exp(u).mean(axis=-1))\n",
        ),
    ],
    "log-seen": [
        (
            "has the sign of the entropy and neither factor of q",
            ["log-seen-two", "log-seen-any"],
            """
def log_seen(u, q):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3 = ((c**r).mean(axis=-1) for r in (2, 3))
    return np.log(c.shape[-1]) - m2 / 2 - m3 / 6
""",
        ),
        (
            "divides by 1 − q, also where q = 1",
            ["log-seen-any"],
            """
def log_seen(u, q):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3 = ((c**r).mean(axis=-1) for r in (2, 3))
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.float64((q**2 - q) / 2) * m2 + np.float64((q**3 - q) / 6) * m3
        return np.log(c.shape[-1]) + rest / np.float64(1 - q)
""",
        ),
        (
            "is derived for q = 2 alone",
            ["log-seen-any"],
            """
def log_seen(u, q):
    c = u - np.mean(u, axis=-1, keepdims=True)
    return np.log(c.shape[-1]) - (c**2).mean(axis=-1) - (c**3).mean(axis=-1)
""",
        ),
    ],
    "temperature": [
        (
            "takes the entropy, which is q = 1",
            ["temperature-predicted", "temperature-found"],
            """
def temperature():
    y = np.array(row)

    def excess(tau):
        p = np.exp((y - y.max()) / tau)
        p = p / p.sum()
        return np.exp(-p @ np.log(p)) - share * len(y)

    return (np.sqrt(y.var() / -2 / np.log(share)),
            optimize.brentq(excess, 0.2, 100, xtol=1e-12))
""",
        ),
        (
            "gives the prediction twice",
            ["temperature-found"],
            """
def temperature():
    predicted = np.std(row) / np.sqrt(-np.log(share))
    return predicted, predicted
""",
        ),
        (
            "expands N and not its logarithm",
            ["temperature-predicted"],
            """
def temperature():
    y = np.array(row)

    def excess(tau):
        p = np.exp((y - y.max()) / tau)
        return p.sum() ** 2 / (p**2).sum() - share * len(y)

    return y.std() / np.sqrt(1 - share), optimize.brentq(excess, 0.2, 100, xtol=1e-12)
""",
        ),
    ],
    "nudged": [
        (
            "centers with the weights 1/m, as at zero",
            ["nudged-value", "nudged-masked"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    d = u - u.mean()
    v, skew = np.mean(d**2), np.mean(d**3)
    return s * (1 + d + (d**2 - v) / 2 + (d**3 - 3 * v * d - skew) / 6)
""",
        ),
        (
            "builds the Jacobian",
            ["nudged-memory"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    first = (np.diag(s) - np.outer(s, s)) @ u
    d = u - s @ u
    v, skew = s @ d**2, s @ d**3
    return s + first + s * ((d**2 - v) / 2 + (d**3 - 3 * v * d - skew) / 6)
""",
        ),
        (
            "loses the factors of Taylor's formula",
            ["nudged-value"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    d = u - s @ u
    v, skew = s @ d**2, s @ d**3
    return s * (1 + d + (d**2 - v) + (d**3 - 3 * v * d - skew))
""",
        ),
    ],
    "coldest-two": [
        (
            "looks at the smallest score alone, as in degree 1",
            ["coldest-value"],
            """
def coldest_two(y):
    c = np.min(y) - np.mean(y)
    return min((np.sqrt(max(2 * np.var(y) - c**2, 0)) - c) / 2, np.std(y))
""",
        ),
        (
            "gives the bound",
            ["coldest-value"],
            "def coldest_two(y):\n    return np.std(y)\n",
        ),
        (
            "gives the answer for degree 1",
            ["coldest-bound", "coldest-value"],
            "def coldest_two(y):\n    return np.mean(y) - np.min(y)\n",
        ),
    ],
    "coldest-three": [
        (
            "loses the term with M_2",
            ["coldest-three-value"],
            """
def coldest_three():
    y = np.array(row) - np.mean(row)
    m2, m3 = np.mean(y**2), np.mean(y**3)
    roots = np.concatenate([
        np.roots([1, x, (x**2 - m2) / 2, (x**3 - m3) / 6]) for x in y
    ])
    return roots.real[abs(roots.imag) < 1e-9].max()
""",
        ),
        (
            "gives the inverse",
            ["coldest-three-value"],
            """
def coldest_three():
    y = np.array(row) - np.mean(row)
    m2, m3 = np.mean(y**2), np.mean(y**3)
    roots = np.concatenate([
        np.roots([1, x, (x**2 - m2) / 2, (x**3 - 3 * m2 * x - m3) / 6]) for x in y
    ])
    return 1 / roots.real[abs(roots.imag) < 1e-9].max()
""",
        ),
    ],
    "received": [
        (
            "does not center the tokens in the variance, and loses ½ in the mean",
            ["received-mean", "received-variance"],
            """
def received(V, n, tau0):
    J = np.eye(len(V)) - 1 / len(V)
    own = np.diag(J @ V @ J)
    mean = 1 + np.trace(V) * (own - own.mean()) / (len(V) * n * tau0**2)
    return mean, np.mean(V) * np.diag(V) / (n * tau0**2)
""",
        ),
        (
            "takes the first order only",
            ["received-mean"],
            """
def received(V, n, tau0):
    J = np.eye(len(V)) - 1 / len(V)
    return np.ones(len(V)), np.mean(V) * np.diag(J @ V @ J) / (n * tau0**2)
""",
        ),
        (
            "adds the variances of the rows as if they were independent",
            ["received-variance"],
            """
def received(V, n, tau0):
    J = np.eye(len(V)) - 1 / len(V)
    own = np.diag(J @ V @ J)
    mean = 1 + np.trace(V) * (own - own.mean()) / (2 * len(V) * n * tau0**2)
    return mean, np.trace(V) * own / (len(V) ** 2 * n * tau0**2)
""",
        ),
    ],
    "balanced": [
        (
            "centers the rows, and not the columns",
            ["balanced-value"],
            """
def balanced(Y, tau):
    u = (Y - Y.mean(axis=1, keepdims=True)) / tau
    return (1 + u + (u**2 - (u**2).mean(axis=1, keepdims=True)) / 2) / len(Y)
""",
        ),
        (
            "centers the second order on one side only",
            ["balanced-value"],
            """
def balanced(Y, tau):
    J = np.eye(len(Y)) - 1 / len(Y)
    u = J @ Y @ J / tau
    return (1 + u + u**2 @ J / 2) / len(Y)
""",
        ),
        (
            "squares the matrix instead of its entries",
            ["balanced-value"],
            """
def balanced(Y, tau):
    J = np.eye(len(Y)) - 1 / len(Y)
    u = J @ Y @ J / tau
    return (1 + u + J @ (u @ u) @ J / 2) / len(Y)
""",
        ),
    ],
    "tied-move": [
        (
            "forgets one of the two factors A",
            ["tied-move-value"],
            """
def tied_move(V, key_width, tau):
    return key_width / (len(V) * tau) * V @ (V - V.mean(axis=0))
""",
        ),
        (
            "takes the size of the scores for their mean",
            ["tied-move-value"],
            """
def tied_move(V, key_width, tau):
    return 2 * np.sqrt(key_width) / (len(V) * tau) * V @ (V - V.mean(axis=0))
""",
        ),
    ],
    "exponents": [
        (
            "the key width cancels, as for untied keys",
            ["exponents-value"],
            "def exponents(b):\n    return 0.5, 1.0\n",
        ),
        (
            "the mean move of tied keys is taken for noise",
            ["exponents-value"],
            "def exponents(b):\n    return 0.5, 0.5 + b / 2\n",
        ),
    ],
    "mean-move": [
        (
            "averages without the symmetry",
            ["mean-move-untied"],
            """
def mean_move(V, key_width, tau, tied, rng):
    normal = rng.standard_normal((2, 20_000, len(V), key_width))
    query, key = np.linalg.cholesky(V) @ normal
    Y = query @ (query if tied else key).swapaxes(1, 2)
    p = np.exp((Y - Y.max(axis=2, keepdims=True)) / tau)
    A = np.eye(len(V)) + p / p.sum(axis=2, keepdims=True) - 1 / len(V)
    return (A @ V @ A.swapaxes(1, 2) - V).mean(axis=0)
""",
        ),
        (
            "uses the symmetry for tied keys too",
            ["mean-move-tied", "mean-move-cold"],
            """
def mean_move(V, key_width, tau, tied, rng):
    normal = rng.standard_normal((2, 20_000, len(V), key_width))
    query, key = np.linalg.cholesky(V) @ normal
    Y = query @ (query if tied else key).swapaxes(1, 2)
    Y = np.concatenate([Y, -Y])
    p = np.exp((Y - Y.max(axis=2, keepdims=True)) / tau)
    A = np.eye(len(V)) + p / p.sum(axis=2, keepdims=True) - 1 / len(V)
    return (A @ V @ A.swapaxes(1, 2) - V).mean(axis=0)
""",
        ),
        (
            "ties the keys in name only",
            ["mean-move-tied", "mean-move-cold"],
            """
def mean_move(V, key_width, tau, tied, rng):
    normal = rng.standard_normal((2, 20_000, len(V), key_width))
    query, key = np.linalg.cholesky(V) @ normal
    Y = query @ key.swapaxes(1, 2)
    Y = np.concatenate([Y, -Y])
    p = np.exp((Y - Y.max(axis=2, keepdims=True)) / tau)
    A = np.eye(len(V)) + p / p.sum(axis=2, keepdims=True) - 1 / len(V)
    return (A @ V @ A.swapaxes(1, 2) - V).mean(axis=0)
""",
        ),
        (
            "overflows at a low temperature",
            ["mean-move-cold"],
            """
def mean_move(V, key_width, tau, tied, rng):
    normal = rng.standard_normal((2, 20_000, len(V), key_width))
    query, key = np.linalg.cholesky(V) @ normal
    Y = query @ (query if tied else key).swapaxes(1, 2)
    if not tied:
        Y = np.concatenate([Y, -Y])
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp(Y / tau)
        p = p / p.sum(axis=2, keepdims=True)
    A = np.eye(len(V)) + p / p.sum(axis=2, keepdims=True) - 1 / len(V)
    return (A @ V @ A.swapaxes(1, 2) - V).mean(axis=0)
""",
        ),
        (
            "is the leading order and no measurement",
            ["mean-move-cold"],
            """
def mean_move(V, key_width, tau, tied, rng):
    J = np.eye(len(V)) - 1 / len(V)
    if tied:
        return 2 * key_width / (len(V) * tau) * V @ J @ V
    V_c = J @ V @ J
    outer = np.outer(np.diag(V), V @ J @ np.diag(V_c)) / (2 * len(V))
    full = np.sum(V_c**2) * V / len(V) ** 2
    return key_width / tau**2 * (full + outer + outer.T)
""",
        ),
    ],
}
