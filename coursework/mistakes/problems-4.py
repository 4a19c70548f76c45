"""Typical wrong answers to set 4: why, which checks they lose, the code."""

_CLIMB = """
def climb(theta, masses, beta):
    theta, w = np.array(theta, float), np.array(masses, float)
    now, times, heights = 0.0, [], []

    def velocity(x):
        turn = x - x[:, None]
        logs = beta * (np.cos(turn) - 1)
        np.fill_diagonal(logs, -np.inf)
        pull = w * np.exp(logs - logs.max())
        total = w + pull.sum(axis=1) * np.exp(logs.max())
        return (pull * np.sin(turn)).sum(axis=1) / total, logs.max()

    def slope(_, y):
        v, top = velocity(y[:-1])
        return np.append(v, np.exp(start - top)) / np.abs(v).max()

    def apart(x):
        turn = np.abs(x - x[:, None]) % (2 * np.pi)
        return np.minimum(turn, 2 * np.pi - turn) + 9 * np.eye(len(x))

    def touch(_, y):
        return apart(y[:-1]).min() - 1e-3

    touch.terminal = True
    while len(w) > 1:
        start = velocity(theta)[1]
        run = integrate.solve_ivp(slope, (0, 99), np.append(theta, 0), "DOP853",
                                  events=touch, rtol=1e-6, atol=1e-8)
        theta, now = run.y[:-1, -1], now + run.y[-1, -1] * np.exp(-start)
        i, j = np.unravel_index(apart(theta).argmin(), (len(w), len(w)))
        MERGE
        theta, w = np.delete(theta, j), np.delete(w, j)
        times.append(now)
        heights.append(w @ w)
    return np.array(times), np.array(heights)
"""

_MERGE = """turn = np.sin(theta[j] - theta[i])
        theta[i] += turn * w[j] / (w[i] + w[j])
        w[i] += w[j]"""

MISTAKES = {
    "simplex-height": [
        (
            "leaves the pairs of a token with itself out",
            ["simplex-height-value"],
            """
def simplex_height(n, beta):
    return (n - 1) / n * np.exp(-beta * n / (n - 1))
""",
        ),
        (
            "forgets the factor e^(−β)",
            ["simplex-height-value"],
            """
def simplex_height(n, beta):
    return (np.exp(beta) + (n - 1) * np.exp(-beta / (n - 1))) / n
""",
        ),
    ],
    "simplex-rate": [
        (
            "the cosine moves with one of the two tokens only",
            ["simplex-rate-value"],
            """
def simplex_rate(n, beta):
    return repulsion * n / (np.exp(beta * n / (n - 1)) + n - 1)
""",
        ),
        (
            "puts ρ = 0 into the weights",
            ["simplex-rate-value"],
            """
def simplex_rate(n, beta):
    return 2 * repulsion * n / (np.exp(beta) + n - 1)
""",
        ),
        (
            "leaves out that the value matrix is −ν I and not −I",
            ["simplex-rate-value"],
            """
def simplex_rate(n, beta):
    return 2 * n / (np.exp(beta * n / (n - 1)) + n - 1)
""",
        ),
    ],
    "plain-time": [
        (
            "Ei and E₁ as they are: β = 0 apart, large β overflows",
            ["plain-time-large"],
            """
def plain_time(n, beta, gap):
    a = n - 1
    if beta == 0:
        return np.log((n - a * gap) / gap * (1 - cosine) / (1 + a * cosine)) / 2
    with np.errstate(all="ignore"):
        first = special.expi(beta * (1 - cosine)) - special.expi(beta * gap)
        second = special.exp1(beta * (1 / a + cosine))
        second = second - special.exp1(beta * (n / a - gap))
        return (np.exp(-beta) * first + np.exp(beta / a) * second) / 2
""",
        ),
        (
            "starts from orthonormal tokens, as the chapter does",
            ["plain-time-value", "plain-time-large"],
            """
def plain_time(n, beta, gap):
    def weight(v):
        rho = v / beta
        return np.exp(-v) * n / (2 * (1 - rho) * (1 + (n - 1) * rho) * beta)

    if beta == 0:
        return np.log((n - (n - 1) * gap) / gap) / 2
    ends = np.linspace(0, min(60, beta * (1 - gap)), 40)
    return sum(integrate.quad(weight, *pair, epsrel=1e-11)[0]
               for pair in zip(ends, ends[1:]))
""",
        ),
        (
            "the time of the normalized model",
            ["plain-time-value", "plain-time-large"],
            """
def plain_time(n, beta, gap):
    def u(rho):
        return np.log((1 + (n - 1) * rho) / (1 - rho))

    def weight(u):
        left = n / (np.exp(u) + n - 1)
        return (np.exp(min(beta * left, 700)) + n - 1) / (2 * n)

    return integrate.quad(weight, u(cosine), u(1 - gap))[0]
""",
        ),
    ],
    "threshold": [
        (
            "takes the rule of thumb log(nT) for the answer",
            ["threshold-value"],
            "def threshold():\n    return np.log(crowd * horizon)\n",
        ),
        (
            "Laplace's method, without the logarithm of the end",
            ["threshold-value"],
            """
def threshold():
    def late(beta):
        return np.exp(beta) / (2 * crowd * beta) - horizon

    return optimize.brentq(late, 1, 20)
""",
        ),
    ],
    "ring-rate": [
        (
            "forgets the rotation",
            ["ring-rate-value"],
            """
def ring_rate(n, k, beta):
    angle = 2 * np.pi * np.arange(n) / n
    kernel = np.exp(beta * np.cos(angle))
    slope = kernel * (np.cos(angle) - beta * np.sin(angle) ** 2)
    return -slope @ (1 - np.cos(k * angle)) / kernel.sum()
""",
        ),
        (
            "differentiates at the turned angle and keeps the odd part",
            ["ring-rate-value"],
            """
def ring_rate(n, k, beta):
    angle = 2 * np.pi * np.arange(n) / n
    kernel = np.exp(beta * np.cos(angle))
    turned = angle + twist
    slope = kernel * (np.cos(turned) - beta * np.sin(turned) ** 2)
    return -slope @ (1 - np.cos(k * angle)) / kernel.sum()
""",
        ),
        (
            "of the unnormalized model",
            ["ring-rate-value"],
            """
def ring_rate(n, k, beta):
    angle = 2 * np.pi * np.arange(n) / n
    kernel = np.exp(beta * np.cos(angle))
    slope = kernel * (np.cos(angle) - beta * np.sin(angle) ** 2)
    return -np.cos(twist) * slope @ (1 - np.cos(k * angle)) / n
""",
        ),
        (
            "the kernel is not differentiated",
            ["ring-rate-value"],
            """
def ring_rate(n, k, beta):
    angle = 2 * np.pi * np.arange(n) / n
    kernel = np.exp(beta * np.cos(angle))
    slope = np.cos(twist) * kernel * np.cos(angle)
    return -slope @ (1 - np.cos(k * angle)) / kernel.sum()
""",
        ),
    ],
    "last-stable": [
        (
            "takes β for −β, and even polygons for stable",
            ["last-stable-triangle", "last-stable-all"],
            """
def last_stable(n):
    return np.cos(np.pi / n) / np.sin(np.pi / n) ** 2
""",
        ),
        (
            "counts the decay at β = 0 as none at all",
            ["last-stable-triangle", "last-stable-all"],
            "def last_stable(n):\n    return -np.inf\n",
        ),
        (
            "looks at the pair of nearly opposite tokens alone",
            ["last-stable-all"],
            """
def last_stable(n):
    if n % 2 == 0:
        return -np.inf
    return -np.cos(np.pi / n) / np.sin(np.pi / n) ** 2
""",
        ),
        (
            "tries the first mode only",
            ["last-stable-all"],
            """
def last_stable(n):
    if n % 2 == 0:
        return -np.inf
    angle = 2 * np.pi * np.arange(n) / n

    def rate(beta):
        slope = np.exp(beta * np.cos(angle) - abs(beta))
        slope = slope * (np.cos(angle) - beta * np.sin(angle) ** 2)
        return (np.cos(angle) - 1) @ slope

    return optimize.brentq(rate, -(n**2), 0, xtol=1e-12)
""",
        ),
        (
            "believes that the triangle is the only one",
            ["last-stable-all"],
            "def last_stable(n):\n    return -2 / 3 if n == 3 else -np.inf\n",
        ),
    ],
    "unequal": [
        (
            "uses the unnormalized model",
            ["wait-value", "share-value"],
            """
def wait():
    def slowness(a):
        return np.exp(inverse * (1 - np.cos(a))) / np.sin(a)

    return integrate.quad(slowness, 1e-3, opening, limit=400)[0]


def share():
    return 1 - light
""",
        ),
        (
            "the share is that of β → ∞, and the time Laplace's",
            ["wait-value", "share-value"],
            """
def wait():
    rate = (1 - light) / light + light / (1 - light)
    far = np.exp(inverse * (1 - np.cos(opening)))
    return far / (rate * inverse * np.sin(opening) ** 2)


def share():
    return (1 - light) ** 2 / (light**2 + (1 - light) ** 2)
""",
        ),
        (
            "the heavy one is at rest",
            ["wait-value", "share-value"],
            """
def wait():
    def slowness(a):
        far = np.exp(inverse * (1 - np.cos(a)))
        return (light * far + 1 - light) / ((1 - light) * np.sin(a))

    return integrate.quad(slowness, 1e-3, opening, limit=400)[0]


def share():
    return 1.0
""",
        ),
    ],
    "climb": [
        (
            "takes the mean of the two places for the center of mass",
            ["climb-heights", "climb-times"],
            _CLIMB.replace("MERGE", "theta[i] += 1.0\n        w[i] += w[j]"),
        ),
        (
            "forgets the factor that was taken out of the kernel",
            ["climb-times"],
            _CLIMB.replace("MERGE", _MERGE).replace(" * np.exp(-start)", ""),
        ),
        (
            "returns the start as well, k numbers in the place of k − 1",
            ["climb-two", "climb-heights", "climb-times"],
            _CLIMB.replace("MERGE", _MERGE).replace(
                "now, times, heights = 0.0, [], []",
                "now, times, heights = 0.0, [0.0], [w @ w]",
            ),
        ),
        (
            "every speed has a factor 2 too much",
            ["climb-times"],
            _CLIMB.replace("MERGE", _MERGE).replace("return (", "return 2 * ("),
        ),
        (
            "the merged cluster keeps the mass of one of the two",
            ["climb-two", "climb-heights", "climb-times"],
            _CLIMB.replace("MERGE", "pass"),
        ),
    ],
    "compressed": [
        (
            "Bessel functions that overflow",
            ["field-sharp"],
            """
def moments(theta, beta):
    z, power, found = np.exp(-1j * theta), 1.0, [1.0]
    for _ in range(int(np.sqrt(75 * beta)) + 12):
        power = power * z
        found.append(power.mean())
    return np.array(found, complex)


def field(moments, beta, at):
    k = np.arange(len(moments))
    with np.errstate(all="ignore"):
        kernel = np.where(k > 0, 2, 1) * special.iv(k, beta)
        slopes = np.where(k > 0, 1, 0.5) * (
            special.iv(k + 1, beta) + special.iv(abs(k - 1), beta))
        waves = np.exp(1j * np.outer(at, k))
        total = (waves * kernel * moments).real.sum(axis=1)
        pull = -((waves * kernel * moments).imag @ k) / beta
        ahead = (waves * slopes * moments).real.sum(axis=1)
        return (np.cos(twist) * pull + np.sin(twist) * ahead) / total
""",
        ),
        (
            "a matrix of all tokens and all waves",
            ["field-lean"],
            """
def moments(theta, beta):
    k = np.arange(int(np.sqrt(75 * beta)) + 12)
    return np.exp(-1j * np.outer(theta, k)).mean(axis=0)


def field(moments, beta, at):
    k = np.arange(len(moments))
    with np.errstate(all="ignore"):
        kernel = np.where(k > 0, 2, 1) * special.ive(k, beta)
        slopes = np.where(k > 0, 1, 0.5) * (
            special.ive(k + 1, beta) + special.ive(abs(k - 1), beta))
        waves = np.exp(1j * np.outer(at, k))
        total = (waves * kernel * moments).real.sum(axis=1)
        pull = -((waves * kernel * moments).imag @ k) / beta
        ahead = (waves * slopes * moments).real.sum(axis=1)
        return (np.cos(twist) * pull + np.sin(twist) * ahead) / total
""",
        ),
        (
            "counts the waves with negative k for nothing",
            ["field-value", "field-sharp", "field-lean"],
            """
def moments(theta, beta):
    z, power, found = np.exp(-1j * theta), 1.0, [1.0]
    for _ in range(int(np.sqrt(75 * beta)) + 12):
        power = power * z
        found.append(power.mean())
    return np.array(found, complex)


def field(moments, beta, at):
    k = np.arange(len(moments))
    with np.errstate(all="ignore"):
        kernel = 1.0 * special.ive(k, beta)
        slopes = 0.5 * (
            special.ive(k + 1, beta) + special.ive(abs(k - 1), beta))
        waves = np.exp(1j * np.outer(at, k))
        total = (waves * kernel * moments).real.sum(axis=1)
        pull = -((waves * kernel * moments).imag @ k) / beta
        ahead = (waves * slopes * moments).real.sum(axis=1)
        return (np.cos(twist) * pull + np.sin(twist) * ahead) / total
""",
        ),
        (
            "forgets the rotation",
            ["field-value", "field-sharp", "field-lean"],
            """
def moments(theta, beta):
    z, power, found = np.exp(-1j * theta), 1.0, [1.0]
    for _ in range(int(np.sqrt(75 * beta)) + 12):
        power = power * z
        found.append(power.mean())
    return np.array(found, complex)


def field(moments, beta, at):
    k = np.arange(len(moments))
    with np.errstate(all="ignore"):
        kernel = np.where(k > 0, 2, 1) * special.ive(k, beta)
        slopes = np.where(k > 0, 1, 0.5) * (
            special.ive(k + 1, beta) + special.ive(abs(k - 1), beta))
        waves = np.exp(1j * np.outer(at, k))
        total = (waves * kernel * moments).real.sum(axis=1)
        pull = -((waves * kernel * moments).imag @ k) / beta
        ahead = (waves * slopes * moments).real.sum(axis=1)
        return (pull) / total
""",
        ),
        (
            "keeps 40 waves at every β",
            ["field-sharp"],
            """
def moments(theta, beta):
    z, power, found = np.exp(-1j * theta), 1.0, [1.0]
    for _ in range(40):
        power = power * z
        found.append(power.mean())
    return np.array(found, complex)


def field(moments, beta, at):
    k = np.arange(len(moments))
    with np.errstate(all="ignore"):
        kernel = np.where(k > 0, 2, 1) * special.ive(k, beta)
        slopes = np.where(k > 0, 1, 0.5) * (
            special.ive(k + 1, beta) + special.ive(abs(k - 1), beta))
        waves = np.exp(1j * np.outer(at, k))
        total = (waves * kernel * moments).real.sum(axis=1)
        pull = -((waves * kernel * moments).imag @ k) / beta
        ahead = (waves * slopes * moments).real.sum(axis=1)
        return (np.cos(twist) * pull + np.sin(twist) * ahead) / total
""",
        ),
        (
            "hands over the tokens themselves",
            ["field-value", "field-sharp", "field-lean"],
            """
def moments(theta, beta):
    return theta


def field(moments, beta, at):
    turn = moments - at[:, None]
    pull = np.exp(beta * (np.cos(turn) - 1))
    return (pull * np.sin(turn + twist)).sum(axis=1) / pull.sum(axis=1)
""",
        ),
    ],
    "onset": [
        (
            "forgets the second moment",
            ["onset-value"],
            "def onset(beta):\n    return 2.0\n",
        ),
        (
            "the second moment does not act on itself",
            ["onset-value"],
            """
def onset(beta):
    return 2 / (1 - special.ive(2, beta) / special.ive(1, beta))
""",
        ),
    ],
    "last-order": [
        (
            "takes the onset for the end",
            ["last-order-value"],
            "def last_order():\n    return 1.0\n",
        ),
        (
            "keeps two moments only",
            ["last-order-value"],
            """
def last_order():
    k = np.arange(1, 3)
    waves = np.cos(np.outer(k, 2 * np.pi * np.arange(256) / 256))
    kernel = special.ive(k, cold) / special.ive(1, cold)

    def over_critical(r):
        m = r ** (k**2.0)

        def found(scale):
            log = scale * (kernel * m) @ waves
            law = np.exp(log - log.max())
            return waves @ law / law.sum()

        for _ in range(40):
            scale = optimize.brentq(lambda s: found(s)[0] - r, 0, 500)
            m = found(scale)
        return 2 / scale

    return max(over_critical(r) for r in np.linspace(0.2, 0.9, 8))
""",
        ),
    ],
}
