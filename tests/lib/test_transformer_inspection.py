"""Measurements of tokens and weights, and files of other programs."""

import json
import os
import pickle
import struct

import numpy as np
import pytest

from lib.attention import softmax
from lib.sinkhorn import sinkhorn_attention
from lib.transformer import init, inspect

RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal((3, 2, 5, 8))
WEIGHTS = softmax(RNG.standard_normal((2, 2, 4, 5, 5)))


def assert_same(one, other):
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


def test_cosines_and_rank_by_hand():
    orthogonal = np.eye(4, 8)
    equal = np.ones((4, 8)) + np.eye(4, 8) * 1e-9
    pair = np.array([[1, 0], [-1, 0], [0, 2], [0, 3]]) @ np.eye(2, 8)
    report = inspect([orthogonal, equal, pair])
    np.testing.assert_allclose(report.cosines, [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(report.rank, [4, 1, 2], rtol=1e-9)
    np.testing.assert_array_equal(report.clusters, [4, 1, 3])
    np.testing.assert_allclose(report.quantiles[2], [-0.75, 0, 0, 0, 0.75], atol=1e-12)
    assert report.histogram[1, -1] == 1 and report.histogram[2, [0, -1]].tolist() == [
        1 / 6, 1 / 6,
    ]  # fmt: skip
    np.testing.assert_allclose(report.histogram.sum(axis=1), 1)
    np.testing.assert_array_equal(report.edges, np.linspace(-1, 1, 41))
    np.testing.assert_allclose(report.norms[[0, 2]], [8**-0.5, (15 / 32) ** 0.5])
    assert report.entropy is None and report.spread is None


def test_lengths_do_not_matter_to_directions():
    lengths = np.array([1e-150, 1.0, 1e150, 3.0, 7.0])[:, None]
    one, other = inspect(HIDDEN), inspect(HIDDEN * lengths)
    for name in ("cosines", "histogram", "clusters", "rank", "kurtosis"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12
        )


def test_the_batch_is_averaged_over():
    whole = inspect(HIDDEN)
    parts = [inspect(HIDDEN[:, b]) for b in range(2)]
    for name in ("cosines", "histogram", "clusters", "rank", "kurtosis"):
        mean = sum(getattr(part, name) for part in parts) / 2
        np.testing.assert_allclose(getattr(whole, name), mean, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [2, 3, 8, 100])
def test_kurtosis_of_gaussian_coordinates_is_zero_at_any_width(n):
    tokens = np.random.default_rng(n).standard_normal((1, 4000, 2, n)) + 3
    assert abs(inspect(tokens).kurtosis[0]) < 0.1
    heavy = tokens * np.where(np.arange(n) == 0, 30, 1)
    assert n < 8 or inspect(heavy).kurtosis[0] > 3


def test_sharpness_by_hand():
    m = 8
    uniform = np.full((m, m), 1 / m)
    onto_first = np.eye(m)[np.zeros(m, int)]
    causal = np.tri(m) / np.arange(1, m + 1)[:, None]
    doubly = sinkhorn_attention(2 * RNG.standard_normal((m, m)), 2001)
    tokens = RNG.standard_normal((4, m, 3))
    given = np.array([uniform, onto_first, causal, doubly])[:, None]
    report = inspect(tokens, given)
    np.testing.assert_allclose(report.entropy[:2, 0], [1, 0], atol=1e-12)
    np.testing.assert_allclose(report.largest[:2, 0], [1 / m, 1])
    np.testing.assert_allclose(report.columns[[0, 1], 0], [0, 1 - 1 / m], atol=1e-12)
    assert report.columns[3, 0] < 1e-9 < 0.2 < report.columns[2, 0]
    logs = np.mean([np.log(k) for k in range(1, m + 1)])
    np.testing.assert_allclose(report.entropy[2, 0], logs / np.log(m))
    np.testing.assert_allclose(report.spread[:3, 0], 0, atol=1e-12)


def test_spread_is_that_of_the_scores():
    scores = 0.7 * np.random.default_rng(3).standard_normal((2, 3, 4, 6, 6))
    report = inspect(RNG.standard_normal((2, 3, 6, 4)), softmax(scores))
    expected = scores.std(axis=-1).mean(axis=(1, 3))  # (layers, heads)
    np.testing.assert_allclose(report.spread, expected, rtol=1e-9)


def test_traces_of_our_models_fit():
    model = init(
        depth=2, width=8, heads=2, tokens=5, features=3, classes=4,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    trace = model.forward(RNG.standard_normal((7, 5, 3)), trace=True)
    report = inspect(trace.tokens, trace.weights)
    assert report.cosines.shape == (3,) and report.entropy.shape == (2, 2)
    expected = trace.scores.std(axis=-1).mean(axis=(1, 3))
    np.testing.assert_allclose(report.spread, expected, rtol=1e-9)


CODES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "U8": "u1",
}  # fmt: skip


def safetensors(tensors, **changed):
    """Bytes of a file in the published format."""
    header, body = {"__metadata__": {"format": "np"}}, b""
    for name, (kind, array) in tensors.items():
        if kind == "BF16":
            bits = np.ascontiguousarray(array, "<f4").view("<u4") >> 16
            part = bits.astype("<u2").tobytes()
        else:
            part = np.ascontiguousarray(array, CODES[kind]).tobytes()
        header[name] = {
            "dtype": kind, "shape": array.shape,
            "data_offsets": [len(body), len(body) + len(part)],
        } | changed  # fmt: skip
        body += part
    text = json.dumps(header).encode() + b"   "
    return struct.pack("<Q", len(text)) + text + body


def test_npy_files_are_read(tmp_path):
    for name, array in {"h": HIDDEN, "w": WEIGHTS}.items():
        np.save(tmp_path / f"{name}.npy", array)
    report = inspect(tmp_path / "h.npy", str(tmp_path / "w.npy"))
    assert_same(report, inspect(HIDDEN, WEIGHTS))
    np.save(tmp_path / "h.npy", np.asfortranarray(HIDDEN.astype(np.float32)))
    assert_same(inspect(tmp_path / "h.npy"), inspect(HIDDEN.astype(np.float32)))


@pytest.mark.parametrize("kind", ["F64", "F32", "F16", "BF16"])
def test_safetensors_files_are_read(tmp_path, kind):
    path = tmp_path / "both.safetensors"
    # Numbers that all four types have.
    hidden, weights = np.round(HIDDEN * 8) / 8 + 9, np.full((2, 1, 5, 5), 0.25)
    weights[..., 0] = 0
    path.write_bytes(
        safetensors({"weights": (kind, weights), "hidden": (kind, hidden)})
    )
    assert_same(inspect(path, path), inspect(hidden, weights))
    path.write_bytes(safetensors({"of any name": (kind, hidden)}))
    assert_same(inspect(path), inspect(hidden))


def test_integers_are_numbers_too(tmp_path):
    whole = np.arange(1, 25).reshape(2, 3, 4) ** 2 % 17 + 1
    path = tmp_path / "whole.safetensors"
    for kind in ("I64", "U8"):
        path.write_bytes(safetensors({"hidden": (kind, whole)}))
        assert_same(inspect(path), inspect(whole))


def damaged():
    """Files that cannot be read, by what is wrong with them."""
    good = safetensors({"hidden": ("F64", HIDDEN)})
    yield "cut short", "a.safetensors", good[:-1]
    yield "cut short", "b.safetensors", good[:40]
    yield "cut short", "c.safetensors", good[:5]
    yield "cut short", "d.safetensors", b"PK\x03\x04 a zip archive of something else"
    yield "no JSON", "e.safetensors", struct.pack("<Q", 4) + b"{'a'" + bytes(9)
    yield "no JSON", "f.safetensors", struct.pack("<Q", 40000) + b"[" * 40000
    yield "no table", "g.safetensors", struct.pack("<Q", 2) + b"[]"
    yield "no tensor 'hidden'; its tensors: none", "h.safetensors", safetensors({})
    two = {"one": ("F64", HIDDEN), "two": ("F64", HIDDEN)}
    yield "its tensors: one, two", "i.safetensors", safetensors(two)
    for what, changed in {
        "of type 'F8_E4M3'": dict(dtype="F8_E4M3"),
        "of type ": dict(dtype=["F64"]),
        "bytes are no tensor": dict(shape=[3, 2, 5, 9]),
        "does not describe a tensor": dict(shape=[-3, -2, 5, 8]),
        "not describe a tensor": dict(data_offsets=[8, 0]),
        "not describe a": dict(data_offsets=[0.5, 1]),
        "header does not": dict(shape=None),
    }.items():
        file = safetensors({"hidden": ("F64", HIDDEN)}, **changed)
        yield what, "j.safetensors", file
    from io import BytesIO

    stored = BytesIO()
    np.save(stored, HIDDEN)
    yield "damaged or cut short", "k.npy", stored.getvalue()[:-1]
    yield "damaged or cut short", "l.npy", stored.getvalue()[:30]
    yield "no .npy file", "m.npy", pickle.dumps([1, 2])
    yield "no .npy file", "n.npy", b""
    yield "something follows", "o.npy", stored.getvalue() + b"\0"
    objects = BytesIO()
    np.save(objects, np.array([HIDDEN, None], object), allow_pickle=True)
    yield "damaged or cut short", "p.npy", objects.getvalue()


@pytest.mark.parametrize(("what", "name", "content"), [*damaged()])
def test_damaged_and_foreign_files_are_one_sentence(tmp_path, what, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        inspect(path)
    assert what in str(caught.value) and str(path) in str(caught.value)
    assert str(caught.value).startswith("hidden: ")


def test_a_file_is_never_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "boom"),)

    np.save(tmp_path / "bomb.npy", np.array([Bomb()], object), allow_pickle=True)
    with pytest.raises(ValueError, match="hidden: .* cannot be read"):
        inspect(tmp_path / "bomb.npy")
    assert not (tmp_path / "boom").exists()


def test_paths_to_nothing_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"weights: .*no.npy' cannot be read: No such"):
        inspect(HIDDEN, tmp_path / "no.npy")
    with pytest.raises(ValueError, match=r"a .npy or .safetensors file, got 'a.npz'"):
        inspect("a.npz")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ValueError, match="hidden: .*folder.npy' cannot be read"):
        inspect(tmp_path / "folder.npy")


@pytest.mark.parametrize(
    ("hidden", "weights", "sentence"),
    [
        (HIDDEN[0, 0], None, r"hidden must have shape .* got \(5, 8\)"),
        (HIDDEN[:, :, :1], None, r"hidden must have shape .* got \(3, 2, 1, 8\)"),
        (HIDDEN[:0], None, r"hidden must have shape .* got \(0, 2, 5, 8\)"),
        (np.where(HIDDEN > 2, np.nan, HIDDEN), None, r"hidden must be finite, but"),
        (HIDDEN * (np.arange(5) > 0)[:, None], None, "hidden has a token that is 0"),
        (HIDDEN, WEIGHTS[..., :4, :4], r"weights must .* 5, 5\), got \(2, 2, 4, 4"),
        (HIDDEN, WEIGHTS[0, 0], r"weights must have .* got \(4, 5, 5\)"),
        (HIDDEN, 2 * WEIGHTS, "weights must have rows that sum to 1, one is off by 1"),
        (HIDDEN, WEIGHTS - 0.2, "weights must not be negative, got -0"),
        (HIDDEN, WEIGHTS * np.inf, "weights must be finite, but weights"),
    ],
)
def test_arrays_that_do_not_fit_are_named(hidden, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        inspect(hidden, weights)
