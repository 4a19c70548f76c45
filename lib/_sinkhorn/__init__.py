"""Parts of :mod:`lib.sinkhorn`."""
