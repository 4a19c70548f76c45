"""Exhibits of the book: what moves by itself, and the functions of lib that move it.

Each is a :func:`lib.figures.live` of its own, for more than one page.
"""

from lib.exhibits.film import film
from lib.exhibits.globe import globe
from lib.exhibits.histogram import histogram
from lib.exhibits.networks import networks
from lib.exhibits.planes import planes
from lib.exhibits.regimes import regimes
from lib.exhibits.training import training
from lib.exhibits.weights import weights

__all__ = [
    "film",
    "globe",
    "histogram",
    "networks",
    "planes",
    "regimes",
    "training",
    "weights",
]
