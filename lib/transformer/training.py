"""Training by Adam, that can be interrupted and goes on to the same digits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array, require_count, require_generator, require_positive
from lib.transformer.classifier import Classifier, Labels, require_labels

Model = TypeVar("Model", bound=Classifier)
Bar = Callable[[Iterable[int]], Iterable[int]]

#: Decays of the two moments of Adam, and what keeps its denominator from 0.
FIRST, SECOND, SMALLEST = 0.9, 0.999, 1e-8

#: A loss this many times that of guessing, log(classes), is a diverged one.
DIVERGED = 100.0


class DivergenceWarning(UserWarning):
    """Training stopped because the loss diverged."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training was interrupted; ``.training`` is what it had come to."""

    def __init__(self, training: Training[Any]):
        done = len(training.losses)
        super().__init__(
            f"interrupted after {done} steps; .training.resume(x, labels, steps=...)"
            " goes on from there"
        )
        self.training = training

    def _render_traceback_(self) -> list[str]:
        """Give IPython the sentence alone to print."""
        return [f"TrainingInterrupted: {self}"]


@dataclass(frozen=True)
class Options:
    """Settings with which a training goes on, beside its state."""

    seed: int
    images: int
    batch: int
    learning_rate: float
    save_at: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Adam(Generic[Model]):
    """A classifier after some steps, and the moments of its gradients."""

    model: Model
    first: dict[str, Array]
    second: dict[str, Array]
    steps: int

    def step(self, gradient: dict[str, Array], learning_rate: float) -> Adam[Model]:
        """The next state; OverflowError where a parameter leaves the float range."""
        k, params, first, second = self.steps + 1, {}, {}, {}
        scale = (1 - SECOND**k) ** 0.5
        rate = learning_rate * scale / (1 - FIRST**k)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for name, g in gradient.items():
                first[name] = u = FIRST * self.first[name] + (1 - FIRST) * g
                second[name] = v = SECOND * self.second[name] + (1 - SECOND) * (g * g)
                move = rate * (u / (np.sqrt(v) + SMALLEST * scale))
                params[name] = self.model.params[name] - move
                if not np.isfinite(params[name]).all():
                    raise OverflowError(f"params[{name!r}] leaves the float range")
        return Adam(self.model.replace(params), first, second, k)


@dataclass(frozen=True, eq=False)
class Training(Generic[Model]):
    """A classifier that was trained, and all that is needed to go on.

    It can be pickled, hence kept by ``joblib.Memory`` and sent to other processes.

    Attributes
    ----------
    losses : ndarray, shape (steps,)
        Mean cross-entropy of the images of each step, before it.
    saved : dict
        The classifier after 0, ... steps, for each number in ``save_at`` that was
        reached.
    stopped : str or None
        The sentence that says why training stopped early.
    """

    losses: Array
    saved: dict[int, Model]
    stopped: str | None
    state: Adam[Model] = field(repr=False)
    before: Adam[Model] = field(repr=False)
    options: Options = field(repr=False)

    @property
    def model(self) -> Model:
        """The classifier after the last step."""
        return self.state.model

    def resume(
        self,
        x: npt.ArrayLike,
        labels: npt.ArrayLike,
        *,
        steps: int,
        progress: Bar | None = None,
    ) -> Training[Model]:
        """Go on, to the same digits as if it had never stopped.

        Parameters
        ----------
        x, labels
            The images and classes of before.
        steps : int
            Further steps.
        progress : callable, optional
            As for :func:`train`.

        Returns
        -------
        Training
            With the losses and saved classifiers of before and those of now.

        Raises
        ------
        ValueError
            As :func:`train`, and after a loss that diverged: nothing follows it.
        TrainingInterrupted
            As :func:`train`.
        """
        if self.stopped:
            raise ValueError(f"self cannot go on: {self.stopped}")
        images, right = _require_data(self.model, x, labels)
        if len(images) != self.options.images:
            raise ValueError(
                f"x must have the {self.options.images} images of before, got"
                f" {len(images)}"
            )
        return _run(self, images, right, require_count("steps", steps), progress)


def train(
    model: Model,
    x: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    steps: int,
    batch: int = 100,
    learning_rate: float = 0.01,
    save_at: Sequence[int] = (),
    progress: Bar | None = None,
    rng: np.random.Generator,
) -> Training[Model]:
    r"""Train a classifier by Adam on the mean cross-entropy of random batches.

    With g the gradient at step k, entry by entry,

    .. math:: u \leftarrow 0.9\,u + 0.1\,g, \qquad
              v \leftarrow 0.999\,v + 0.001\,g^2, \qquad
              \theta \leftarrow \theta - \eta\,
              \frac{u/(1 - 0.9^k)}{\sqrt{v/(1 - 0.999^k)} + 10^{-8}} .

    The batches are parts of a random order of all images; when too few are left for
    another, a new order begins. A training on some parameters θ is
    ``train(model.replace(θ), x, labels, ...)``.

    Parameters
    ----------
    model : Transformer or Perceptron
        With the parameters to start from.
    x : array_like, shape (N, ...)
        Images.
    labels : array_like of int, shape (N,)
        Their classes.
    steps : int
        Number of steps.
    batch : int
        Images of a step; all of them where there are fewer.
    learning_rate : float
        η. Parameters have entries of order 1, so that η is a relative change.
    save_at : sequence of int
        After which numbers of steps the classifier is kept; 0 is before the first.
    progress : callable, optional
        What wraps an iterable and shows how far it is, as ``tqdm.tqdm`` does.
    rng : numpy.random.Generator
        Source of the random orders: one number is drawn from it.

    Returns
    -------
    Training
        Where the loss leaves the float range or exceeds 100 times that of guessing,
        training stops: ``stopped`` is a sentence, which is a DivergenceWarning as
        well, and ``model`` has the parameters of the last step before.

    Raises
    ------
    ValueError
        For images or labels that the classifier refuses, counts below 1, a learning
        rate that is not positive, or a ``progress`` that does not give back what it
        wraps.
    TrainingInterrupted
        On a KeyboardInterrupt: its ``.training`` has every finished step, and goes on
        by ``.training.resume(x, labels, steps=...)``.

    References
    ----------
    Kingma, Ba, *Adam: a method for stochastic optimization*, 2015, arXiv:1412.6980.
    """
    if not isinstance(model, Classifier):
        raise ValueError(f"model must be a classifier, as init makes, got {model!r}")
    images, right = _require_data(model, x, labels)
    require_count("steps", steps)
    options = Options(
        seed=int(require_generator("rng", rng).integers(2**63)),
        images=len(images),
        batch=min(require_count("batch", batch), len(images)),
        learning_rate=require_positive("learning_rate", learning_rate),
        save_at=_require_steps(save_at),
    )
    zeros = {name: np.zeros_like(array) for name, array in model.params.items()}
    saved = {0: model} if 0 in options.save_at else {}
    adam = Adam(model, zeros, zeros, 0)
    start = Training(np.empty(0), saved, None, adam, adam, options)
    return _run(start, images, right, steps, progress)


def _run(
    start: Training[Model], x: Array, labels: Labels, steps: int, progress: Bar | None
) -> Training[Model]:
    """Some steps after a state."""
    options, state, before = start.options, start.state, start.before
    losses, saved = [*start.losses], dict(start.saved)
    limit = DIVERGED * log(len(state.model.params["bias"]))
    numbers = range(state.steps + 1, state.steps + steps + 1)

    def result(good: Adam[Model], stopped: str | None = None) -> Training[Model]:
        # An interruption may have come between a note and the step that it is about.
        kept = {k: model for k, model in saved.items() if k <= good.steps}
        noted = np.array(losses[: good.steps])
        return Training(noted, kept, stopped, good, before, options)

    try:
        for number in _shown(numbers, progress):
            rows, good = _batch(number - 1, options), before
            try:
                loss, gradient = state.model.loss_and_gradient(x[rows], labels[rows])
                if not loss <= limit:
                    raise OverflowError(f"the loss is {loss:.3g}")
                good = state
                after = state.step(gradient, options.learning_rate)
            except OverflowError as error:
                stopped = (
                    f"training diverged in step {number} with"
                    f" learning_rate={options.learning_rate:g}: {error}; the parameters"
                    f" are those after {good.steps} steps"
                )
                warnings.warn(stopped, DivergenceWarning, stacklevel=3)
                return result(good, stopped)
            losses.append(loss)
            if number in options.save_at:
                saved[number] = after.model
            before, state = state, after
    except KeyboardInterrupt:
        raise TrainingInterrupted(result(state)) from None
    return result(state)


def _batch(step: int, options: Options) -> npt.NDArray[np.int64]:
    """Images of a step, counted from 0: a part of the random order of its epoch.

    It depends on the seed and the number of the step alone, so that a training goes on
    wherever it was left.
    """
    epoch, place = divmod(step, options.images // options.batch)
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    return order[place * options.batch : (place + 1) * options.batch]


def _shown(numbers: range, progress: Bar | None) -> Iterator[int]:
    """The numbers, under a progress bar."""
    if progress is None:
        yield from numbers
        return
    bar = progress(numbers) if callable(progress) else None
    if not isinstance(bar, Iterable):
        raise ValueError(f"progress must wrap an iterable as tqdm does, got {progress}")
    given = iter(bar)
    for number in numbers:
        if next(given, None) != number:
            raise ValueError("progress must give back the steps that it wraps")
        yield number
    next(given, None)  # a bar that is asked for more is complete


def _require_data(
    model: Classifier, x: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[Array, Labels]:
    images = model._images(x)
    return images, require_labels(labels, len(images), len(model.params["bias"]))


def _require_steps(save_at: Sequence[int]) -> tuple[int, ...]:
    try:
        numbers = tuple(save_at)
    except TypeError as error:
        raise ValueError(
            f"save_at must be a sequence of numbers of steps, got {save_at!r}"
        ) from error
    return tuple(require_count("save_at", number, least=0) for number in numbers)
