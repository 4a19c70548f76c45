r"""A language for wide networks at initialization, run at a width and in the limit.

A program makes vectors in :math:`\mathbb R^n` line by line: Gaussian inputs, products
g = Wh with random matrices, nonlinear functions of each coordinate, and scalars
:math:`p = n^{-1/2} \langle g, g' \rangle`, which the nonlinear functions may read.

As n → ∞ the coordinates of a vector become like independent copies of one random
variable. Those of the products are Gaussian, :math:`\mathrm{Cov}(Z^{Wh}, Z^{Wh'}) =
\sigma_W^2\, E[Z^h Z^{h'}]`, and independent for different matrices. The scalars become
Gaussian too, independent of all Z:

.. math:: \mathrm{Cov}(p_b, p_c) = E\big[Z^{g^{b,1}} Z^{g^{b,2}}
          Z^{g^{c,1}} Z^{g^{c,2}}\big] .

They do not become constants, so that what reads them is Gaussian only given their
values, and averages over coordinates tend to random variables,

.. math:: \frac1n \sum_{\alpha=1}^n \psi(h^1_\alpha, \dots, h^k_\alpha) \to
          E\big[ \psi(Z^{h^1}, \dots, Z^{h^k}) \,\big|\, p \big]

in law. The theorem has hypotheses on the factors of the scalars;
:meth:`Program.check` names those that a program violates.

References: Yang, *Wide Feedforward or Recurrent Neural Networks of Any Architecture are
Gaussian Processes*, 2019, arXiv:1910.12478; with scalars, Sakai, Karakida and Imaizumi,
*Infinite-Width Limit of a Single Attention Layer*, 2025, arXiv:2506.00846.

:mod:`lib.netsor.architectures` writes five programs.
"""

from __future__ import annotations

from lib.netsor import architectures
from lib.netsor.program import Average, Matrix, Program, Scalar, Vector

__all__ = ["Average", "Matrix", "Program", "Scalar", "Vector", "architectures"]
