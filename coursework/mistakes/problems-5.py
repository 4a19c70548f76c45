"""Typical wrong answers to set 5: why, which checks they lose, the code."""

_CONSTANT = """
def constant(V, sigma):
    slope = sigma * np.sqrt({inside})
    g = np.linspace(-12, 12, int(60 * max(slope, 10)))
    weights = np.exp(-(g**2) / 2)
    weights /= weights.sum()
    w, rest = special.expit(slope * g), special.expit(-slope * g)
    u = w**2 * V[0, 0] + 2 * w * rest * V[0, 1] + rest**2 * V[1, 1]
    mean = weights @ u
    return 3 * ({variance}) / (mean + bias) ** 2
"""

_SCORES = """
def scores(V, n, sigma, size, rng):
    m = len(V)
    values, vectors = np.linalg.eigh(V)
    C = vectors * np.sqrt(np.maximum(values, 0))
    {draw}
    return sigma / np.sqrt(n) * C @ p @ C.T
"""

_GAP = """
def gap(V, n, sigma, y, size, rng):
    C = np.linalg.cholesky(V)

    def u(t):
        p = np.sqrt(t)[:, None] * g @ C.T
        s = special.softmax(sigma * np.sqrt(V[0, 0]) * p, axis=1)
        return ((s @ C) ** 2).sum(axis=1)

    g, one = rng.standard_normal((size, len(V))), np.ones(size)
    t, factor = rng.chisquare(n, (2, size)) / n
    {lines}
    return np.mean(special.ndtr(y / np.sqrt(finite)) - special.ndtr(y / np.sqrt(limit)))
"""

_BLIND = """
def blind_width():
    slope = blind_scale * np.sqrt(own_length * (own_length + other_length))
    g = np.linspace(-12, 12, 4001)
    weights = stats.norm.pdf(g) * (g[1] - g[0])
    w = special.expit(slope * g)
    u = w**2 * own_length + (1 - w) ** 2 * other_length
    x = np.linspace(0, 6, 2001)[:, None] / np.sqrt(u)
    score = special.ndtr(x) @ (weights * (g**4 - 6 * g**2 + 3) / 4)
    value = ((3 * x - x**3) * stats.norm.pdf(x) / 4) @ weights
    noise = np.sqrt(np.pi / 2) * np.log(2) / np.sqrt(counted)
    return {result}
"""

_MIXING = """
def mixing(y):
    K, r = y.shape
    sums = (y**2).sum(axis=1)
    return sums.mean() / r, {variance}
"""

_WRITE = """
def write(V, sigma):
    program = Program()
    tokens = {tokens}
    m = len(tokens)
    W_query, W_key, W_value, W_output = (program.matrix() for _ in range(4))
    queries = [program.matmul(W_query, x) for x in tokens]
    keys = [program.matmul(W_key, x) for x in tokens]
    values = [program.matmul(W_output, program.matmul(W_value, x)) for x in tokens]

    def mix(*args):
        A = special.softmax({scale} * np.stack(args[:m]), axis=0)
        return sum(A[j] * args[m + j] for j in range(m))

    return program, [
        program.nonlin(mix, *(program.dot(q, k) for k in keys), *values)
        for q in queries
    ]
"""

_BOUNDED = (
    "[program.nonlin(lambda x: np.clip(x, -50, 50), x, bounded=True)"
    " for x in program.inputs(V)]"
)
_RIGHT = _WRITE.format(tokens=_BOUNDED, scale="sigma")

_BROKEN = """
def broken(kind, V):
    program = Program()
    tokens = program.inputs(V)
    if kind != "unbounded":
        tokens = [program.nonlin(np.tanh, x, bounded=True) for x in tokens]
    m = len(tokens)
    W_query, W_value = program.matrix(), program.matrix()
    W_key = W_query if kind == "tied" else program.matrix()
    {change}
    queries = [program.matmul(W_query, x) for x in tokens]
    keys = [program.matmul(W_key, x) for x in tokens]
    values = [program.matmul(W_output, program.matmul(W_value, x)) for x in tokens]

    def mix(*args):
        A = special.softmax(np.stack(args[:m]), axis=0)
        return sum(A[j] * args[m + j] for j in range(m))

    rows = [program.nonlin(mix, *(program.dot(q, k) for k in keys), *values)
            for q in queries]
    if kind == "stacked":
        {stack}
    return program
"""

_VARIANCES = """
def variances():
    g = np.linspace(-12, 12, 8001)
    weights = stats.norm.pdf(g) * (g[1] - g[0])
    w = special.expit(broken_scale * np.sqrt({slope}) * g)
    mean = weights @ (w**2 * attending + (1 - w) ** 2 * attended)
    return [{tied}, mean, mean, mean]
"""

MISTAKES = {
    "constant": [
        (
            "leaves the bias out",
            ["constant-large", "constant-small"],
            _CONSTANT.format(
                inside="V[0, 0] * (V[0, 0] + V[1, 1] - 2 * V[0, 1])",
                variance="weights @ (u - mean) ** 2",
            ).replace("mean + bias", "mean"),
        ),
        (
            "adds the bias to u before the variance of the mixture, and halves it",
            ["constant-equal", "constant-large", "constant-small"],
            _CONSTANT.format(
                inside="V[0, 0] * (V[0, 0] + V[1, 1] - 2 * V[0, 1])",
                variance="weights @ (u - mean) ** 2 + bias**2",
            ),
        ),
        (
            "is 0.1 for all tokens",
            ["constant-equal", "constant-large", "constant-small"],
            "def constant(V, sigma):\n    return 0.1\n",
        ),
        (
            "forgets that the length of the query scales its scores",
            ["constant-large", "constant-small"],
            _CONSTANT.format(
                inside="V[0, 0] + V[1, 1] - 2 * V[0, 1]",
                variance="weights @ (u - mean) ** 2",
            ),
        ),
        (
            "subtracts the square of the mean, which cancels",
            ["constant-small"],
            _CONSTANT.format(
                inside="V[0, 0] * (V[0, 0] + V[1, 1] - 2 * V[0, 1])",
                variance="weights @ u**2 - mean**2",
            ),
        ),
        (
            "has Gauss-Hermite nodes that miss a steep logistic function",
            ["constant-large"],
            """
def constant(V, sigma):
    slope = sigma * np.sqrt(V[0, 0] * (V[0, 0] + V[1, 1] - 2 * V[0, 1]))
    g, weights = np.polynomial.hermite_e.hermegauss(150)
    weights /= weights.sum()
    w, rest = special.expit(slope * g), special.expit(-slope * g)
    u = w**2 * V[0, 0] + 2 * w * rest * V[0, 1] + rest**2 * V[1, 1]
    mean = weights @ u
    return 3 * (weights @ (u - mean) ** 2) / (mean + bias) ** 2
""",
        ),
    ],
    "tail": [
        (
            "is 1 minus a number that rounds to 1",
            ["tail-value"],
            """
def tail():
    difference = first_length + second_length - 2 * inner_product
    slope = far_scale * np.sqrt(first_length * difference)
    g = np.linspace(-14, 14, 20_001)
    weights = stats.norm.pdf(g) * (g[1] - g[0])
    w = special.expit(slope * g)
    u = w**2 * first_length + (1 - w) ** 2 * second_length
    u += 2 * w * (1 - w) * inner_product
    return max(1 - weights @ stats.norm.cdf(far / np.sqrt(u + bias)), 0.0)
""",
        ),
        (
            "of the normal law with the largest variance",
            ["tail-value"],
            "def tail():\n"
            "    return stats.norm.sf(far / np.sqrt(second_length + bias))\n",
        ),
    ],
    "rate": [
        (
            "takes the length of the token of the row",
            ["rate-random", "rate-flat"],
            "def rate(V, H, sigma, i):\n    return 1 / (2 * (V[i, i] + bias))\n",
        ),
        (
            "forgets that scores can all be 0",
            ["rate-flat"],
            "def rate(V, H, sigma, i):\n"
            "    return 1 / (2 * (V.diagonal().max() + bias))\n",
        ),
        (
            "takes the heads to average the largest variance away",
            ["rate-random", "rate-flat"],
            "def rate(V, H, sigma, i):\n"
            "    return H / (2 * (V.diagonal().max() + bias))\n",
        ),
        (
            "leaves the bias out",
            ["rate-random", "rate-flat"],
            """
def rate(V, H, sigma, i):
    if sigma * V[i, i] == 0:
        return 1 / (2 * V.mean())
    return 1 / (2 * V.diagonal().max())
""",
        ),
    ],
    "winners": [
        (
            "takes the scores of different tokens to be alike",
            ["winners-random", "winners-line"],
            "def winners(V):\n    return np.full(3, 1 / 3)\n",
        ),
        (
            "takes the angles themselves: the sharp corner wins least",
            ["winners-random", "winners-line"],
            """
def winners(V):
    d = np.diag(V)
    squares = d[:, None] + d - 2 * V
    found = []
    for j in range(3):
        k, l = (j + 1) % 3, (j + 2) % 3
        inner = (squares[j, k] + squares[j, l] - squares[k, l]) / 2
        cosine = inner / np.sqrt(squares[j, k] * squares[j, l])
        found.append(np.arccos(np.clip(cosine, -1, 1)) / np.pi)
    return np.array(found)
""",
        ),
        (
            "returns odds that sum to 2",
            ["winners-sum", "winners-random", "winners-line"],
            "def winners(V):\n    return np.array([0.5, 0.5, 1.0])\n",
        ),
        (
            "weighs the tokens by their squared lengths, without their sum",
            ["winners-sum", "winners-random", "winners-line"],
            "def winners(V):\n    return np.diag(V) / np.diag(V).max()\n",
        ),
        (
            "counts draws, where an exact answer was asked for",
            ["winners-random"],
            """
def winners(V):
    values, vectors = np.linalg.eigh(V)
    C = vectors * np.sqrt(np.where(values > 1e-9, values, 0))
    g = np.random.default_rng(1).normal(size=(10_000, 3))
    p = np.bincount((g @ C.T).argmax(axis=1), minlength=3) / 10_000
    return np.where(p == 0, 0, 0.5) if (p == 0).any() else p
""",
        ),
    ],
    "heads": [
        (
            "takes the infinite width",
            ["heads-fewest"],
            """
def heads(u, p, n, kappa):
    mean = p @ u
    return max(1, int(np.ceil(3 * (p @ (u - mean) ** 2) / (mean + bias) ** 2 / kappa)))
""",
        ),
        (
            "rounds down",
            ["heads-fewest"],
            """
def heads(u, p, n, kappa):
    one = 3 * ((1 + 2 / n) * (p @ u**2) - (p @ u) ** 2) / (p @ u + bias) ** 2
    return max(1, int(one / kappa))
""",
        ),
        (
            "leaves the bias out",
            ["heads-fewest"],
            """
def heads(u, p, n, kappa):
    one = 3 * ((1 + 2 / n) * (p @ u**2) / (p @ u) ** 2 - 1)
    return max(1, int(np.ceil(one / kappa)))
""",
        ),
    ],
    "scores": [
        (
            "centers the scores, as if keys and queries were independent on average",
            ["scores-shape", "scores-covariance", "scores-dependence"],
            _SCORES.format(
                draw="""R = np.tril(rng.standard_normal((size, m, m)), -1)
    R += np.sqrt(rng.chisquare(n - np.arange(m), (size, m)))[:, None, :] * np.eye(m)
    keys = tie * R + np.sqrt(1 - tie**2) * rng.standard_normal((size, m, m))
    p = R @ keys.swapaxes(1, 2) - tie * n * np.eye(m)"""
            ),
        ),
        (
            "draws keys of their own",
            ["scores-shape", "scores-covariance", "scores-dependence"],
            _SCORES.format(
                draw="""R = np.tril(rng.standard_normal((size, m, m)), -1)
    R += np.sqrt(rng.chisquare(n - np.arange(m), (size, m)))[:, None, :] * np.eye(m)
    p = R @ rng.standard_normal((size, m, m))"""
            ),
        ),
        (
            "returns normal numbers with the right mean and variance",
            ["scores-covariance", "scores-dependence", "scores-singular"],
            """
def scores(V, n, sigma, size, rng):
    d = np.diag(V)
    deviation = sigma * np.sqrt(np.outer(d, d) + tie**2 * V**2)
    mean = sigma * tie * np.sqrt(n) * V
    return mean + deviation * rng.standard_normal((size, *V.shape))
""",
        ),
        (
            "draws the weights of all n directions at once",
            ["scores-lean"],
            _SCORES.format(
                draw="""p = np.empty((size, m, m))
    for k in range(size):
        G = rng.standard_normal((2, m, n))
        p[k] = G[0] @ (tie * G[0] + np.sqrt(1 - tie**2) * G[1]).T"""
            ),
        ),
        (
            "gives each row of the Bartlett factor n degrees of freedom",
            ["scores-shape", "scores-covariance", "scores-dependence"],
            _SCORES.format(
                draw="""R = np.tril(rng.standard_normal((size, m, m)), -1)
    R += np.sqrt(rng.chisquare(n, (size, m)))[:, None, :] * np.eye(m)
    keys = tie * R + np.sqrt(1 - tie**2) * rng.standard_normal((size, m, m))
    p = R @ keys.swapaxes(1, 2)"""
            ),
        ),
        (
            "draws each row by itself, by the formula for one row",
            ["scores-covariance", "scores-dependence"],
            _SCORES.format(
                draw="""t = rng.chisquare(n, (size, m, 1))
    p = tie * t * np.eye(m)
    p = p + np.sqrt(t * (1 - tie**2)) * rng.standard_normal((size, m, m))"""
            ),
        ),
        (
            "draws all queries and keys",
            ["scores-lean"],
            _SCORES.format(
                draw="""p = np.empty((size, m, m))
    for k in range(size):
        G = rng.standard_normal((m, n))
        p[k] = tie * G @ G.T
        p[k] += np.sqrt(1 - tie**2) * G @ rng.standard_normal((m, n)).T"""
            ),
        ),
        (
            "needs a Cholesky factor, which equal tokens do not have",
            ["scores-singular"],
            """
def scores(V, n, sigma, size, rng):
    m, C = len(V), np.linalg.cholesky(V - 1e-12 * np.eye(len(V)))
    R = np.tril(rng.standard_normal((size, m, m)), -1)
    R += np.sqrt(rng.chisquare(n - np.arange(m), (size, m)))[:, None, :] * np.eye(m)
    keys = tie * R + np.sqrt(1 - tie**2) * rng.standard_normal((size, m, m))
    return sigma / np.sqrt(n) * C @ R @ keys.swapaxes(1, 2) @ C.T
""",
        ),
    ],
    "gap": [
        (
            "leaves the values at infinite width",
            ["gap-mean"],
            _GAP.format(lines="finite, limit = u(t), u(one)"),
        ),
        (
            "leaves the scores at infinite width",
            ["gap-mean"],
            _GAP.format(lines="finite, limit = factor * u(one), u(one)"),
        ),
        (
            "is the gap of the other sign",
            ["gap-mean"],
            _GAP.format(lines="limit, finite = factor * u(t), u(one)"),
        ),
        (
            "returns 0, with a spread of 0",
            ["gap-mean"],
            "def gap(V, n, sigma, y, size, rng):\n    return 0.0\n",
        ),
        (
            "returns F_n and not the gap",
            ["gap-zero", "gap-mean", "gap-spread"],
            _GAP.format(lines="finite, limit = factor * u(t), u(one)").replace(
                " - special.ndtr(y / np.sqrt(limit))", ""
            ),
        ),
        (
            "is off by a constant of the size of the noise of counting",
            ["gap-zero", "gap-mean"],
            _GAP.format(lines="finite, limit = factor * u(t), u(one)").replace(
                "return np", "return 0.01 + np"
            ),
        ),
        (
            "draws the limit anew, so that nothing cancels",
            ["gap-spread"],
            _GAP.format(
                lines="""finite = factor * u(t)
    g = rng.standard_normal((size, len(V)))
    limit = u(one)"""
            ),
        ),
    ],
    "blind-width": [
        (
            "takes half of the second derivatives times 1/n",
            ["blind-width-value"],
            _BLIND.format(result="np.abs(score + value).max() / noise / 2"),
        ),
        (
            "leaves the values at infinite width",
            ["blind-width-value"],
            _BLIND.format(result="np.abs(score).max() / noise"),
        ),
    ],
    "next-square": [
        (
            "answers with the mean square of those seen",
            ["next-square-first", "next-square-short", "next-square-long"],
            """
def next_square(seen, values, probs):
    return np.mean(seen**2) if len(seen) else 0.0
""",
        ),
        (
            "multiplies densities until they underflow",
            ["next-square-long"],
            """
def next_square(seen, values, probs):
    total = values + bias
    sd = np.sqrt(total)[:, None]
    joint = probs * np.prod(stats.norm.pdf(seen / sd) / sd, axis=1)
    return joint @ total / max(joint.sum(), 1e-300)
""",
        ),
        (
            "weighs by the exponentials without their normalization",
            ["next-square-short", "next-square-long"],
            """
def next_square(seen, values, probs):
    total = values + bias
    return special.softmax(np.log(probs) - seen @ seen / (2 * total)) @ total
""",
        ),
        (
            "leaves the bias out",
            ["next-square-first", "next-square-short", "next-square-long"],
            """
def next_square(seen, values, probs):
    logs = np.log(probs) - len(seen) / 2 * np.log(values)
    return special.softmax(logs - seen @ seen / (2 * values)) @ values
""",
        ),
    ],
    "mixing": [
        (
            "is the pair of a standard normal law",
            ["mixing-scale", "mixing-coordinates"],
            "def mixing(y):\n    return 1.0, 0.0\n",
        ),
        (
            "gives the standard deviation and not the variance",
            ["mixing-scale", "mixing-coordinates", "mixing-networks"],
            _MIXING.format(variance="np.std(sums / r)"),
        ),
        (
            "does not subtract the noise of finitely many coordinates",
            ["mixing-coordinates"],
            _MIXING.format(variance="np.var(sums / r, ddof=1)"),
        ),
        (
            "squares the mean over networks",
            ["mixing-networks"],
            _MIXING.format(
                variance="np.mean(sums**2) / (r * (r + 2)) - (sums.mean() / r) ** 2"
            ),
        ),
    ],
    "write": [
        (
            "averages the tokens themselves",
            ["write-hypotheses", "write-law"],
            _RIGHT.replace("program.matmul(W_output, program.matmul(W_value, x))", "x"),
        ),
        (
            "has no output matrix",
            ["write-hypotheses", "write-law"],
            _RIGHT.replace(
                "program.matmul(W_output, program.matmul(W_value, x))",
                "program.matmul(W_value, x)",
            ),
        ),
        (
            "has one matrix for values and outputs",
            ["write-hypotheses", "write-law"],
            _RIGHT.replace("W_output, program", "W_value, program"),
        ),
        (
            "ties the matrices of queries and keys",
            ["write-hypotheses", "write-law"],
            _RIGHT.replace("program.matmul(W_key, x)", "program.matmul(W_query, x)"),
        ),
        (
            "has tokens without a bound",
            ["write-hypotheses", "write-law"],
            _WRITE.format(tokens="program.inputs(V)", scale="sigma"),
        ),
        (
            "forgets the score scale",
            ["write-law"],
            _WRITE.format(tokens=_BOUNDED, scale="1.0"),
        ),
        (
            "bounds the tokens by a function that changes their Gram matrix",
            ["write-law"],
            _WRITE.format(
                tokens="[program.nonlin(np.tanh, x, bounded=True)"
                " for x in program.inputs(V)]",
                scale="sigma",
            ),
        ),
    ],
    "broken": [
        (
            "has scores and no attention",
            ["broken-kinds"],
            """
def broken(kind, V):
    program = Program()
    tokens = program.inputs(V)
    if kind != "unbounded":
        tokens = [program.nonlin(np.tanh, x, bounded=True) for x in tokens]
    one = program.matrix()
    two = one if kind == "tied" else program.matrix()
    keys = [program.matmul(two, x) for x in tokens]
    scores = [
        [program.dot(program.matmul(one, x), k) for k in keys] for x in tokens
    ]
    if kind == "reused":
        program.matmul(one, keys[0])
    if kind == "stacked":
        row = program.nonlin(lambda x, p: x * p, tokens[0], scores[0][0])
        program.matmul(program.matrix(), row)
    return program
""",
        ),
        (
            "reuses the matrix of the values for the output",
            ["broken-kinds"],
            _BROKEN.format(
                change='W_output = W_value if kind == "reused" else program.matrix()',
                stack="program.matmul(program.matrix(), rows[0])",
            ),
        ),
        (
            "stacks with the matrix of the queries and breaks two hypotheses",
            ["broken-kinds"],
            _BROKEN.format(
                change="""W_output = program.matrix()
    W_value = W_query if kind == "reused" else W_value""",
                stack="program.matmul(W_query, rows[0])",
            ),
        ),
    ],
    "variances": [
        (
            "takes every broken hypothesis to leave the law as it is",
            ["variances-value"],
            _VARIANCES.format(slope="attending * (attending + attended)", tied="mean"),
        ),
        (
            "gives the difference of two scores the variance of one",
            ["variances-value"],
            _VARIANCES.format(slope="attending", tied="attending"),
        ),
    ],
}
