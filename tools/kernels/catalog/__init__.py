"""The kernels of the site: which functions of ``lib``, with which inputs.

An adapter calls ``lib`` with a kernel's inputs and names what it gives. It may choose
arguments and pick results; what is computed is computed in ``lib``. Each subject lists
its kernels below its adapters.
"""

from tools.kernels.catalog import initialization, regimes, softmax, tokens, transport
from tools.kernels.catalog.kernel import Kernel

SUBJECTS = (tokens, softmax, transport, initialization, regimes)
KERNELS = [kernel for subject in SUBJECTS for kernel in subject.KERNELS]

__all__ = ["KERNELS", "Kernel"]
