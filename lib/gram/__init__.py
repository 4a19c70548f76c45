r"""Gram matrices of tokens through layers of finite width, exact in law.

The tokens are the rows of X, shape (m, n), and :math:`V = XX^\top/n` is their Gram
matrix. Through layers of random weights V is a Markov chain by itself: its next value
depends on X only through V. :func:`simulate` runs this chain at a cost that does not
depend on n, :func:`simulate_tokens` keeps X and no weight matrix, and
:func:`dense_simulate` draws all weights, as the reference. All three have the same law.

====================================  ======================  ===================
per path and layer                    :func:`simulate`        :func:`dense_simulate`
====================================  ======================  ===================
linear, attention, RMSNorm            m³ (per head)           m n²
ReLU, with or without skip            m² n                    m n²
concatenated heads without output     not possible            m n²
====================================  ======================  ===================

:func:`simulate_tokens` does m² n for all of them. The layers are in
:mod:`lib.gram.layers`; :mod:`lib.gram.collapse` resolves rank collapse, and
:mod:`lib.gram.gradients` runs backwards through layers of attention.
"""

from __future__ import annotations

from lib.core.trajectory import Trajectory
from lib.core.wishart import bartlett
from lib.gram import collapse, gradients, layers
from lib.gram.chain import dense_simulate, random_scores, simulate, simulate_tokens
from lib.gram.layers import ShapedLayer

__all__ = [
    "ShapedLayer", "Trajectory", "bartlett", "collapse", "dense_simulate", "gradients",
    "layers", "random_scores", "simulate", "simulate_tokens",
]  # fmt: skip
