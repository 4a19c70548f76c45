"""Parts of :mod:`lib.sweep`."""
