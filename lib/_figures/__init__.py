"""Parts of :mod:`lib.figures`."""
