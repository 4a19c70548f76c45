"""Arrays that come and go take no pages from the system once lib is imported."""

import os
import platform
import subprocess
import sys

import pytest

# Pages that are taken anew when the same is computed twenty times more.
FAULTS = """
import resource
import numpy as np
{first}
x = np.ones({size})
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for again in range(25):
    if again == 5:
        before = pages()
    y = 2 * x + x * x
print(pages() - before)
"""


def printed(program):
    """The number that a process of its own prints.

    Where MALLOC_TRIM_THRESHOLD_ or its like is set, as dask does, nothing adapts.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc adapts")
@pytest.mark.parametrize("size", [100_000, 2_000_000])  # 0.8 MB, 16 MB
@pytest.mark.parametrize("module", ["lib.core.checks", "lib.attention", "lib.gram"])
def test_freed_memory_is_kept(module, size):
    kept = FAULTS.format(first=f"import {module}", size=size)
    usual = FAULTS.format(first="", size=size)
    assert printed(kept) < 40 < printed(usual)


def test_the_block_itself_takes_no_memory():
    program = """
import resource, numpy
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
from lib.core.memory import keep_freed_memory
keep_freed_memory()
print(peak() - before)
"""
    assert printed(program) < 16_000  # kB; the block has 33,000
