"""Memory that an array gives back is kept for the next one.

By default glibc returns a block of more than 128 kB to the system when an array ends,
and asks for it again for the next one. The system then clears it page by page, for
which arrays of 0.1 to 30 MB wait longer than for their arithmetic. But glibc adapts:
from the size of a block that was returned so on, and up to 32 MB, it keeps what is
freed, at most twice that size. (Who sets ``MALLOC_TRIM_THRESHOLD_`` decides instead.)
"""

from __future__ import annotations

import sys

import numpy as np

# The largest size to which glibc adapts is 32 MiB, with its own few words.
_BLOCK = 2**25 - 2**14


def keep_freed_memory() -> None:
    """Return one large block, which is never written, so that it costs no memory.

    Other C libraries take no notice; a browser, where memory only grows, is spared.
    """
    if sys.platform == "linux":
        np.empty(_BLOCK, np.uint8)
