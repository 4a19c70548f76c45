"""Ground floor: what several subjects use, and no subject by itself.

:mod:`~lib.core.checks` of input, :mod:`~lib.core.psd` for Gram matrices and their
roots, :mod:`~lib.core.wishart` for the random matrices of wide layers, sums of
:mod:`~lib.core.rows`, :mod:`~lib.core.trajectory` with the loop over time,
:mod:`~lib.core.runge_kutta`, :mod:`~lib.core.fourier` sums on the circle,
:mod:`~lib.core.quadrature` of normal vectors, and :mod:`~lib.core.memory`, which every
process keeps from the first import on. Nothing here imports a subject.
"""

from lib.core.memory import keep_freed_memory

keep_freed_memory()
