"""Parts of :mod:`lib.sde`."""
