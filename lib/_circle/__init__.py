"""Parts of :mod:`lib.circle`."""
