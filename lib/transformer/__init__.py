r"""Small transformers that learn to tell images apart, and what became of the limits.

The other packages are about random weights. Here weights are trained: on the images of
:func:`lib.data.image_patches`, by a backward pass written by hand, in seconds and to
the same digits every time. :func:`init` makes a :class:`Transformer` whose blocks have,
before training, exactly the law of the layers of :mod:`lib.gram`; :func:`train` trains
it, and :func:`perceptron` makes the simple classifiers to compare it with.

:func:`inspect` measures tokens layer by layer, those of a :class:`Trace` or those of
any other model, from arrays or files that the reader gives.
"""

from __future__ import annotations

from lib.transformer.classifier import Perceptron, perceptron
from lib.transformer.inspection import Inspection, inspect
from lib.transformer.model import Trace, Transformer, init
from lib.transformer.training import (
    DivergenceWarning,
    Training,
    TrainingInterrupted,
    train,
)

__all__ = [
    "DivergenceWarning",
    "Inspection",
    "Perceptron",
    "Trace",
    "Training",
    "TrainingInterrupted",
    "Transformer",
    "init",
    "inspect",
    "perceptron",
    "train",
]
