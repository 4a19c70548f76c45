"""Typical wrong answers to set 3: why, which checks they lose, the code."""

MISTAKES = {
    "factor": [
        (
            "S is taken to contract with λ instead of −λ",
            ["factor-value"],
            "def factor(theta, lam):\n    return 1 - theta * (1 - hardness * lam)\n",
        ),
        (
            "gives the absolute value, and the sign was asked for",
            ["factor-value"],
            "def factor(theta, lam):\n"
            "    return abs(1 - theta * (1 + hardness * lam))\n",
        ),
        (
            "is the factor of a balanced matrix",
            ["factor-value"],
            "def factor(theta, lam):\n    return 1 - theta * (1 + lam)\n",
        ),
        (
            "is right for λ = 0 alone",
            ["factor-value"],
            "def factor(theta, lam):\n    return 1 - theta\n",
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
            "def best_theta(low, high):\n    return 1 / (1 + hardness * low)\n",
        ),
        (
            "is the damping of a balanced matrix",
            ["best-theta-value"],
            "def best_theta(low, high):\n    return 2 / (2 + low + high)\n",
        ),
        (
            "is off by ten times the tolerance",
            ["best-theta-value"],
            "def best_theta(low, high):\n"
            "    return 2 / (2 + hardness * (low + high)) + 1e-3\n",
        ),
    ],
    "scaling": [
        (
            "solves for row sums 1, as if c were 1",
            ["scaling-plain", "scaling-sharp"],
            """
def scaling(product, n):
    u = np.ones(n)
    for _ in range(40):
        u = np.sqrt(u / product(u / n))
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
        u = np.sqrt(u * product(u) ** -hardness)
    return u
""",
        ),
        (
            "needs 41 products",
            ["scaling-plain", "scaling-sharp"],
            """
def scaling(product, n):
    u, theta = np.ones(n), 2 / (2 + hardness)
    for _ in range(41):
        u = u ** (1 - theta) * product(u / n) ** (-theta * hardness)
    return u
""",
        ),
        (
            "stops as soon as two steps agree to 1e-4",
            ["scaling-plain", "scaling-sharp"],
            """
def scaling(product, n):
    u, old, theta = np.ones(n), np.zeros(n), 2 / (2 + hardness)
    while abs(u - old).max() > 1e-4:
        u, old = u ** (1 - theta) * product(u / n) ** (-theta * hardness), u
    return u
""",
        ),
    ],
    "smallest-eps": [
        (
            "sets √ε to the mean spacing",
            ["smallest-eps-order", "smallest-eps-gain"],
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

    return optimize.brentq(lambda e: gain(e) - target, 1e-6, 0.1)
""",
        ),
        (
            "is any function that falls",
            ["smallest-eps-order", "smallest-eps-gain"],
            "def smallest_eps(n):\n    return 1 / n\n",
        ),
        (
            "is one number for all n, and that of another gain",
            ["smallest-eps-order", "smallest-eps-gain"],
            "def smallest_eps(n):\n    return 0.02\n",
        ),
        (
            "has the right power and a factor at random",
            ["smallest-eps-order", "smallest-eps-gain"],
            "def smallest_eps(n):\n    return 7.0 / n**2\n",
        ),
    ],
    "backward": [
        (
            "takes the form of the root that cancels",
            ["backward-value"],
            """
def backward(s, eps):
    r = eps / s
    return ((np.sqrt(4 + r**2) - r) / 2) ** 2 * s
""",
        ),
        (
            "is off by ten times the tolerance",
            ["backward-value", "splitting-lie", "splitting-strang", "stationary-value"],
            """
def backward(s, eps):
    r = eps / s
    return (2 / (r + np.sqrt(4 + r**2))) ** 2 * s * (1 + 1e-4)
""",
        ),
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
            "def collapse_time(s0):\n    return pull * s0\n",
        ),
    ],
    "log-growth": [
        (
            "forgets the half of the equation",
            ["log-growth-value"],
            "def log_growth(j, t):\n    return pull * j**2 * t\n",
        ),
        (
            "is linear in the wave number",
            ["log-growth-value"],
            "def log_growth(j, t):\n    return pull * abs(j) * t / 2\n",
        ),
        (
            "takes the strength 1",
            ["log-growth-value"],
            "def log_growth(j, t):\n    return j**2 * t / 2\n",
        ),
    ],
    "splitting": [
        (
            "strang is lie",
            ["splitting-strang", "stationary-value"],
            """
def lie(s, eps):
    s = s * np.exp(-spring * eps)
    return (2 - np.sqrt(backward(s, eps) / s)) ** 2 * s

strang = lie
""",
        ),
        (
            "the drift scales the variance as it scales x",
            ["splitting-lie", "splitting-strang", "stationary-value"],
            """
def lie(s, eps):
    s = s * np.exp(-spring * eps / 2)
    return (2 - np.sqrt(backward(s, eps) / s)) ** 2 * s

def strang(s, eps):
    s = s * np.exp(-spring * eps / 4)
    return (2 - np.sqrt(backward(s, eps) / s)) ** 2 * s * np.exp(-spring * eps / 4)
""",
        ),
    ],
    "stationary": [
        (
            "of the other splitting",
            ["stationary-value"],
            """
def stationary_bias():
    return abs(optimize.brentq(lambda s: lie(s, one_step) - s, 0.1, 9) - 1 / spring)
""",
        ),
        (
            "takes the exact equation",
            ["stationary-value"],
            "def stationary_bias():\n    return 0.0\n",
        ),
        (
            "measures the distance from 1",
            ["stationary-value"],
            """
def stationary_bias():
    return abs(optimize.brentq(lambda s: strang(s, one_step) - s, 0.1, 9) - 1)
""",
        ),
    ],
    "slope": [
        (
            "takes 2x − B for B",
            ["slope-value"],
            "def slope(variance, eps):\n    return push * variance / eps\n",
        ),
        (
            "the cost is taken without its half",
            ["slope-value"],
            "def slope(variance, eps):\n"
            "    return 1 + push - 2 * push * variance / eps\n",
        ),
        (
            "takes the strength 1",
            ["slope-value"],
            "def slope(variance, eps):\n    return 2 - variance / eps\n",
        ),
    ],
    "crossing": [
        (
            "has too many tokens",
            ["crossing-form", "crossing-order"],
            """
def crossing():
    x = np.concatenate([np.linspace(-1.2, -0.8, 60), [-0.05, 0.05],
                        np.linspace(0.8, 1.2, 60)])
    return x, 0.2
""",
        ),
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
