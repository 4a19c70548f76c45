"""Parts of :mod:`lib.netsor`."""
