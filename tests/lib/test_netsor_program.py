"""Programs of wide vectors: closed kernels, finite networks, violated hypotheses."""

import numpy as np
import pytest
from scipy import integrate, stats

from lib.hierarchical import AttentionLimit
from lib.netsor import Program, architectures

COV = np.array([[2.0, 0.5], [0.5, 1.0]])


def rng(key=0):
    return np.random.default_rng(key)


def critical(tests, *sizes):
    """Critical value of the Kolmogorov-Smirnov distance at 1e-6 over some tests."""
    size = 1 / sum(1 / size for size in sizes)
    return np.sqrt(-np.log(0.5e-6 / tests) / (2 * size))


def relu(x):
    return np.maximum(x, 0)


def clip(x):
    return np.clip(x, -9, 9)


def scalar_program(cov=COV, *, bounded=True, same=False, reuse=False):
    """Two tokens, queries, keys and all scores; or one that breaks a hypothesis."""
    program = Program()
    tokens = [program.nonlin(clip, x, bounded=bounded) for x in program.inputs(cov)]
    w_query = program.matrix()
    w_key = w_query if same else program.matrix()
    queries = [program.matmul(w_query, x) for x in tokens]
    keys = [program.matmul(w_key, x) for x in tokens]
    scores = [[program.dot(q, k) for k in keys] for q in queries]
    if reuse:
        program.matmul(w_key, tokens[0])
    return program, queries, keys, scores


def arc_cosine(a, b, c):
    """2 E relu(X) relu(Y) for variances a, b and covariance c."""
    angle = np.arccos(c / np.sqrt(a * b))
    return np.sqrt(a * b) / np.pi * (np.sin(angle) + (np.pi - angle) * np.cos(angle))


def test_relu_layers_have_the_arc_cosine_kernel():
    program = Program()
    vectors, covariance = program.inputs(COV), 0.5
    first = program.matrix()
    vectors = [program.matmul(first, h) for h in vectors]
    assert program.kernel(*vectors) == 0.5
    assert program.kernel(vectors[0], vectors[0]) == 2
    for _ in range(3):
        weights = program.matrix(var=2.0)
        vectors = [program.matmul(weights, program.nonlin(relu, h)) for h in vectors]
        covariance = arc_cosine(2.0, 1.0, covariance)
        assert program.kernel(*vectors) == pytest.approx(covariance, abs=3e-4)
        for h, variance in zip(vectors, (2.0, 1.0), strict=True):
            assert program.kernel(h, h) == pytest.approx(variance, abs=3e-4)
    draws = program.limit(vectors, size=200_000, rng=rng())
    assert np.cov(draws.T)[0, 1] == pytest.approx(covariance, abs=0.02)


def test_tanh_kernel_is_a_double_integral():
    program = Program()
    x, y = program.inputs(COV)
    W = program.matrix(var=1.5)
    g = program.matmul(W, program.nonlin(np.tanh, x))
    h = program.matmul(W, program.nonlin(np.tanh, y))
    other = program.matmul(program.matrix(), program.nonlin(np.tanh, y))
    law = stats.multivariate_normal(cov=COV)
    exact, _ = integrate.dblquad(
        lambda b, a: np.tanh(a) * np.tanh(b) * law.pdf([a, b]), -9, 9, -7, 7
    )
    assert program.kernel(g, h) == pytest.approx(1.5 * exact, abs=1e-4)
    assert program.kernel(g, other) == program.kernel(g, x) == 0


def test_scores_have_covariance_v_times_v():
    """Cov(p_ij, p_kl) = V_ik V_jl, exact where a clip does not act."""
    program, _, _, scores = scalar_program()
    flat = [p for row in scores for p in row]
    covariance = [[program.kernel(p, q) for q in flat] for p in flat]
    np.testing.assert_allclose(covariance, np.kron(COV, COV), rtol=2e-5, atol=2e-5)
    size = 200_000
    draws = program.limit(flat, size=size, rng=rng(1))
    assert draws.shape == (size, 4)
    np.testing.assert_allclose(np.cov(draws.T), np.kron(COV, COV), atol=0.06, rtol=0)
    assert stats.ks_1samp(draws[:, 1] / 2**0.5, stats.norm.cdf).statistic < critical(
        1, size
    )


def test_scores_with_crossed_matrices_are_correlated():
    """⟨Wx, Uy⟩ and ⟨Ux, Wy⟩ share both: Cov = E[Z^{Wx} Z^{Wy}] E[Z^{Uy} Z^{Ux}]."""
    program = Program()
    x, y = (program.nonlin(clip, x, bounded=True) for x in program.inputs(COV))
    W, U = program.matrix(), program.matrix(var=3.0)
    g = [program.matmul(matrix, h) for matrix in (W, U) for h in (x, y)]
    p, q = program.dot(g[0], g[3]), program.dot(g[2], g[1])
    assert program.check() == []
    assert program.kernel(p, q) == pytest.approx(3 * 0.5**2, rel=1e-4, abs=0)
    assert program.kernel(p, p) == pytest.approx(3 * 2.0, rel=1e-4, abs=0)


def test_scores_have_their_covariance_at_any_width():
    program, _, _, scores = scalar_program()
    flat, size = [p for row in scores for p in row], 150_000
    draws = program.finite(3, flat, size=size, rng=rng(20))
    products = draws[:, :, None] * draws[:, None, :]
    # Given inputs V ⊗ V; in the mean over Gaussian inputs of width 3, Wishart moments.
    a, b, c = COV[0, 0], COV[1, 1], COV[0, 1]
    expected = [a * a * 5 / 3, a * b + 2 * c * c / 3]
    moments = products.mean(axis=0)[[0, 1], [0, 1]]
    noise = products.std(axis=0)[[0, 1], [0, 1]] / np.sqrt(size)
    assert (np.abs(moments - expected) < 5 * noise).all() and (noise < 0.1).all()


def test_three_dependent_vectors_keep_their_covariances():
    cov = np.array([[1.0, 0.8, 0.7], [0.8, 1.0, 0.9], [0.7, 0.9, 2.0]])
    program = Program()
    x = program.inputs(cov)
    one, two = (program.nonlin(np.tanh, x[k]) for k in (1, 2))
    g = rng(21).standard_normal((2_000_000, 3)) @ np.linalg.cholesky(cov).T
    product = np.tanh(g[:, 1]) * np.tanh(g[:, 2])
    noise = product.std() / np.sqrt(len(product))
    assert abs(program.kernel(one, two) - product.mean()) < 5 * noise + 1e-4


def test_scores_are_independent_of_the_vectors_in_the_limit_only():
    program, queries, keys, scores = scalar_program()
    draws = program.limit([queries[0], keys[0], scores[0][0]], size=100_000, rng=rng(2))
    product = draws[:, 0] * draws[:, 1]
    assert abs(np.corrcoef(product, draws[:, 2])[0, 1]) < 5 / np.sqrt(100_000)
    outputs = [queries[0], keys[0], scores[0][0]]
    small = program.finite(3, outputs, size=20_000, rng=rng(3))
    assert np.corrcoef(small[:, 0] * small[:, 1], small[:, 2])[0, 1] > 0.3


@pytest.mark.parametrize("width", [5, 40])
def test_finite_networks_are_those_written_by_hand(width):
    """tanh of two tied products, and their scalar product, with plain numpy."""
    program = Program()
    x, y = program.inputs(COV)
    W, U = program.matrix(var=1.7), program.matrix()
    g, h = program.matmul(W, x), program.matmul(W, y)
    p = program.dot(program.matmul(U, x), program.matmul(U, y))
    out = program.nonlin(lambda g, h, p: np.tanh(g) * p + h, g, h, p)
    size, generator = 8000, rng(4)
    draws = program.finite(width, [out, p, g], size=size, rng=rng(5))
    root = np.linalg.cholesky(COV)
    x, y = np.moveaxis(generator.standard_normal((size, width, 2)) @ root.T, -1, 0)
    W, U = generator.standard_normal((2, size, width, width)) / np.sqrt(width)
    W *= np.sqrt(1.7)
    g, h = (W @ x[..., None])[..., 0], (W @ y[..., None])[..., 0]
    p = ((U @ x[..., None]) * (U @ y[..., None])).sum(axis=(1, 2)) / np.sqrt(width)
    out = np.tanh(g) * p[:, None] + h
    for column, hand in enumerate((out[:, 0], p, g[:, 0])):
        statistic = stats.ks_2samp(draws[:, column], hand).statistic
        assert statistic < critical(6, size, size)


def test_finite_networks_tend_to_the_limit():
    program, _, _, scores = scalar_program()
    values = program.matmul(
        program.matrix(), program._lines and program.inputs([[1]])[0]
    )
    out = program.nonlin(lambda p, z: np.tanh(p) * z, scores[0][1], values)
    outputs, size = [out, scores[1][1]], 3000
    limit = program.limit(outputs, size=100_000, rng=rng(6))
    distances = []
    for width in (2, 100):
        finite = program.finite(width, outputs, size=size, rng=rng(width))
        distances.append(
            [
                stats.ks_2samp(a, b).statistic
                for a, b in zip(finite.T, limit.T, strict=True)
            ]
        )
    assert max(distances[1]) < critical(2, size, 100_000) < max(distances[0])
    # Gaussian given the scalar, with a heavier tail without it.
    assert stats.kurtosis(limit[:, 0]) > 0.5


def test_tied_products_are_correlated_and_untied_are_not():
    program = Program()
    x, y = program.inputs(COV)
    W, U = program.matrix(), program.matrix()
    draws = program.limit(
        [program.matmul(W, x), program.matmul(W, y), program.matmul(U, y), x],
        size=100_000,
        rng=rng(7),
    )
    expected = np.diag([2.0, 1.0, 1.0, 2.0])
    expected[0, 1] = expected[1, 0] = 0.5
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.05, rtol=0)


def test_linearly_dependent_vectors_stay_dependent():
    program = Program()
    x, y = program.inputs(np.ones((2, 2)))
    W = program.matrix()
    g, h = program.matmul(W, x), program.matmul(W, y)
    draws = program.limit([g, h, x, y], size=1000, rng=rng(8))
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=1e-7, rtol=0)
    np.testing.assert_allclose(draws[:, 2], draws[:, 3], atol=1e-7, rtol=0)
    # Adding lines after a run is seen by the next one.
    total = program.nonlin(lambda a, b: a + b, g, h)
    assert program.kernel(total, total) == pytest.approx(4, abs=1e-6)


@pytest.mark.parametrize("size", [1e-14, 1e14])
def test_covariances_of_any_size_are_scaled(size):
    """For functions of degree 1: no variance is small or large by itself."""
    kernels = []
    for scale in (1.0, size):
        program = Program()
        one, two = program.inputs(scale * COV)
        first, second = (program.nonlin(relu, x) for x in (one, two))
        kernels.append([program.kernel(first, y) / scale for y in (first, second)])
    np.testing.assert_allclose(*kernels, rtol=1e-12)


def test_program_without_scalars_always_passes():
    program = Program()
    (x,) = program.inputs([[1.0]])
    W = program.matrix()
    program.matmul(W, program.nonlin(np.exp, program.matmul(W, x)))
    assert program.check() == []
    assert str(program).splitlines()[1] == "  2  g1 = W1 x1"


def test_scores_of_bounded_tokens_pass():
    program, *_ = scalar_program()
    assert program.check() == [] and len(program.scalars) == 4


def nested():
    program, _, _, scores = scalar_program()
    (z,) = program.inputs([[1.0]])
    h = program.nonlin(lambda p, z: clip(p * z), scores[0][0], z, bounded=True)
    g = [program.matmul(program.matrix(), h) for _ in range(2)]
    program.dot(*g)
    return program


def raw_factor():
    program = Program()
    x, y = program.inputs(COV)
    program.dot(x, program.matmul(program.matrix(), y))
    return program


UNBOUNDED, *_ = scalar_program(bounded=False)
TIED, *_ = scalar_program(same=True)
REUSED, *_ = scalar_program(reuse=True)


@pytest.mark.parametrize(
    ("program", "count", "parts"),
    [
        (
            UNBOUNDED,
            8,
            ["line 9, p1 = dot(g1, g3)", "h1 in g1 = W1 h1 is not declared"],
        ),
        (TIED, 4, ["line 9, p1", "both factors use the matrix W1"]),
        (REUSED, 4, ["W2 is also used in line 13, g5 = W2 h1"]),
        (nested(), 3, ["line 15, g5 = W3 h3", "argument depends on a dot"]),
        (nested(), 3, ["line 17, p5", "depends on another dot product"]),
        (raw_factor(), 2, ["line 4, p1 = dot(x1, g1)", "x1 is not a matrix product"]),
        (raw_factor(), 2, ["x2 in g1 = W1 x2 is not declared bounded"]),
    ],
)
def test_check_names_hypothesis_and_line(program, count, parts):
    messages = program.check()
    assert len(messages) == count
    assert any(all(part in message for part in parts) for message in messages)
    with pytest.raises(ValueError, match="the theorem does not apply: line"):
        program.limit(program.scalars, size=5, rng=rng())


def test_the_error_counts_what_it_does_not_name():
    for unbounded in (1, 2):
        program = Program()
        bounded = [k >= unbounded for k in range(2)]
        tokens = [
            program.nonlin(clip, x, bounded=flag)
            for x, flag in zip(program.inputs(COV), bounded, strict=True)
        ]
        score = program.dot(*(program.matmul(program.matrix(), x) for x in tokens))
        first, *others = program.check()
        assert len(others) == unbounded - 1
        with pytest.raises(ValueError) as error:
            program.kernel(score, score)
        more = ", and 1 more" if others else ""
        assert str(error.value) == f"the theorem does not apply: {first}{more}"


def test_formulas_without_their_hypotheses():
    """Unbounded tokens and reused matrices have a formal limit, tied scores none."""
    for options in ({"bounded": False}, {"reuse": True}):
        program, _, _, scores = scalar_program(**options)
        p = scores[0][1]
        assert program.kernel(p, p, strict=False) == pytest.approx(2, rel=1e-5, abs=0)
        draws = program.limit([p], size=50_000, strict=False, rng=rng())
        assert draws.var() == pytest.approx(2, rel=0.05, abs=0)
    for program, words in (
        (scalar_program(same=True)[0], "share a matrix, diverges"),
        (nested(), "depends on a dot product"),
        (raw_factor(), "not a matrix product"),
    ):
        with pytest.raises(ValueError, match=words):
            program.limit(program.scalars[-1:], size=5, strict=False, rng=rng())


def test_tied_scores_diverge_at_finite_width():
    program, _, _, scores = scalar_program(np.eye(2), same=True)
    for width in (16, 64):
        p = program.finite(width, [scores[0][0]], size=2000, rng=rng())
        assert p.mean() == pytest.approx(np.sqrt(width), rel=0.05, abs=0)


def square_of_tanh(y):
    return np.tanh(y) ** 2


def test_averages_of_a_network_are_those_of_its_coordinates():
    """One network of width 1 has one coordinate; of more, the mean of all."""
    program = Program()
    (x,) = program.inputs([[1.0]])
    first, mean = program.average(np.cos, x), program.average(lambda x: x, x)
    one = program.finite(1, [x, first, mean], size=5, rng=rng())
    np.testing.assert_allclose(one[:, 1], np.cos(one[:, 0]))
    np.testing.assert_allclose(one[:, 2], one[:, 0])
    wide = program.finite(400, [mean], size=4000, rng=rng())[:, 0]
    assert wide.std() == pytest.approx(1 / 20, rel=0.05, abs=0)
    # A scalar among the arguments is the same at all coordinates.
    program, queries, _, scores = scalar_program()
    score = scores[0][0]
    both = program.average(lambda q, p: p + 0 * q, queries[0], score)
    draws = program.finite(7, [score, both], size=6, rng=rng())
    np.testing.assert_allclose(draws[:, 0], draws[:, 1])


def test_averages_without_scalars_tend_to_a_constant():
    program, outputs = architectures.mlp(np.eye(2))
    average = program.average(square_of_tanh, outputs[0])
    limit = program.limit([average], size=4, rng=rng())[:, 0]
    second = integrate.quad(
        lambda z: square_of_tanh(z) * stats.norm.pdf(z), -10, 10, epsabs=1e-10
    )[0]
    np.testing.assert_allclose(limit, second, atol=2e-4)
    finite = program.finite(400, [average], size=100, rng=rng())[:, 0]
    assert abs(finite.mean() - second) < 0.02 and finite.std() < 0.06


def test_averages_with_scalars_tend_in_law_to_the_conditional_mean():
    """The theorem of tensor programs, for one row of attention."""
    program, rows = architectures.attention(np.eye(4), 1, 2.0)
    average = program.average(square_of_tanh, rows[0])
    limit = program.limit([average], size=4000, rng=rng())[:, 0]
    v = AttentionLimit(np.eye(4), 1, 2.0).conditional_variance(4000, rng=rng(1))
    x, w = np.polynomial.hermite_e.hermegauss(60)
    means = square_of_tanh(np.sqrt(v)[:, None] * x) @ w / w.sum()
    assert stats.ks_2samp(limit, means).pvalue > 1e-3
    finite = program.finite(300, [average], size=400, rng=rng(2))[:, 0]
    assert stats.ks_2samp(finite, limit).statistic < 0.15
    # A network of a small width, and a constant, are something else.
    small = program.finite(8, [average], size=400, rng=rng(3))[:, 0]
    assert stats.ks_2samp(small, limit).pvalue < 1e-8
    assert limit.std() > 0.05


def test_averages_and_scalars_are_drawn_jointly():
    program, queries, _, scores = scalar_program()
    score = scores[0][0]
    average = program.average(lambda q, p: p + q**2, queries[0], score)
    p, a, q = program.limit([score, average, queries[0]], size=3000, rng=rng()).T
    np.testing.assert_allclose(a - p, (a - p)[0], atol=1e-10)
    assert (a - p)[0] == pytest.approx(
        program.kernel(queries[0], queries[0]), rel=2e-3, abs=0
    )
    assert np.unique(q).size == np.unique(p).size == 3000


def test_same_seed_same_draws():
    program, queries, *_ = scalar_program()
    for run in (
        lambda: program.finite(7, queries, size=3, rng=rng(1)),
        lambda: program.limit(queries, size=3, rng=rng(1)),
    ):
        np.testing.assert_array_equal(run(), run())


def test_large_runs_are_drawn_in_blocks():
    """Blocks neither repeat nor lose draws."""
    program = Program()
    (x,) = program.inputs([[1.0]])
    g = program.matmul(program.matrix(), x)
    draws = program.limit([g], size=50_001, rng=rng())[:, 0]
    assert draws.size == np.unique(draws).size == 50_001
    finite = program.finite(300, [g], size=60, rng=rng())[:, 0]
    assert finite.size == np.unique(finite).size == 60


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, g: p.inputs(np.ones((2, 3))), "cov must be square"),
        (lambda p, g: p.inputs(-np.eye(2)), "cov must be positive"),
        (lambda p, g: p.matrix(var=0.0), "var .* got 0.0"),
        (
            lambda p, g: p.matmul("W1", g),
            "W must be a matrix of this program, got 'W1'",
        ),
        (lambda p, g: p.matmul(Program().matrix(), g), "W must be a matrix of this"),
        (lambda p, g: p.matmul(p.matrix(), "g7"), "h must be a vector .* got 'g7'"),
        (lambda p, g: p.matmul(p.matrix(), p.dot(g, g)), "h must be a vector"),
        (lambda p, g: p.nonlin(3.0, g), "f must be a function, got 3.0"),
        (lambda p, g: p.nonlin(np.tanh), "args must contain a vector"),
        (lambda p, g: p.nonlin(np.tanh, p.dot(g, g)), "args must contain a vector"),
        (lambda p, g: p.nonlin(np.tanh, g, bounded=1), "bounded must be True or False"),
        (lambda p, g: p.dot(g, *Program().inputs([[1]])), "g2 .* of another program"),
        (lambda p, g: p.limit([], size=1, rng=rng()), "outputs must be a list"),
        (lambda p, g: p.limit([g], size=0, rng=rng()), "size .* got 0"),
        (lambda p, g: p.finite(0, [g], size=1, rng=rng()), "width .* got 0"),
        (lambda p, g: p.kernel(g, 2), "two must be a vector or scalar"),
        (lambda p, g: p.average(3.0, g), "f must be a function, got 3.0"),
        (lambda p, g: p.average(np.cos), "args must contain a vector"),
        (lambda p, g: p.average(np.cos, *Program().inputs([[1]])), "another program"),
        (lambda p, g: p.nonlin(np.cos, p.average(np.cos, g)), "args must be a vector"),
        (lambda p, g: p.kernel(g, p.average(np.cos, g)), "two must be a vector or"),
        (
            lambda p, g: Program().finite(2, [p.average(np.cos, g)], size=1, rng=rng()),
            "outputs must be a vector or scalar",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    program = Program()
    g = program.matmul(program.matrix(), *program.inputs([[1.0]]))
    with pytest.raises(ValueError, match=message):
        call(program, g)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda g: g[:1], r"line 3, h1 = <lambda>\(g1\): f must return .* got shape"),
        (lambda g: np.sum(g), "got shape"),
        (lambda g: g + 1j, "dtype complex128"),
        (lambda g: None, "dtype object"),
        (lambda g: np.where(g > 0, np.nan, g), "got inf or NaN"),
    ],
)
def test_wrong_function_is_named_with_its_line(f, message):
    program = Program()
    g = program.matmul(program.matrix(), *program.inputs([[1.0]]))
    h = program.nonlin(f, g)
    with pytest.raises(ValueError, match=message):
        program.limit([h], size=9, rng=rng())
    with pytest.raises(ValueError, match=message):
        program.finite(6, [h], size=9, rng=rng())
    program = Program()
    g = program.matmul(program.matrix(), *program.inputs([[1.0]]))
    average = program.average(f, g)
    own = message.replace("line 3, h1 =", "average =")
    with pytest.raises(ValueError, match=own):
        program.finite(6, [average], size=9, rng=rng())


def test_wrong_function_of_an_average_is_named_in_the_limit():
    program = Program()
    (x,) = program.inputs([[1.0]])
    for f, message in ((np.sum, "got shape"), (lambda x: x / 0 * 0, "inf or NaN")):
        average = program.average(f, x)
        with (
            np.errstate(all="ignore"),
            pytest.raises(ValueError, match=f"^average = .*{message}"),
        ):
            program.limit([average], size=9, rng=rng())
