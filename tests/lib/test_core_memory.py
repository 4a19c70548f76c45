"""Arrays that come and go take no pages from the system once lib is imported."""

import platform
import subprocess
import sys

import pytest

# Pages that twenty sums of arrays of 800 kB take anew.
FAULTS = """
import resource
import numpy as np
{first}
x = np.ones(100_000)
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for again in range(25):
    if again == 5:
        before = pages()
    y = 2 * x + x * x
print(pages() - before)
"""


def faults(first):
    program = FAULTS.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc adapts")
@pytest.mark.parametrize("module", ["lib.core.checks", "lib.attention", "lib.gram"])
def test_freed_memory_is_kept(module):
    with_lib, without = faults(f"import {module}"), faults("")
    assert with_lib < 40 < without, (with_lib, without)


def test_the_block_itself_takes_no_memory():
    program = (
        "import resource, numpy as np\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "from lib.core.memory import keep_freed_memory\n"
        "keep_freed_memory()\n"
        "print(peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16_000  # kB; the block is 33,000
