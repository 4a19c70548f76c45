"""Kernels in Firefox and in WebKit: what they compute is what lib computes."""

import pytest
from test_engines import ENGINES, running

from tools.kernels import build, parity
from tools.kernels.catalog import KERNELS

__all__ = ["ENGINES", "running"]  # the fixture of both browsers
pytestmark = pytest.mark.browsers


def test_every_kernel_is_lib(running, tmp_path):
    build.build(tmp_path)
    for row in parity.rows(parity.in_other(running), tmp_path, KERNELS, (1, 2, 17)):
        assert row.ok and row.error <= 1e-12, (running.name, row)
