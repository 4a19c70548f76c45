"""Numerics and instruments of *Attention in the Limit*."""

__version__ = "0.1.0"
