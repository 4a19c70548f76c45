"""Parts of :mod:`lib.hierarchical`."""
