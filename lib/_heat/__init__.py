"""Parts of :mod:`lib.heat`."""
