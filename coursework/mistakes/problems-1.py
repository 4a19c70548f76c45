"""Typical wrong answers to set 1: why, which checks they lose, the code."""

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
    bent = np.mean(np.square(u), axis=-1) + (c * u**2).mean(axis=-1)
    joint = (c**2 * u**2).mean(-1) / 2 - m2 * np.mean(np.square(u), -1) / 2
    bent = bend * (bent + joint) + bend**2 * np.var(np.square(u), axis=-1) / 2
    return bent + np.mean(u, axis=-1) + m2 / 2 + m3 / 6 + m4 / 24
""",
        ),
        (
            "is the polynomial of plain weights, without the bend",
            ["log-mean-value"],
            """
def log_mean(u):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3, m4 = np.var(u, axis=-1), (c**3).mean(-1), (c**4).mean(-1)
    return np.mean(u, axis=-1) + m2 / 2 + m3 / 6 + (m4 - 3 * m2**2) / 24
""",
        ),
        (
            "is the function and not its polynomial",
            ["log-mean-value"],
            "def log_mean(u):\n"
            "    return np.log(np.exp(u + bend * np.square(u)).mean(axis=-1))\n",
        ),
    ],
    "log-seen": [
        (
            "is the polynomial of plain weights, without the bend",
            ["log-seen-two", "log-seen-any"],
            """
def log_seen(u, q):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3 = ((c**r).mean(axis=-1) for r in (2, 3))
    return np.log(c.shape[-1]) - q * m2 / 2 - q * (q + 1) * m3 / 6
""",
        ),
        (
            "has the sign of the entropy and neither factor of q",
            ["log-seen-two", "log-seen-any"],
            """
def log_seen(u, q):
    c = u - np.mean(u, axis=-1, keepdims=True)
    m2, m3 = ((c**r).mean(axis=-1) for r in (2, 3))
    bent = bend * (c * np.square(u)).mean(axis=-1)
    return np.log(c.shape[-1]) - m2 / 2 - m3 / 6 - bent
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
        bent = q * bend * (c * np.square(u)).mean(axis=-1)
        return np.log(c.shape[-1]) + rest / np.float64(1 - q) - bent
""",
        ),
        (
            "is derived for q = 2 alone",
            ["log-seen-any"],
            """
def log_seen(u, q):
    c = u - np.mean(u, axis=-1, keepdims=True)
    bent = 2 * bend * (c * np.square(u)).mean(axis=-1)
    return np.log(c.shape[-1]) - (c**2).mean(axis=-1) - (c**3).mean(axis=-1) - bent
""",
        ),
    ],
    "temperature": [
        (
            "is off by ten times the tolerance",
            ["temperature-predicted", "temperature-found"],
            """
def temperature():
    y = np.array(row)

    def excess(tau):
        p = np.exp((y - y.max()) / tau)
        return p.sum() ** 2 / (p**2).sum() - share * len(y)

    found = optimize.brentq(excess, 0.2, 100, xtol=1e-12)
    guess = np.sqrt(y.var() / -np.log(share))
    return guess * (1 + 1e-5), found * (1 + 2e-7)
""",
        ),
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
            "bends the first order only",
            ["nudged-value", "nudged-masked"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    d = u - s @ u
    v, skew = s @ d**2, s @ d**3
    bent = bend * (u**2 - s @ u**2)
    return s * (1 + d + bent + (d**2 - v) / 2 + (d**3 - 3 * v * d - skew) / 6)
""",
        ),
        (
            "returns the weights of z",
            ["nudged-value", "nudged-masked"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    return s / s.sum()
""",
        ),
        (
            "forms all pairs of keys",
            ["nudged-memory"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    d = (u[:, None] - u) @ s
    v, skew = s @ d**2, s @ d**3
    bent = bend * (u**2 - s @ u**2)
    plain = 1 + d + (d**2 - v) / 2 + (d**3 - 3 * v * d - skew) / 6
    return s * (plain + bent + d * bent - s @ (d * bent))
""",
        ),
        (
            "centers with the weights 1/m, as at zero",
            ["nudged-value", "nudged-masked", "nudged-memory"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    d = u - u.mean()
    v, skew = np.mean(d**2), np.mean(d**3)
    bent = bend * (u**2 - s @ u**2)
    plain = 1 + d + (d**2 - v) / 2 + (d**3 - 3 * v * d - skew) / 6
    return s * (plain + bent + d * bent - s @ (d * bent))
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
    bent = bend * (u**2 - s @ u**2)
    rest = (d**2 - v) / 2 + (d**3 - 3 * v * d - skew) / 6
    return s + first + s * (rest + bent + d * bent - s @ (d * bent))
""",
        ),
        (
            "loses the factors of Taylor's formula",
            ["nudged-value", "nudged-masked"],
            """
def nudged(z, u):
    s = np.exp(z - np.max(z))
    s = s / s.sum()
    d = u - s @ u
    v, skew = s @ d**2, s @ d**3
    bent = bend * (u**2 - s @ u**2)
    plain = 1 + d + (d**2 - v) + (d**3 - 3 * v * d - skew)
    return s * (plain + bent + d * bent - s @ (d * bent))
""",
        ),
    ],
    "coldest-two": [
        (
            "takes the other root",
            ["coldest-bound", "coldest-value"],
            """
def coldest_two(y):
    c = np.asarray(y) - np.mean(y)
    left = 2 * np.mean(c**2) - c**2
    return np.min((-np.sqrt(left[left > 0]) - c[left > 0]) / 2)
""",
        ),
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
            "gives the temperature of degree 2",
            ["coldest-three-value"],
            """
def coldest_three():
    y = np.array(row) - np.mean(row)
    left = 2 * np.mean(y**2) - y**2
    return np.max((np.sqrt(left[left > 0]) - y[left > 0]) / 2)
""",
        ),
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
    diag = np.diag(V)
    moved = own - own.mean() + bend * (diag - diag.mean())
    mean = 1 + diag.mean() * moved / (n * tau0**2)
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
            "forgets what the bend does to the mean",
            ["received-mean"],
            """
def received(V, n, tau0):
    J = np.eye(len(V)) - 1 / len(V)
    own = np.diag(J @ V @ J)
    mean = 1 + np.trace(V) * (own - own.mean()) / (2 * len(V) * n * tau0**2)
    return mean, np.mean(V) * own / (n * tau0**2)
""",
        ),
        (
            "adds the variances of the rows as if they were independent",
            ["received-variance"],
            """
def received(V, n, tau0):
    J = np.eye(len(V)) - 1 / len(V)
    own = np.diag(J @ V @ J)
    diag = np.diag(V)
    moved = (own - own.mean()) / 2 + bend * (diag - diag.mean())
    mean = 1 + diag.mean() * moved / (n * tau0**2)
    return mean, np.trace(V) * own / (len(V) ** 2 * n * tau0**2)
""",
        ),
    ],
    "balanced": [
        (
            "scales plain weights, without the bend",
            ["balanced-value"],
            """
def balanced(Y, tau):
    J = np.eye(len(Y)) - 1 / len(Y)
    u = J @ Y @ J / tau
    return (1 + u + J @ u**2 @ J / 2) / len(Y)
""",
        ),
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
    bent = bend * J @ Y**2 @ J / tau**2
    return (1 + u + bent + u**2 @ J / 2) / len(Y)
""",
        ),
        (
            "squares the matrix instead of its entries",
            ["balanced-value"],
            """
def balanced(Y, tau):
    J = np.eye(len(Y)) - 1 / len(Y)
    u = J @ Y @ J / tau
    bent = bend * J @ Y**2 @ J / tau**2
    return (1 + u + bent + J @ (u @ u) @ J / 2) / len(Y)
""",
        ),
    ],
    "tied-move": [
        (
            "forgets one of the two factors A",
            ["tied-move-value"],
            """
def tied_move(V, key_width, tau):
    return tie * key_width / (len(V) * tau) * V @ (V - V.mean(axis=0))
""",
        ),
        (
            "takes the size of the scores for their mean",
            ["tied-move-value"],
            """
def tied_move(V, key_width, tau):
    return 2 * tie * np.sqrt(key_width) / (len(V) * tau) * V @ (V - V.mean(axis=0))
""",
        ),
    ],
    "exponents": [
        (
            "is right for b = 0 and b = 1 alone",
            ["exponents-value"],
            "def exponents(b):\n    return 0.5, 1 + b**2 / 2\n",
        ),
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
    if tied:
        key = tie * query + np.sqrt(1 - tie**2) * key
    Y = query @ key.swapaxes(1, 2)
    p = np.exp((Y - Y.max(axis=2, keepdims=True)) / tau)
    A = np.eye(len(V)) + p / p.sum(axis=2, keepdims=True) - 1 / len(V)
    return (A @ V @ A.swapaxes(1, 2) - V).mean(axis=0)
""",
        ),
        (
            "ties the keys in full",
            ["mean-move-tied", "mean-move-cold"],
            """
def mean_move(V, key_width, tau, tied, rng):
    normal = rng.standard_normal((2, 20_000, len(V), key_width))
    query, key = np.linalg.cholesky(V) @ normal
    Y = query @ (query if tied else key).swapaxes(1, 2)
    if not tied:
        Y = np.concatenate([Y, -Y])
    p = np.exp((Y - Y.max(axis=2, keepdims=True)) / tau)
    A = np.eye(len(V)) + p / p.sum(axis=2, keepdims=True) - 1 / len(V)
    return (A @ V @ A.swapaxes(1, 2) - V).mean(axis=0)
""",
        ),
        (
            "returns nothing but 0, within every absolute tolerance",
            ["mean-move-untied", "mean-move-tied", "mean-move-cold"],
            "def mean_move(V, key_width, tau, tied, rng):\n    return 0 * V\n",
        ),
        (
            "uses the symmetry for tied keys too",
            ["mean-move-tied", "mean-move-cold"],
            """
def mean_move(V, key_width, tau, tied, rng):
    normal = rng.standard_normal((2, 20_000, len(V), key_width))
    query, key = np.linalg.cholesky(V) @ normal
    if tied:
        key = tie * query + np.sqrt(1 - tie**2) * key
    Y = query @ key.swapaxes(1, 2)
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
    if tied:
        key = tie * query + np.sqrt(1 - tie**2) * key
    Y = query @ key.swapaxes(1, 2)
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
        return 2 * tie * key_width / (len(V) * tau) * V @ J @ V
    V_c = J @ V @ J
    outer = np.outer(np.diag(V), V @ J @ np.diag(V_c)) / (2 * len(V))
    full = np.sum(V_c**2) * V / len(V) ** 2
    return key_width / tau**2 * (full + outer + outer.T)
""",
        ),
    ],
}
