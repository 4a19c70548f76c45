"""Typical wrong answers to set 2: why, which checks they lose, the code."""

SAMPLER = """
def sampler(V, n, key_width, skip, branch, tau0, paths, rng):
    m = len(V)
    k = min(m, n)
    values, vectors = np.linalg.eigh(V)
    root = (vectors * np.sqrt(np.maximum(values, 0)))[:, -k:]
    sketch = wishart_root(k, key_width, paths, rng)
    other = rng.standard_normal(sketch.shape)
    keys = tie * sketch + np.sqrt(1 - tie**2) * other
    scores = root @ sketch @ keys.swapaxes(1, 2) @ root.T
    weights = special.softmax(scores / (tau0 * n), axis=-1)
    mixed = (np.eye(m) + boost * (weights - 1 / m)) @ root * (branch / np.sqrt(n))
    seen = skip * root + mixed @ rng.standard_normal((paths, k, k))
    unseen = mixed @ wishart_root(k, n - k, paths, rng)
    both = np.concatenate([seen, unseen], axis=-1)
    return both @ both.swapaxes(1, 2)
"""

MISTAKES = {
    "log-moments": [
        (
            "gives the limit, −q/n and 2q/n",
            ["log-mean", "log-variance"],
            """
def log_moments(n, skip, branch):
    q = branch**2 * (2 - branch**2)
    return -q / n, 2 * q / n
""",
        ),
        (
            "forgets that the number of degrees of freedom varies",
            ["log-variance"],
            """
def log_moments(n, skip, branch):
    half = n * skip**2 / (2 * branch**2)
    extra = np.arange(0, half + 40 * np.sqrt(half) + 40)
    share = stats.poisson.pmf(extra, half)
    mean = share @ special.psi(n / 2 + extra) - np.log(n / (2 * branch**2))
    return mean, share @ special.polygamma(1, n / 2 + extra)
""",
        ),
        (
            "adds the parameter of the chi-square law to its degrees of freedom",
            ["log-mean", "log-variance"],
            """
def log_moments(n, skip, branch):
    half = n / 2 + n * skip**2 / (2 * branch**2)
    mean = special.psi(half) - np.log(n / (2 * branch**2))
    return mean, special.polygamma(1, half)
""",
        ),
    ],
    "depth": [
        (
            "is off by ten times the tolerance",
            ["depth-value"],
            """
def depth():
    mean = special.psi(width / 2) - np.log(width / 2)
    spread = np.sqrt(special.polygamma(1, width / 2)) * stats.norm.ppf(confidence)
    root = np.sqrt(spread**2 + 4 * mean * np.log(fraction))
    return ((spread + root) / (-2 * mean)) ** 2 * (1 + 1e-5)
""",
        ),
        (
            "waits for the median only",
            ["depth-value"],
            """
def depth():
    return np.log(fraction) / (special.psi(width / 2) - np.log(width / 2))
""",
        ),
        (
            "takes mean and variance from the limit",
            ["depth-value"],
            """
def depth():
    z = stats.norm.ppf(confidence)
    root = np.sqrt(2 * z**2 - 4 * np.log(fraction))
    return width * ((np.sqrt(2) * z + root) / 2) ** 2
""",
        ),
        (
            "takes the lower quantile",
            ["depth-value"],
            """
def depth():
    mean = special.psi(width / 2) - np.log(width / 2)
    spread = np.sqrt(special.polygamma(1, width / 2)) * stats.norm.ppf(confidence)
    root = np.sqrt(spread**2 + 4 * mean * np.log(fraction))
    return ((-spread + root) / (-2 * mean)) ** 2
""",
        ),
    ],
    "carriers": [
        (
            "one less a number near 1 is 0 for late times",
            ["carriers-value"],
            """
def carriers(r, q, T):
    return 1 - stats.norm.cdf(np.sqrt(2 * q * T) - stats.norm.ppf(r))
""",
        ),
        (
            "shifts the mean by half the variance, not by all of it",
            ["carriers-value"],
            """
def carriers(r, q, T):
    return stats.norm.cdf(stats.norm.ppf(r) - np.sqrt(q * T / 2))
""",
        ),
    ],
    "tied-drift": [
        (
            "forgets the transposed term",
            ["tied-drift-value"],
            """
def tied_drift(V, branch, tau0, key_width):
    centered = V - V.mean(axis=0)
    return tie * boost * branch**2 * key_width / (len(V) * tau0) * V @ centered
""",
        ),
        (
            "centers over queries instead of keys",
            ["tied-drift-value"],
            """
def tied_drift(V, branch, tau0, key_width):
    first = (V - V.mean(axis=0)) @ V
    return tie * boost * branch**2 * key_width / (len(V) * tau0) * (first + first.T)
""",
        ),
        (
            "takes γ for γ², and forgets the number of tokens",
            ["tied-drift-value"],
            """
def tied_drift(V, branch, tau0, key_width):
    return 2 * tie * boost * branch * key_width / tau0 * V @ (V - V.mean(axis=0))
""",
        ),
    ],
    "tied-risk": [
        (
            "is off by ten times the tolerance",
            ["tied-risk-value", "tied-risk-edges"],
            """
def tied_risk(delta0, branch, tau0, key_width):
    if tau0 < 0:
        return 0.0
    power = tie * boost * key_width * delta0 / (2 * tau0 * (2 - branch**2))
    return -np.expm1(-power) * (1 + 1e-8)
""",
        ),
        (
            "is the law of weights that are tied in full",
            ["tied-risk-value", "tied-risk-edges"],
            """
def tied_risk(delta0, branch, tau0, key_width):
    if tau0 < 0:
        return 0.0
    return -np.expm1(-boost * key_width * delta0 / (2 * tau0 * (2 - branch**2)))
""",
        ),
        (
            "one less an exponential loses its digits, and no sign is looked at",
            ["tied-risk-edges"],
            """
def tied_risk(delta0, branch, tau0, key_width):
    power = tie * boost * key_width * delta0 / (2 * tau0 * (2 - branch**2))
    return 1 - np.exp(-power)
""",
        ),
        (
            "takes the variance of the noise for half of it",
            ["tied-risk-value", "tied-risk-edges"],
            """
def tied_risk(delta0, branch, tau0, key_width):
    if tau0 < 0:
        return 0.0
    return -np.expm1(-tie * boost * key_width * delta0 / (4 * tau0 * (2 - branch**2)))
""",
        ),
        (
            "takes the noise of a layer without skip connection, q = γ²",
            ["tied-risk-value", "tied-risk-edges"],
            """
def tied_risk(delta0, branch, tau0, key_width):
    if tau0 < 0:
        return 0.0
    return -np.expm1(-tie * boost * key_width * delta0 / (2 * tau0))
""",
        ),
    ],
    "sampler": [
        (
            "gives the unseen part n degrees of freedom",
            ["sampler-law", "sampler-singular"],
            SAMPLER.replace("wishart_root(k, n - k,", "wishart_root(k, n,"),
        ),
        (
            "draws all weights",
            ["sampler-lean"],
            """
def sampler(V, n, key_width, skip, branch, tau0, paths, rng):
    m, k = len(V), min(len(V), n)
    values, vectors = np.linalg.eigh(V)
    x = np.zeros((m, n))
    x[:, :k] = (vectors * np.sqrt(n * np.maximum(values, 0)))[:, -k:]
    return with_weights(x, key_width, skip, branch, tau0, paths, rng)
""",
        ),
        (
            "asks for a V with eigenvalues well above 0",
            ["sampler-singular"],
            SAMPLER.replace(
                "    values, vectors",
                "    np.linalg.cholesky(V - 1e-9 * np.eye(m))\n    values, vectors",
            ),
        ),
        (
            "draws keys of their own",
            ["sampler-law", "sampler-singular"],
            SAMPLER.replace("keys = tie * sketch", "keys = 0 * sketch"),
        ),
        (
            "ties the keys in full, as if κ were 1",
            ["sampler-law", "sampler-singular"],
            SAMPLER.replace("tie * sketch + np.sqrt(1 - tie**2) * other", "sketch"),
        ),
        (
            "does not multiply attention by α",
            ["sampler-law", "sampler-singular"],
            SAMPLER.replace("boost * (", "("),
        ),
        (
            "draws the values for all n directions",
            ["sampler-lean"],
            SAMPLER.replace(
                "unseen = mixed @ wishart_root(k, n - k, paths, rng)",
                "unseen = mixed @ rng.standard_normal((paths, k, n - k))",
            ),
        ),
        (
            "draws one Wishart matrix for the branch, without what the skip sees",
            ["sampler-law"],
            SAMPLER.replace(
                "skip * root + mixed @ rng.standard_normal((paths, k, k))",
                "skip * root + 0 * mixed",
            ).replace("wishart_root(k, n - k,", "wishart_root(k, n,"),
        ),
    ],
    "distance": [
        (
            "halves the gain",
            ["distance-value"],
            """
def distance(delta, branch, tau0, gain):
    square = branch**2
    drift = square * (boost / tau0) ** 2 / 16 * delta**3 + gain * delta / 2
    linear = 2 * square * (2 - square) * delta**2
    return drift, linear + (square * boost / tau0) ** 2 / 4 * delta**4
""",
        ),
        (
            "gives the noise the power of the drift, γ² for γ⁴",
            ["distance-value"],
            """
def distance(delta, branch, tau0, gain):
    square = branch**2
    drift = square * (boost / tau0) ** 2 / 16 * delta**3 + gain * delta
    linear = 2 * square * (2 - square) * delta**2
    return drift, linear + square * (boost / tau0) ** 2 / 4 * delta**4
""",
        ),
        (
            "takes α for α² in the noise of attention",
            ["distance-value"],
            """
def distance(delta, branch, tau0, gain):
    square = branch**2
    drift = square * (boost / tau0) ** 2 / 16 * delta**3 + gain * delta
    linear = 2 * square * (2 - square) * delta**2
    return drift, linear + square**2 * boost / (4 * tau0**2) * delta**4
""",
        ),
    ],
    "explosion": [
        (
            "is the formula without a gain",
            ["explosion-value", "explosion-regimes"],
            """
def explosion(delta0, branch, tau0, gain):
    square = branch**2
    if square >= 0.5:
        return 0.0
    y = square * (boost * delta0 / tau0) ** 2 / (8 * (2 - square))
    return special.betainc(0.5, 1 / (4 * square) - 0.5, y / (1 + y))
""",
        ),
        (
            "forgets that infinity must be reached: γ² from ½ on is no exception",
            ["explosion-regimes"],
            """
def explosion(delta0, branch, tau0, gain):
    square = branch**2
    start = 0.5 * (1 - gain / (square * (2 - square)))
    if start <= 0:
        return 1.0
    y = square * (boost * delta0 / tau0) ** 2 / (8 * (2 - square))
    return special.betainc(start, abs(1 / (4 * square) - 0.5), y / (1 + y))
""",
        ),
        (
            "puts the gain into the exponent at infinity as well",
            ["explosion-value", "explosion-regimes"],
            """
def explosion(delta0, branch, tau0, gain):
    square = branch**2
    limit = square * (2 - square)
    start, end = 0.5 * (1 - gain / limit), 1 / (4 * square) - 0.5 + gain / limit
    if end <= 0 or start <= 0:
        return float(end > 0)
    y = square * (boost * delta0 / tau0) ** 2 / (8 * (2 - square))
    return special.betainc(start, end, y / (1 + y))
""",
        ),
    ],
    "certain": [
        (
            "takes half of it, as if the noise had the variance q",
            ["certain-value"],
            "def certain(branch):\n    return branch**2 * (2 - branch**2) / 2\n",
        ),
        (
            "is the first order in γ²",
            ["certain-value"],
            "def certain(branch):\n    return 2 * branch**2\n",
        ),
    ],
    "temperature": [
        (
            "takes 1 for the squared distance",
            ["temperature-value"],
            """
def temperature():
    p = branch_square
    z = special.betaincinv((1 - multiple) / 2, 1 / (4 * p) - 0.5, chance)
    return boost * np.sqrt(p * (1 - z) / (8 * (2 - p) * z))
""",
        ),
        (
            "leaves the gain out",
            ["temperature-value"],
            """
def temperature():
    p = branch_square
    z = special.betaincinv(0.5, 1 / (4 * p) - 0.5, chance)
    return 2 * boost * np.sqrt(p * (1 - z) / (8 * (2 - p) * z))
""",
        ),
    ],
    "collapse": [
        (
            "is right for one layer of one size alone: s is taken for −1",
            ["collapse-plain", "collapse-tiny"],
            """
def collapse(center, apart, size, M, W):
    x = center + np.exp(-1) * apart
    after = special.softmax(x @ M @ x.T, axis=-1) @ x @ W
    center = after.mean(axis=0)
    norm = np.linalg.norm(after - center)
    return center, (after - center) / norm, np.log(norm) + 3 * (size + 1)
""",
        ),
        (
            "subtracts tokens",
            ["collapse-tiny"],
            """
def collapse(center, apart, size, M, W):
    x = center + np.exp(size) * apart
    after = special.softmax(x @ M @ x.T, axis=-1) @ x @ W
    center = after.mean(axis=0)
    norm = np.linalg.norm(after - center)
    with np.errstate(all="ignore"):
        return center, (after - center) / norm, np.log(norm)
""",
        ),
        (
            "takes the attention for uniform, as it is in the end",
            ["collapse-plain", "collapse-tiny"],
            """
def collapse(center, apart, size, M, W):
    delta = apart @ M @ apart.T
    moved = (delta - delta.mean(axis=1, keepdims=True)) @ apart / len(apart) @ W
    moved = moved - moved.mean(axis=0)
    norm = np.linalg.norm(moved)
    return center @ W, moved / norm, 3 * size + np.log(norm)
""",
        ),
        (
            "takes the differences for quadratic",
            ["collapse-plain", "collapse-tiny"],
            """
def collapse(center, apart, size, M, W):
    x = center + np.exp(size) * apart
    p = special.softmax(np.exp(size) * center @ M @ apart.T)
    moved = (p * (apart @ M @ apart.T)) @ apart @ W
    moved = moved - moved.mean(axis=0)
    norm = np.linalg.norm(moved)
    return (p @ x) @ W, moved / norm, 2 * size + np.log(norm)
""",
        ),
    ],
}
