"""Training: Adam, interruptions that cost no digit, and divergence in one sentence."""

import os
import pickle
import signal

import numpy as np
import pytest
from tqdm import tqdm

from lib import data
from lib.transformer import (
    DivergenceWarning,
    TrainingInterrupted,
    init,
    perceptron,
    train,
)

X = np.random.default_rng(1).standard_normal((30, 4, 3))
LABELS = np.arange(30) % 3


def model(seed=0, **changed):
    kind = dict(depth=1, width=6, heads=2, tokens=4, features=3, classes=3) | changed
    return init(**kind, rng=np.random.default_rng(seed))


def trained(steps=12, seed=2, **more):
    options = dict(batch=8, save_at=(0, 5, 12)) | more
    return train(
        model(), X, LABELS, steps=steps, rng=np.random.default_rng(seed), **options
    )


def assert_same_digits(one, other):
    assert one.losses.tobytes() == other.losses.tobytes()
    assert one.saved.keys() == other.saved.keys()
    pairs = [(one.model, other.model)]
    pairs += [(one.saved[k], other.saved[k]) for k in one.saved]
    for a, b in pairs:
        assert a.params.keys() == b.params.keys()
        assert all(a.params[k].tobytes() == b.params[k].tobytes() for k in a.params)


def test_steps_are_those_of_adam():
    """All images in each step, so that the order does not matter."""
    start, rate, θ = model(), 0.03, {}
    u, v = ({k: 0.0 for k in start.params} for _ in range(2))
    current, losses = start, []
    for k in range(1, 5):
        loss, gradient = current.loss_and_gradient(X, LABELS)
        losses.append(loss)
        for name, g in gradient.items():
            u[name] = 0.9 * u[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            mean, square = u[name] / (1 - 0.9**k), v[name] / (1 - 0.999**k)
            θ[name] = current.params[name] - rate * mean / (np.sqrt(square) + 1e-8)
        current = current.replace(θ)
    run = train(
        start, X, LABELS, steps=4, batch=99, learning_rate=rate,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    np.testing.assert_allclose(run.losses, losses, rtol=1e-9)
    for name, array in current.params.items():
        np.testing.assert_allclose(run.model.params[name], array, rtol=1e-7)


def batches(monkeypatch, steps, seed=3):
    """The images of each step, by what a classifier is asked about."""
    start = perceptron(features=30, hidden=0, classes=3, rng=np.random.default_rng(0))
    kind, seen = type(start), []
    method = kind.loss_and_gradient

    def noted(self, x, labels):
        seen.append(x.argmax(axis=1))
        assert (labels == LABELS[seen[-1]]).all()
        return method(self, x, labels)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "loss_and_gradient", noted)
        rng = np.random.default_rng(seed)
        train(start, np.eye(30), LABELS, steps=steps, batch=7, rng=rng)
    return np.array(seen)


def test_batches_are_parts_of_random_orders(monkeypatch):
    """Four batches of 7 are made of an order of 30; two images wait for the next."""
    first, second = batches(monkeypatch, 8).reshape(2, 28)
    for order in (first, second):
        assert len({*order}) == 28 and (np.diff(order) < 0).any()
    assert (first != second).any()
    assert (batches(monkeypatch, 4).ravel() == first).all()
    assert (batches(monkeypatch, 4, seed=5).ravel() != first).any()


def test_a_seed_gives_the_same_digits_and_nothing_is_changed():
    x, labels, start = X.copy(), LABELS.copy(), model()
    before = {k: v.copy() for k, v in start.params.items()}
    assert_same_digits(trained(), trained())
    run = train(start, x, labels, steps=3, rng=np.random.default_rng(0))
    assert (x == X).all() and (labels == LABELS).all() and run.stopped is None
    assert all((start.params[k] == before[k]).all() for k in before)
    assert np.abs(trained(seed=9).losses - trained().losses).max() > 1e-3


def test_saved_states_are_those_of_shorter_trainings():
    long = trained(save_at=[0, 5, 9, 12, 99])
    assert [*long.saved] == [0, 5, 9, 12] and len(long.losses) == 12
    for k in (5, 9, 12):
        short = trained(steps=k).model
        for name, array in short.params.items():
            np.testing.assert_array_equal(long.saved[k].params[name], array)


@pytest.mark.parametrize("first", [1, 4, 5, 11])
def test_a_training_goes_on_to_the_same_digits(first):
    part = pickle.loads(pickle.dumps(trained(steps=first)))
    assert_same_digits(part.resume(X, LABELS, steps=12 - first), trained())


@pytest.mark.parametrize("after", [0, 1, 5, 7, 12])
def test_an_interrupted_training_goes_on_to_the_same_digits(after):
    def control_c(steps):
        for number in steps:
            if number == after + 1:
                signal.raise_signal(signal.SIGINT)
            yield number
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted, match=f"after {after} steps") as caught:
        trained(progress=control_c)
    part = caught.value.training
    assert isinstance(caught.value, KeyboardInterrupt) and len(part.losses) == after
    if after < 12:
        part = part.resume(X, LABELS, steps=12 - after)
    assert_same_digits(part, trained())


def test_an_interruption_anywhere_finds_whole_steps(monkeypatch):
    """One at each place where the classifier is asked for something."""
    whole, calls = trained(), []
    kind = type(whole.model)

    def counted(method, stop):
        def call(*arguments, **named):
            calls.append(None)
            if len(calls) == stop:
                raise KeyboardInterrupt
            return method(*arguments, **named)

        return call

    methods = {name: getattr(kind, name) for name in ("loss_and_gradient", "replace")}
    for stop in (1, 2, 9, 10, 11, 23, 24):
        calls.clear()
        with monkeypatch.context() as patch:
            for name, method in methods.items():
                patch.setattr(kind, name, counted(method, stop))
            with pytest.raises(TrainingInterrupted) as caught:
                trained()
        part = caught.value.training
        assert len(part.losses) == (stop - 1) // 2
        steps = 12 - len(part.losses)
        assert_same_digits(part.resume(X, LABELS, steps=steps), whole)


@pytest.mark.parametrize(
    ("norm", "rate"),
    [("none", 1.0), ("pre", 60.0), ("post", 60.0)]
    + [(norm, 1e200) for norm in ("none", "pre", "post")],
)
def test_a_rate_that_diverges_is_a_sentence_and_a_finite_state(norm, rate):
    start = model(norm=norm, depth=3)
    options = dict(
        steps=400, batch=8, learning_rate=rate, save_at=range(400),
        rng=np.random.default_rng(2),
    )  # fmt: skip
    with pytest.warns(DivergenceWarning, match="training diverged in step") as caught:
        run = train(start, X, LABELS, **options)
    assert run.stopped == str(caught[0].message) and f"{rate:g}" in run.stopped
    good = len(run.losses)
    assert f"those after {good} steps" in run.stopped and good < 400
    assert all(np.isfinite(array).all() for array in run.model.params.values())
    assert [*run.saved] == [*range(good + 1)] and (run.losses < 110).all()
    with pytest.raises(ValueError, match="cannot go on: training diverged"):
        run.resume(X, LABELS, steps=1)


def test_divergence_is_the_same_after_an_interruption():
    start = model(norm="none", depth=3)
    options = dict(steps=400, batch=8, learning_rate=1.0)

    def run(**changed):
        rng = np.random.default_rng(2)
        return train(start, X, LABELS, **options | changed, rng=rng)

    with pytest.warns(DivergenceWarning):
        whole = run()
    # The step after the last good one was taken, and found to be bad by the next.
    assert len(whole.losses) > 3
    for first in range(1, len(whole.losses) + 2):
        part = run(steps=first)
        assert part.stopped is None
        with pytest.warns(DivergenceWarning):
            rest = part.resume(X, LABELS, steps=400)
        assert rest.stopped == whole.stopped
        assert_same_digits(rest, whole)


def test_a_progress_bar_shows_the_steps(capsys):
    trained(progress=tqdm)
    assert "12/12" in capsys.readouterr().err
    trained()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [7, lambda steps: None, lambda steps: [1, 3]])
def test_what_is_no_progress_bar_is_named(progress):
    with pytest.raises(ValueError, match="progress must"):
        trained(progress=progress)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (dict(steps=0), "steps must be an integer from 1 .* got 0"),
        (dict(batch=2.5), "batch must be an integer from 1 .* got 2.5"),
        (dict(learning_rate=-1), "learning_rate must be a positive .* got -1"),
        (dict(save_at=5), "save_at must be a sequence .* got 5"),
        (dict(save_at=[-1]), "save_at must be an integer from 0 .* got -1"),
    ],
)
def test_what_trains_nothing_is_named(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        trained(**changed)


def test_data_that_do_not_fit_are_named():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"model must be a classifier.* got \{\}"):
        train({}, X, LABELS, steps=1, rng=rng)
    with pytest.raises(ValueError, match=r"labels\[29\] is 7"):
        train(model(), X, [*LABELS[:-1], 7], steps=1, rng=rng)
    with pytest.raises(ValueError, match=r"x must be finite, but x\[29, 3, 2\] is nan"):
        broken = X.copy()
        broken[-1, -1, -1] = np.nan
        train(model(), broken, LABELS, steps=1, rng=rng)
    with pytest.raises(ValueError, match="x must have the 30 images of before, got 29"):
        trained().resume(X[1:], LABELS[1:], steps=1)


def images():
    try:
        x, labels = data.image_patches(16)
    except data.DataUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    rows, test = data.held_out(labels, rng=np.random.default_rng(0))
    x = (x - x[rows].mean()) / x[rows].std()
    return x[rows], labels[rows], x[test], labels[test]


@pytest.mark.parametrize("attention", ["softmax", "shaped", "sinkhorn"])
def test_real_images_are_told_apart(attention):
    """Guessing is right once in ten times."""
    x, labels, others, right = images()
    rng = np.random.default_rng(1)
    start = init(
        depth=2, width=16, heads=2, tokens=16, features=49, classes=10,
        attention=attention, rng=rng,
    )  # fmt: skip
    run = train(start, x, labels, steps=300, batch=50, learning_rate=0.02, rng=rng)
    assert start.accuracy(others, right) < 0.3
    assert run.model.accuracy(x, labels) > 0.8
    assert run.model.accuracy(others, right) > 0.55
