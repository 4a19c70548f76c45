"""Parts of :mod:`lib.noise`."""
