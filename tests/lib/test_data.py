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
