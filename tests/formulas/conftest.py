"""Parameters that no one has chosen: each run draws them anew, and says from what."""

import os

import numpy as np
import pytest
from mpmath import mp

# As a run that failed printed it, to draw the same parameters again.
SEED = os.environ.get("FORMULA_SEED")


@pytest.fixture
def rng():
    seed = int(SEED) if SEED else int(np.random.SeedSequence().entropy) % 2**32
    print(f"FORMULA_SEED={seed}")
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def digits(request):
    """Decimal digits of the numbers of a file, which it may name."""
    with mp.workdps(getattr(request.module, "DIGITS", 30)):
        yield
