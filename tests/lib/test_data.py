"""The real images, and what is said when they cannot be had."""

import os

import numpy as np
import pytest

from lib import data


@pytest.fixture
def images():
    try:
        return data.fashion_mnist()
    except data.DataUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def test_images_are_the_real_ones(images):
    x, labels = images
    assert x.shape == (900, 784) and x.dtype == np.float64
    assert x.min() == 0 and x.max() == 1
    np.testing.assert_array_equal(np.bincount(labels), np.full(10, 90))
    # Trousers are narrow: their outer columns are darker than those of a pullover.
    means = [x[labels == k].mean(axis=0).reshape(28, 28) for k in range(10)]
    assert means[1][:, :5].mean() < 0.1 * means[2][:, :5].mean()
    # A boot of the last class fills the bottom rows, a bag's image is as wide as tall.
    assert means[9][20:].mean() > means[9][:6].mean()


def test_tokens_are_normalized_and_ordered(images):
    tokens, labels = data.image_tokens(per_class=2)
    assert tokens.shape == (20, 784)
    np.testing.assert_allclose((tokens**2).sum(axis=1), 784, rtol=1e-13)
    np.testing.assert_array_equal(labels, np.repeat(np.arange(10), 2))
    whole, _ = data.image_tokens(per_class=90)
    np.testing.assert_array_equal(whole[90], tokens[2])


@pytest.mark.parametrize("patches", [1, 4, 16, 49, 196, 784])
def test_patches_are_the_squares_of_an_image(images, patches):
    x, labels = data.image_patches(patches)
    across = round(patches**0.5)
    side = 28 // across
    assert x.shape == (900, patches, side * side)
    np.testing.assert_array_equal(labels, images[1])
    for token, place in ((0, 0), (patches - 1, 899), (patches // 3, 500)):
        row, column = divmod(token, across)
        square = images[0][place].reshape(28, 28)[
            row * side : (row + 1) * side, column * side : (column + 1) * side
        ]
        np.testing.assert_array_equal(x[place, token], square.ravel())


def test_a_third_of_each_class_is_held_out_at_random():
    labels = np.repeat([3, 0, 7], [90, 30, 61])
    rows, test = data.held_out(labels, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort([*rows, *test]), np.arange(181))
    assert [np.sum(labels[test] == k) for k in (3, 0, 7)] == [30, 10, 20]
    assert (np.diff(rows) > 0).all() and (np.diff(test) > 0).all()
    _, same = data.held_out(labels, rng=np.random.default_rng(0))
    _, other = data.held_out(labels, rng=np.random.default_rng(1))
    assert (same == test).all() and (other != test).any()
    assert len(data.held_out(labels, 0, rng=np.random.default_rng(0))[1]) == 0


@pytest.mark.parametrize("bad", [9, 0, 16.0])
def test_numbers_of_patches_are_checked(bad):
    with pytest.raises(ValueError, match=f"patches must be one of .* got {bad}"):
        data.image_patches(bad)


@pytest.mark.parametrize("bad", [[[0, 1]], [], [0.5, 1]])
def test_labels_that_cannot_be_divided_are_named(bad):
    with pytest.raises(ValueError, match="labels must be a vector of integers"):
        data.held_out(bad, rng=np.random.default_rng(0))


def test_missing_file_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv(data.OFFLINE_FOLDER, str(tmp_path))
    with pytest.raises(data.DataUnavailable) as error:
        data.fashion_mnist()
    assert str(tmp_path) in str(error.value) and "https://" in str(error.value)


def test_corrupt_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "fashion-mnist-sprite.png").write_bytes(b"not the images")
    monkeypatch.setenv(data.OFFLINE_FOLDER, str(tmp_path))
    with pytest.raises(data.DataUnavailable, match="corrupt"):
        data.fashion_mnist()


@pytest.mark.parametrize("failure", [OSError("no network"), ValueError("hash")])
def test_failed_download_names_the_variable(failure, monkeypatch):
    def retrieve(*args):
        raise failure

    monkeypatch.delenv(data.OFFLINE_FOLDER, raising=False)
    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(data.DataUnavailable, match=data.OFFLINE_FOLDER):
        data.fashion_mnist()


@pytest.mark.parametrize("bad", [0, 91, 1.0])
def test_number_of_images_is_checked(bad):
    with pytest.raises(ValueError, match=f"per_class.*{bad}"):
        data.image_tokens(bad)
