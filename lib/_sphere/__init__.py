"""Parts of :mod:`lib.sphere`."""
