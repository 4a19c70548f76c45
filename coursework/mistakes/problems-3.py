"""Typical wrong answers to set 3: why, which checks they lose, the code."""

MISTAKES = {
    "factor": [
        (
            "S is taken to contract with λ instead of −λ",
            ["factor-value"],
            "def factor(theta, lam):\n    return 1 - theta * (1 - lam)\n",
        ),
        (
            "gives the absolute value, and the sign was asked for",
            ["factor-value"],
            "def factor(theta, lam):\n    return abs(1 - theta * (1 + lam))\n",
        ),
    ],
    "best-theta": [
        (
            "always averages",
            ["best-theta-value"],
            "def best_theta(low, high):\n    return 0.5\n",
        ),
        (
            "kills the slowest mode alone",
            ["best-theta-value"],
            "def best_theta(low, high):\n    return 1 / (1 + low)\n",
        ),
    ],
    "scaling": [
        (
            "iterates without damping",
            ["scaling-plain", "scaling-sharp"],
            """
def scaling(product, n):
    u = np.ones(n)
    for _ in range(40):
        u = 1 / product(u / n)
    return u
""",
        ),
        (
            "forgets the weights",
            ["scaling-plain", "scaling-sharp"],
            """
def scaling(product, n):
    u = np.ones(n)
    for _ in range(40):
        u = np.sqrt(u / product(u))
    return u
""",
        ),
    ],
    "smallest-eps": [
        (
            "sets √ε to the mean spacing",
            ["smallest-eps-gain"],
            "def smallest_eps(n):\n    return (4 / n) ** 2\n",
        ),
        (
            "calls the module that is off limits",
            ["smallest-eps-order", "smallest-eps-gain"],
            """
from lib import sinkhorn

def smallest_eps(n):
    x = stats.norm.ppf((np.arange(n) + 0.5) / n)[:, None]

    def gain(eps):
        try:
            return (sinkhorn.bridge_step(x, eps).var() - x.var()) / eps
        except BaseException:
            return 0.0

    return optimize.brentq(lambda e: gain(e) - 0.5, 1e-6, 0.1)
""",
        ),
    ],
    "backward": [
        (
            "takes the step forward",
            ["backward-value", "splitting-lie", "splitting-strang", "stationary-value"],
            """
def backward(s, eps):
    r = eps / s
    a = 2 / (r + np.sqrt(4 + r**2))
    return (2 - a) ** 2 * s
""",
        ),
        (
            "is the first order only",
            ["backward-value", "splitting-lie", "splitting-strang", "stationary-value"],
            "def backward(s, eps):\n    return max(s - eps, 0.0)\n",
        ),
    ],
    "collapse-time": [
        (
            "of the plain sign change",
            ["collapse-time-value"],
            "def collapse_time(s0):\n    return s0\n",
        ),
        (
            "doubles the time instead of halving it",
            ["collapse-time-value"],
            "def collapse_time(s0):\n    return 2 * s0\n",
        ),
    ],
    "log-growth": [
        (
            "forgets the half of the equation",
            ["log-growth-value"],
            "def log_growth(j, t):\n    return j**2 * t\n",
        ),
        (
            "is linear in the wave number",
            ["log-growth-value"],
            "def log_growth(j, t):\n    return abs(j) * t / 2\n",
        ),
    ],
    "splitting": [
        (
            "strang is lie",
            ["splitting-strang", "stationary-value"],
            """
def lie(s, eps):
    s = s * np.exp(-eps)
    return (2 - np.sqrt(backward(s, eps) / s)) ** 2 * s

strang = lie
""",
        ),
        (
            "the drift scales the variance as it scales x",
            ["splitting-lie", "splitting-strang", "stationary-value"],
            """
def lie(s, eps):
    s = s * np.exp(-eps / 2)
    return (2 - np.sqrt(backward(s, eps) / s)) ** 2 * s

def strang(s, eps):
    s = s * np.exp(-eps / 4)
    return (2 - np.sqrt(backward(s, eps) / s)) ** 2 * s * np.exp(-eps / 4)
""",
        ),
    ],
    "stationary": [
        (
            "of the other splitting",
            ["stationary-value"],
            """
def stationary_bias():
    return abs(optimize.brentq(lambda s: lie(s, step) - s, 0.2, 3) - 1)
""",
        ),
        (
            "takes the exact equation",
            ["stationary-value"],
            "def stationary_bias():\n    return 0.0\n",
        ),
    ],
    "slope": [
        (
            "takes 2x − B for B",
            ["slope-value"],
            "def slope(variance, eps):\n    return variance / eps\n",
        ),
        (
            "the cost is taken without its half",
            ["slope-value"],
            "def slope(variance, eps):\n    return 2 - 2 * variance / eps\n",
        ),
    ],
    "crossing": [
        (
            "too smooth a law",
            ["crossing-order"],
            "def crossing():\n    return np.linspace(-1, 1, 60), 0.2\n",
        ),
        (
            "tokens out of order from the start",
            ["crossing-form", "crossing-order"],
            """
def crossing():
    x = np.concatenate([np.linspace(-1.2, -0.8, 30), [0.05, -0.05],
                        np.linspace(0.8, 1.2, 30)])
    return x, 0.2
""",
        ),
    ],
}
