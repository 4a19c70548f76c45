"""Every public function names the argument that it refuses.

CALLS holds a good call of each, and REFUSED what comes in place of a good value: each
entry is refused by a line, or a call of one, that refuses no other of its argument. A
new function gets a line in CALLS: its arguments, ``self`` included for a method.
``name:word`` is one more call; a class that users never make has its maker in place of
a call.
"""

import copy
import dataclasses
import inspect
import pkgutil
import re
import signal
import traceback
import warnings
from functools import partial
from importlib import import_module
from numbers import Integral, Number, Real
from pathlib import Path

import numpy as np
import pytest
import waits
from matplotlib.figure import Figure

import lib
from lib import attention, transformer
from lib.claims import ClaimFailed
from lib.data import DataUnavailable
from lib.figures import BookFigure, Choice, Slider
from lib.gram import gradients
from lib.gram.layers import PlainLayer, RMSNorm, ShapedLayer
from lib.heat import GaussianMixture, SpacingWarning
from lib.hierarchical import AttentionLimit, FiniteAttention, ScaleMixture
from lib.netsor import Program
from lib.sde import BlockSDE, CovarianceSDE, LinearSDE, ReluSDE, SmoothSDE
from lib.sinkhorn import ConvergenceWarning, FrozenFlowWarning, self_transport

LIB = str(Path(lib.__file__).parent)
RNG = np.random.default_rng(0)
ROWS, SQUARES = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 3, 3))
SIZES = 2.0 ** np.arange(3, 8)
ALT = "A line rises from the lower left corner to the upper right one."
LAYER = ShapedLayer(9, 2, 0.8, 0.6, 1.0)
SHAPED = dict(
    width=9, key_width=2, skip=0.8, branch=0.6, tau0=1.0, heads=3, pre_norm=True
)
STACK = np.linspace(-1.0, 2.0, 54).reshape(2, 3, 9)
WEIGHTS = gradients.draw(LAYER, paths=2, rng=RNG)
SAMPLE = np.linspace(-1.0, 1.0, 80).reshape(40, 2)
GRAM = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.5]])
LIMITS = {
    "linear": LinearSDE(0.6), "attention": CovarianceSDE(0.6, 0.8),
    "relu": ReluSDE((1.0, -1.0)), "smooth": SmoothSDE(1.0, 0.5, branch=0.6),
    "block": BlockSDE((CovarianceSDE(0.6, 0.8, 2), ReluSDE(branch=0.6))),
}  # fmt: skip
RUN = dict(gram0=GRAM, horizon=0.5, steps=8, paths=2, rng=RNG, save_every=3, level=1e6)
PAIR, Y = np.array([[1.5, 0.4], [0.4, 0.6]]), np.array([-1.0, 0.5, 2.0])
LIMIT, WIDE = AttentionLimit(PAIR, 2, 1.5), FiniteAttention(PAIR, 40, 2, 1.5)
MIXTURE = ScaleMixture(np.arange(1.0, 60.0))
PROGRAM = Program()
X1, X2 = (PROGRAM.nonlin(np.tanh, x, bounded=True) for x in PROGRAM.inputs(PAIR))
W1, W2 = PROGRAM.matrix(), PROGRAM.matrix()
G1, G2 = PROGRAM.matmul(W1, X1), PROGRAM.matmul(W2, X2)
MANY = dict(size=2, rng=RNG)
TOKENS, MASS = RNG.standard_normal((5, 2)), np.array([0.1, 0.1, 0.2, 0.2, 0.4])
NODES = np.array([[-2.0], [-1.0], [0.5], [1.0], [2.0]])
LAW = GaussianMixture([-2, 2, 3], [1, 2, 3], [0.5, 0.25, 0.25])
COV = np.array([[1.0, 0.5], [0.5, 2.0]])
FLOW = {"x": TOKENS, "eps": 0.5, "weights": MASS}
# What a result may come with; other warnings are errors here.
DOCUMENTED = (SpacingWarning, ConvergenceWarning, FrozenFlowWarning)
AXES = {"xlabel": "n", "ylabel": "error"}
UNITS = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
COSINES, THETA = UNITS @ UNITS.T, np.array([0.1, 0.5, 2.0, 4.5])
DENSITY = 1 + np.array([0.5, 0.25, -0.25, -0.5, -0.5, -0.25, 0.25, 0.5])
LEARNER = np.random.default_rng(4)
IMAGES, LABELS = LEARNER.standard_normal((3, 4, 2)), np.array([0, 1, 0])
SQUARE_SCORES = LEARNER.standard_normal((2, 1, 4, 4))
NETWORK = dict(
    depth=1, width=6, heads=2, tokens=4, features=2, classes=2, attention="sinkhorn",
    norm="none", skip=0.8, branch=0.6, temperature=1.5, slopes=(1.0, 0.25),
    iterations=3, rng=LEARNER,
)  # fmt: skip
MODEL = transformer.init(**NETWORK)
FLAT = transformer.perceptron(features=4, hidden=3, classes=2, rng=LEARNER)
TRAINED = transformer.train(MODEL, IMAGES, LABELS, steps=1, batch=2, rng=LEARNER)
PATCHES = LEARNER.random((3, 4, 4))
CUT = transformer.init(**NETWORK | {"features": 4})
HEADS = {"query": SQUARES[:, :2], "key": SQUARES[:, 1:], "value": SQUARES}


def called(name, things):
    """A call of this name, and one more for each thing."""
    first, *others = things.values()
    words = [f"{name}:{word}" for word in list(things)[1:]]
    return zip([name, *words], [first, *others], strict=True)


CALLS = {
    "attention.softmax": dict(logits=ROWS),
    "attention.softmax_derivatives": dict(z=ROWS[0], order=2),
    "attention.softmax_expansion": dict(logits=ROWS, order=3),
    "attention.remainder_bound": dict(logits=ROWS, order=3),
    "attention.shaped_attention": dict(logits=SQUARES, temperature=1.5),
    "attention.random_scores": dict(x=ROWS, key_width=3, rng=RNG),
    "claims.verify": dict(
        claim="8 is 8.", measured=SIZES, expected=SIZES, tolerance=0.5,
        stderr=1 / SIZES, refuted=False, statement="prop-sizes",
    ),
    "claims.verify:below": dict(claim="1 < 2.", measured=1.0, at_most=2.0, stderr=0.1),
    "claims.verify:above": dict(claim="8 > 2.", measured=SIZES, at_least=2.0),
    "claims.convergence_order": dict(sizes=SIZES, errors=1 / SIZES),
    "claims.convergence_order:weighted": dict(
        sizes=SIZES, errors=1 / SIZES, stderr=SIZES**-2
    ),
    "claims.local_orders": dict(sizes=SIZES, errors=1 / SIZES),
    "claims.generator": dict(key=7),
    "claims.Verdict": "verify",
    "claims.Order": "convergence_order",
    "data.image_tokens": dict(per_class=2),
    "data.image_patches": dict(patches=49),
    "data.held_out": dict(labels=np.repeat([0, 1, 2], 4), share=0.25, rng=RNG),
    "gram.simulate": dict(
        gram0=np.eye(3), layer=LAYER, depth=2, paths=2, rng=RNG, save_every=2,
        factors=True,
    ),
    "gram.simulate:block": dict(
        gram0=np.eye(3), layer=(LAYER, RMSNorm(9)), depth=2, paths=2, rng=RNG
    ),
    "gram.simulate_tokens": dict(
        x0=np.ones((2, 9)), layer=LAYER, depth=2, paths=2, rng=RNG, save_every=2
    ),
    "gram.dense_simulate": dict(
        x0=np.ones((2, 9)), layer=LAYER, depth=2, paths=2, rng=RNG, save_every=2
    ),
    "gram.random_scores": dict(gram=np.eye(3), key_width=2, size=4, rng=RNG),
    "gram.bartlett": dict(paths=2, m=3, degrees=5, rng=RNG),
    "gram.ShapedLayer": SHAPED,
    "gram.Trajectory": "simulate",
    "gram.collapse.log_residual": dict(
        gram0=np.eye(3), layer=PlainLayer(9, 2, 0.0, 1.0), depth=2, paths=2, rng=RNG
    ),
    "gram.gradients.draw": dict(layer=LAYER, paths=2, rng=RNG),
    "gram.gradients.forward": dict(x=STACK, weights=WEIGHTS, layer=LAYER),
    "gram.gradients.backward": dict(
        x=STACK, weights=WEIGHTS, layer=LAYER, cotangent=STACK[:, ::-1] - 1.0
    ),
    "gram.gradients.sizes": dict(x0=STACK[0], layer=LAYER, depth=2, paths=2, rng=RNG),
    "gram.gradients.Weights": "draw",
    "gram.gradients.Sizes": "sizes",
    "gram.layers.LinearLayer": dict(width=9, skip=0.8, branch=0.6, pre_norm=True),
    "gram.layers.ShapedLayer": SHAPED,
    "gram.layers.PlainLayer": SHAPED | {"value_width": 4},
    "gram.layers.MultiHeadLayer": {**SHAPED, "output_matrix": False},
    "gram.layers.ReluLayer": dict(width=9, slopes=(1.0, -1.0)),
    "gram.layers.ResidualReluLayer": dict(
        width=9, skip=0.8, branch=0.6, slopes=(1.0, -1.0), pre_norm=True
    ),
    "gram.layers.RMSNorm": dict(width=9),
    "sde.LinearSDE": dict(branch=0.6),
    "sde.CovarianceSDE": dict(branch=0.6, tau0=0.8, heads=2, output_matrix=True),
    "sde.ReluSDE": dict(slopes=(1.0, -1.0), branch=0.6),
    "sde.SmoothSDE": dict(second=1.0, third=0.5, scale=2.0, branch=0.6),
    "sde.SmoothSDE.explosion_probability": dict(self=LIMITS["smooth"], size0=SIZES),
    "sde.BlockSDE": dict(parts=(LIMITS["linear"], LIMITS["relu"])),
    **{
        f"sde.Limit.{name}": dict(self=sde, gram=GRAM) | more
        for name, more in {"drift": {}, "diffusion": {}, "noise": {"rng": RNG}}.items()
        for name, sde in called(name, LIMITS)
    },
    **{
        f"sde.{name}": dict(sde=sde, **RUN)
        for name in ("simulate", "explicit_euler")
        for name, sde in called(name, LIMITS)
    },
    "sde.simulate_distance": dict(
        distance0=1.5, branch=0.6, tau0=0.8, horizon=0.5, steps=8, paths=2, rng=RNG,
        heads=2, save_every=3, level=1e6,
    ),
    "sde.distance_law": dict(
        distance0=1.5, branch=0.6, tau0=0.8, horizon=0.5, heads=2, spacing=0.1
    ),
    "sde.antipodal_probability": dict(
        cosine0=np.linspace(-0.9, 0.9, 5), branch=1 / SIZES, tau0=SIZES, heads=2
    ),
    "sde.simulate_cosine": dict(
        cosine0=0.25, branch=0.6, tau0=0.8, horizon=0.5, steps=8, paths=2, rng=RNG,
        heads=2, save_every=3,
    ),
    "sde.explosion_probability": dict(
        distance0=SIZES, branch=1 / SIZES, tau0=SIZES, heads=2
    ),
    "sde.hitting_probability": dict(
        distance0=SIZES, level=3 * SIZES, branch=1 / SIZES, tau0=SIZES, heads=2
    ),
    "sde.hitting_probability:strong": dict(
        distance0=SIZES, level=3 * SIZES, branch=1 - 1 / SIZES, tau0=SIZES, heads=1
    ),
    "netsor.architectures.mlp": dict(cov=PAIR, depth=2),
    "netsor.architectures.rnn": dict(cov=PAIR),
    "netsor.architectures.cnn": dict(cov=PAIR, depth=2),
    "netsor.architectures.lstm": dict(cov=PAIR),
    "netsor.architectures.attention": dict(
        cov=PAIR, heads=2, score_scale=1.5, bound=9.0, tied=False
    ),
    "netsor.architectures.Architecture": "mlp",
    "samples.energy_distance": dict(one=SAMPLE, other=SAMPLE[::-1] ** 2),
    "samples.Gap": "energy_distance",
    "sweep.sweep": dict(
        task=partial(attention.random_scores, key_width=3), values=[*SQUARES], rng=RNG,
        n_jobs=1,
    ),
    "sweep.sweep:plain": dict(task=abs, values=range(3)),
    "sphere.coalesce": dict(
        x0=UNITS, beta=3.0, normalize=True, clusters=1, radius=1e-3, tol=1e-6
    ),
    "sphere.Coalescence": "coalesce",
    "sphere.equiangular_field": dict(
        cosine=ROWS[0] / 9, n=4, beta=2.0, normalize=True
    ),
    "sphere.equiangular_gap": dict(
        n=4, beta=2.0, times=SIZES, cosine0=0.1, normalize=True
    ),
    "sphere.equiangular_time": dict(
        n=4, beta=SIZES, gap=1e-3, normalize=True, cosine0=0.1
    ),
    "sphere.equiangular_time:one": dict(n=4, beta=2.0, gap=1e-3),
    "sphere.attention_cosine": dict(cosine=0.3, n=4, beta=2.0),
    "sphere.hemisphere_pole": dict(x=UNITS),
    "sphere.hemisphere_probability": dict(n=8, d=5),
    "sphere.project": dict(x=UNITS, y=ROWS),
    "sphere.attention_output": dict(
        x=UNITS[:, :3] / np.linalg.norm(UNITS[:, :3], axis=1, keepdims=True),
        beta=2.0, normalize=True, causal=True, **HEADS,
    ),
    "sphere.attention_field": dict(
        x=UNITS[:, :3] / np.linalg.norm(UNITS[:, :3], axis=1, keepdims=True),
        beta=2.0, normalize=False, causal=True, **HEADS,
    ),
    "sphere.attention_field:plain": dict(x=UNITS, beta=2.0),
    "sphere.perceptron_output": dict(
        x=UNITS, inner=ROWS, outer=ROWS.T, bias=ROWS[0, :3], activation=np.tanh
    ),
    "sphere.flow": dict(
        field=lambda x: -x[..., ::-1], x0=UNITS, horizon=1.0, steps=3, save_every=2
    ),
    "sphere.simulate": dict(
        x0=UNITS[:, :3] / np.linalg.norm(UNITS[:, :3], axis=1, keepdims=True),
        beta=0.5, horizon=1.0, steps=9, normalize=True, causal=True, save_every=2,
        **HEADS,
    ),
    "sphere.simulate:plain": dict(x0=UNITS, beta=2.0, horizon=1.0, steps=3),
    "sphere.post_norm_layers": dict(
        x0=UNITS, parts=lambda x: x[..., ::-1], step=0.5, depth=3, save_every=2
    ),
    "sphere.pre_norm_layers": dict(
        x0=ROWS, parts=[lambda x: x[..., ::-1], np.sin], step=0.5, depth=3, save_every=2
    ),
    "sphere.partition_function": dict(x=UNITS, beta=2.0, shifted=False),
    "sphere.interaction_energy": dict(x=UNITS, beta=2.0, shifted=False),
    "sphere.interaction_energy:shifted": dict(x=UNITS, beta=-2.0, shifted=True),
    "sphere.dissipation": dict(x=UNITS, beta=2.0, normalize=True, shifted=False),
    "sphere.uniform_tokens": dict(n=3, d=2, systems=2, rng=RNG),
    "sphere.cluster_labels": dict(x=UNITS, radius=0.5),
    "sphere.cluster_count": dict(x=UNITS, radius=0.5),
    "sphere.neighbors": dict(x=UNITS, radius=0.5),
    "sphere.crowd_state": dict(x=UNITS, beta=2.0, radius=0.5),
    "sphere.cosines.cosine_drift": dict(cosines=COSINES, beta=2.0, normalize=True),
    "sphere.cosines.simulate": dict(
        cosines0=COSINES, beta=2.0, horizon=1.0, steps=3, normalize=True, save_every=2
    ),
    "sphere.cosines.post_norm_layers": dict(
        cosines0=COSINES, beta=2.0, step=0.5, depth=3, normalize=True, save_every=2
    ),
    "sphere.cosines.root": dict(cosines=COSINES),
    "sphere.cosines.merged_share": dict(cosines=COSINES, gap=0.1),
    "circle.attention_field": dict(theta=THETA, beta=2.0, normalize=True),
    "circle.attention_field:unnormalized": dict(
        theta=THETA, beta=-2.0, normalize=False
    ),
    "circle.partition_function": dict(theta=THETA, beta=2.0, at=THETA, shifted=True),
    "circle.simulate": dict(
        theta0=THETA, beta=2.0, horizon=1.0, steps=3, normalize=True, save_every=2
    ),
    "circle.moments": dict(theta=THETA, modes=3),
    "circle.points": dict(theta=THETA),
    "circle.wasserstein_distance": dict(theta=THETA, other=THETA[1:]),
    "circle.growth_rate": dict(mode=3, beta=2.0, normalize=True, d=3),
    "circle.growth_rate:many": dict(mode=np.arange(4), beta=SIZES[:4]),
    "circle.fastest_mode": dict(beta=SIZES, d=3),
    "circle.mean_field.density_moments": dict(density=DENSITY, modes=3),
    "circle.mean_field.quantile_tokens": dict(density=DENSITY, n=5),
    "circle.mean_field.simulate": dict(
        density0=DENSITY, beta=2.0, horizon=1.0, steps=5, normalize=True, noise=0.1,
        tail=1.0, save_every=2,
    ),
    "circle.noise.langevin": dict(
        theta0=THETA, beta=2.0, noise=0.1, horizon=1.0, steps=3, normalize=True,
        save_every=2, rng=RNG,
    ),
    "circle.noise.critical_noise": dict(beta=2.0, normalize=True, d=3),
    "circle.noise.tricritical_beta": dict(d=3),
    "circle.noise.ordered_state": dict(order=0.6, beta=3.0),
    "circle.noise.stationary_density": dict(beta=3.0, noise=0.03, order0=0.5),
    "circle.noise.free_energy": dict(density=DENSITY, beta=3.0, noise=0.03),
    "circle.noise.transition_noise": dict(beta=3.0),
    "hierarchical.AttentionLimit": dict(
        gram=PAIR, heads=2, score_scale=1.5, tol=1e-6, nodes=2**16
    ),
    "hierarchical.FiniteAttention": dict(
        gram=PAIR, width=40, heads=2, score_scale=1.5, head_width=20,
        output_matrix=True, tol=1e-6, nodes=2**16,
    ),
    "hierarchical.ScaleMixture": dict(variances=np.arange(1.0, 9.0)),
    "hierarchical.ScaleMixture.density": dict(self=MIXTURE, y=Y),
    "hierarchical.ScaleMixture.cdf": dict(self=MIXTURE, y=Y),
    "hierarchical.ScaleMixture.characteristic": dict(self=MIXTURE, t=Y),
    "hierarchical.ScaleMixture.moment": dict(self=MIXTURE, order=4),
    "hierarchical.ScaleMixture.error": dict(self=MIXTURE, quantity="cdf", at=Y),
    **{
        f"hierarchical.{type(law).__name__}.{name}": dict(self=law, **arguments)
        for law in (LIMIT, WIDE)
        for name, arguments in {
            "sample": dict(coordinates=3, **MANY),
            "conditional_covariance": MANY,
            "conditional_variance": dict(row=1, **MANY),
            "mixture": dict(row=1),
            "density": dict(y=Y, row=1),
            "cdf": dict(y=Y, row=1),
            "characteristic": dict(t=Y, row=1),
            "moment": dict(order=4, row=1),
            "variance": dict(row=1),
            "excess_kurtosis": dict(row=1),
            "error": dict(quantity="cdf", at=Y, row=1),
        }.items()
    },
    "hierarchical.AttentionLimit.kurtosis_constant": dict(self=LIMIT, row=1),
    "hierarchical.AttentionLimit.width_correction": dict(self=LIMIT, y=Y, row=1),
    "hierarchical.finite_width": dict(
        gram=PAIR, width=40, heads=2, score_scale=1.5, head_width=20,
        output_matrix=True, coordinates=3, **MANY,
    ),
    "hierarchical.experiment": dict(
        tokens=3, width=9, heads=2, score_scale=1.5, head_width=4, coordinates=3, **MANY
    ),
    "hierarchical.experiment_variance": dict(
        tokens=3, width=9, heads=2, score_scale=1.5, head_width=4, **MANY
    ),
    "hierarchical.dense": dict(
        x=ROWS, heads=2, score_scale=1.5, head_width=2, output_matrix=True, **MANY
    ),
    "hierarchical.dense_experiment": dict(
        tokens=3, width=9, heads=2, score_scale=1.5, head_width=4, **MANY
    ),
    "hierarchical.orthonormal_constant": dict(tokens=4, score_scale=1.5),
    "netsor.Program.inputs": dict(self=Program(), cov=PAIR),
    "netsor.Program.matrix": dict(self=Program(), var=1.5),
    "netsor.Program.matmul": dict(self=PROGRAM, W=W1, h=X1),
    "netsor.Program.nonlin": dict(self=PROGRAM, f=np.tanh, args=[G1], bounded=True),
    "netsor.Program.average": dict(self=PROGRAM, f=np.tanh, args=[G1]),
    "netsor.Program.dot": dict(self=PROGRAM, g1=G1, g2=G2),
    "netsor.Program.finite": dict(self=PROGRAM, width=9, outputs=[G1, G2], **MANY),
    "netsor.Program.limit": dict(self=PROGRAM, outputs=[G1, G2], strict=True, **MANY),
    "netsor.Program.kernel": dict(self=PROGRAM, one=G1, two=G2, strict=True),
    "netsor.Vector": "matmul",
    "netsor.Scalar": "dot",
    "netsor.Average": "average",
    "netsor.Matrix": "matrix",
    "sinkhorn.self_transport": dict(**FLOW, tol=1e-8, max_iter=40),
    "sinkhorn.alternating_transport": dict(**FLOW, tol=1e-4, max_iter=40),
    "sinkhorn.bridge_step": dict(**FLOW, tol=1e-8),
    "sinkhorn.gibbs_kernel": dict(x=TOKENS, eps=0.5),
    "sinkhorn.sinkhorn_attention": dict(scores=SQUARES, iterations=3),
    "sinkhorn.SelfTransport": "self_transport",
    "sinkhorn.SelfTransport.barycentric": dict(
        self=self_transport(TOKENS, 0.5), values=TOKENS
    ),
    "transformer.init": NETWORK,
    "transformer.init:shaped": {
        **NETWORK, "attention": "shaped", "temperature": 2.5, "slopes": (1.5, 0.5)
    },
    "transformer.Transformer": "init",
    "transformer.Transformer.forward": dict(self=MODEL, x=IMAGES, trace=True),
    "transformer.Transformer.loss_and_gradient": dict(
        self=MODEL, x=IMAGES, labels=LABELS
    ),
    "transformer.Transformer.replace": dict(self=MODEL, params=MODEL.params),
    "transformer.Transformer.accuracy": dict(self=MODEL, x=IMAGES, labels=LABELS),
    "transformer.Trace": "forward",
    "transformer.perceptron": dict(features=4, hidden=3, classes=2, rng=RNG),
    "transformer.Perceptron": "perceptron",
    "transformer.Perceptron.forward": dict(self=FLAT, x=ROWS),
    "transformer.Perceptron.loss_and_gradient": dict(
        self=FLAT, x=ROWS, labels=LABELS
    ),
    "transformer.Perceptron.replace": dict(self=FLAT, params=FLAT.params),
    "transformer.Perceptron.accuracy": dict(self=FLAT, x=ROWS, labels=LABELS),
    "transformer.train": dict(
        model=MODEL, x=IMAGES, labels=LABELS, steps=3, batch=2, learning_rate=0.1,
        save_at=[1], progress=iter, rng=np.random.default_rng(5),
    ),
    "transformer.Training": "train",
    "transformer.Training.resume": dict(
        self=TRAINED, x=IMAGES, labels=LABELS, steps=2, progress=iter
    ),
    "transformer.inspect": dict(
        hidden=IMAGES, weights=attention.softmax(SQUARE_SCORES), bins=8, radius=0.5
    ),
    "transformer.Inspection": "inspect",
    "heat.GaussianMixture": dict(means=SIZES, variances=SIZES, weights=MASS),
    "heat.GaussianMixture.pdf": dict(self=LAW, x=ROWS),
    "heat.GaussianMixture.cdf": dict(self=LAW, x=ROWS),
    "heat.GaussianMixture.score": dict(self=LAW, x=ROWS),
    "heat.GaussianMixture.log_derivatives": dict(self=LAW, x=ROWS, order=3),
    "heat.GaussianMixture.ppf": dict(self=LAW, p=MASS),
    "heat.GaussianMixture.heat": dict(self=LAW, t=0.5),
    "heat.GaussianMixture.ornstein_uhlenbeck": dict(self=LAW, t=0.5, variance=1.5),
    "heat.GaussianMixture.transport": dict(self=LAW, x=ROWS, law=LAW),
    "heat.GaussianMixture.sample": dict(self=LAW, size=4, rng=RNG),
    "heat.quadrature": dict(mixture=LAW, spacing=0.25),
    "heat.node_density": dict(x=NODES, weights=MASS),
    "heat.acceleration": dict(law=LAW, x=ROWS),
    "heat.jerk": dict(law=LAW, x=ROWS),
    "heat.leading_error": dict(law=LAW, x=ROWS, horizon=0.5),
    "heat.bridge_flow": dict(**FLOW, steps=2, backward=False, tol=1e-8),
    "heat.ornstein_uhlenbeck_flow": dict(
        **FLOW, steps=2, variance=1.5, splitting="lie", tol=1e-8
    ),
    "heat.euler_flow": dict(x=NODES, eps=0.5, steps=2, law=LAW),
    "heat.softmax_step": dict(**FLOW, kernel="dot"),
    "heat.softmax_step:distance": dict(**FLOW, kernel="distance"),
    "heat.surrogate_step": dict(
        x=TOKENS, eps=0.5, surrogate=MASS, theta=0.5, tol=1e-8
    ),
    "heat.kl_surrogate": dict(x=NODES, weights=MASS, variance=1.5),
    "heat.gaussian_slope": dict(variance=SIZES, eps=0.5),
    "heat.gaussian_barycentric": dict(cov=COV, eps=0.5),
    "heat.grid_share": dict(a=np.array([0.1, 1.0])),
    "heat.joint_flow": dict(
        x0=np.array([[-1.0], [0.5], [2.0]]), scale=8.0, horizon=0.1, times=3
    ),
    "heat.gaussian_flow": dict(cov=COV, eps=0.5, steps=2),
    "heat.gaussian_w2": dict(cov=COV, other=np.eye(2)),
    "heat.w2_of_pairs": dict(x=NODES, y=NODES + 1, weights=MASS),
    "heat.w2_to_law": dict(x=NODES, law=LAW, weights=MASS),
    "heat.PairedDistance": "w2_of_pairs",
    "figures.figure": dict(fig=Figure(), alt=ALT, caption="See there."),
    "figures.drawing": dict(name="transformer-block"),
    "figures.rate_plot": dict(
        sizes=SIZES, errors={"a": 1 / SIZES}, orders={"a": -1.0}, **AXES
    ),
    "figures.level_plot": dict(
        measured=SIZES, predicted=SIZES, labels=["a", 1, 2, 3, 4], top=1.0, **AXES
    ),
    "figures.curve_plot": dict(
        x=SIZES, curves={"a": 1 / SIZES}, xlim=(0.5, 99.0), ylim=(1e-3, 1.0),
        log="xy", dashed=["a"], **AXES,
    ),  # fmt: skip
    "figures.compare_plot": dict(
        measured={"a": (SIZES, 1 / SIZES, 1 / SIZES)}, predicted={"b": (SIZES, SIZES)},
        xlim=(0.5, 99.0), ylim=(1e-3, 99.0), log="xy", dashed=["b"], **AXES,
    ),
    "figures.explore": dict(
        draw=lambda x: BookFigure(f"<svg>{x}</svg>", ALT), continuous=False, x=[1, 2],
        start={"x": 2}, paper=[{"x": 1}],
    ),
    "figures.live": dict(
        script="globe", draw=lambda state, b: BookFigure(f"<svg>{b}</svg>", ALT),
        state={"x": UNITS}, controls={"b": Slider("b", 0.0, 2.0, 1.0)},
        kernels={"step": "sphere-step"}, seed=3, positions=[], advance=abs, again=abs,
        caption="See there.",
    ),
    "figures.Slider": dict(
        label="b", low=0.5, high=2.0, start=1.0, log=True, zero=True, whole=False
    ),
    "figures.Slider:straight": dict(label="b", low=0.5, high=2.0, start=1.0),
    "figures.Slider.at": dict(self=Slider("b", 0.0, 2.0, 1.0), place=0.5),
    "figures.Slider.place": dict(self=Slider("b", 0.0, 2.0, 1.0), value=0.5),
    "figures.Slider.html": dict(self=Slider("b", 0.0, 2.0, 1.0), key="k"),
    "figures.Choice": dict(label="b", options={"one": 1.0, "two": 2.0}, start=1.0),
    "figures.Choice.html": dict(self=Choice("b", {"1": 1.0, "2": 2.0}, 1.0), key="k"),
    "figures.Exhibit": "live",
    "exhibits.film": dict(
        law=LAW, eps=0.5, time=0.5, tokens=25, layer="softmax", plane=True,
        caption="See there.",
    ),
    "exhibits.globe": dict(
        x0=np.eye(3), beta=2.0, opens=1.0, seed=3, rests=True, caption="See there."
    ),
    "exhibits.planes": dict(
        edge=6, across=0.5, up=0.25, network={"L": 12, "n": 768}, caption="See there."
    ),
    "exhibits.regimes": dict(
        model="gpt2", other="vit-base", told="m/d", spread=0.5, caption="See there."
    ),
    "regimes.describe": dict(
        width=64, depth=3, heads=4, tokens=32, key_width=16, temperature=4.0,
        residual_scale=0.5, layers_shared=True,
    ),
    "regimes.preset": dict(name="gpt2"),
    "regimes.Row": "describe",
    "regimes.Preset": "preset",
    "exhibits.networks": dict(
        start=0.3, width=8, depth=0.5, temperature=1.0, networks=100, seed=3,
        caption="See there.",
    ),
    "exhibits.histogram": dict(
        score_scale=2.0, heads=2, width=64, one=True, seed=3, caption="See there."
    ),
    "exhibits.training": dict(
        saved=dict.fromkeys(range(3), CUT), x=PATCHES, patches=PATCHES, labels=LABELS,
        classes=["a", "b"], step=1.0, layer=0.5, image=1, caption="See there.",
    ),
    "exhibits.weights": dict(
        pictures=np.full((2, 4, 4), 0.5), logits=np.eye(2), names=["a", "b"],
        temperature=0.5, order=1, query=0, caption="See there.",
    ),
    "figures.BookFigure": "figure",
    "figures.Explorer": "explore",
}  # fmt: skip

HIDDEN = {"OutputLaw", "Classifier"}

REFUSED = """
attention.softmax logits=none,number,nan,all-minus-inf
attention.softmax_derivatives z=none,number,nan,all-minus-inf order=nan
attention.softmax_expansion logits=none,nan,huge,extremes order=nan
attention.remainder_bound order=nan
attention.shaped_attention logits=none,number,nan temperature=tiny,empty
attention.random_scores x=number,nan,huge key_width=nan rng=none
claims.verify claim=none measured=none,nan,short,empty expected=none,nan
  tolerance=none,nan,zero stderr=text,nan,negative refuted=none statement=number
claims.verify:below at_most=vector,nan stderr=empty
claims.convergence_order sizes=none,number,nan,zero,bool
claims.convergence_order:weighted errors=huge-entry stderr=number,nan
claims.generator key=nan
data.image_tokens per_class=nan
data.image_patches patches=nan
data.held_out labels=number,nan share=huge rng=none
gram.simulate gram0=nan,huge,negative,short layer=none depth=nan paths=nan rng=none
  save_every=nan factors=none
gram.simulate:block gram0=zero
gram.simulate_tokens x0=nan,short
gram.random_scores gram=nan key_width=nan size=nan rng=none
gram.bartlett paths=nan degrees=none,nan,zero,empty rng=none
gram.layers.ShapedLayer width=nan key_width=nan skip=nan branch=nan tau0=nan heads=nan
  pre_norm=none
gram.collapse.log_residual gram0=nan,zero
gram.gradients.draw layer=none paths=nan rng=none
gram.gradients.forward x=nan,short weights=none
gram.gradients.backward cotangent=nan,short
gram.gradients.sizes x0=nan,short depth=nan paths=nan rng=none
gram.layers.PlainLayer tau0=nan value_width=nan
gram.layers.MultiHeadLayer width=endless tau0=nan output_matrix=none
gram.layers.ReluLayer width=nan slopes=inner-nan
gram.layers.RMSNorm width=nan
sde.LinearSDE branch=nan
sde.CovarianceSDE branch=nan tau0=nan heads=nan output_matrix=none
sde.ReluSDE slopes=inner-nan branch=nan
sde.SmoothSDE second=nan third=nan scale=nan
sde.SmoothSDE.explosion_probability size0=nan,negative
sde.BlockSDE parts=none
sde.Limit.drift gram=nan
sde.Limit.diffusion gram=nan
sde.Limit.noise gram=nan rng=none
sde.simulate sde=none gram0=nan horizon=nan steps=nan rng=none level=number,nan
sde.simulate:relu horizon=number
sde.simulate_distance distance0=nan,endless branch=nan tau0=nan horizon=nan,huge
  steps=nan rng=none heads=nan level=nan
sde.distance_law distance0=nan branch=nan tau0=nan horizon=nan heads=nan spacing=nan
sde.antipodal_probability cosine0=nan,short branch=number tau0=negative heads=nan
sde.simulate_cosine cosine0=nan branch=nan tau0=nan horizon=nan,huge steps=nan
  paths=nan rng=none heads=nan save_every=nan
sde.explosion_probability distance0=nan,short branch=number heads=nan
sde.hitting_probability heads=nan
netsor.architectures.mlp cov=nan depth=nan
netsor.architectures.cnn depth=nan
netsor.architectures.attention heads=nan score_scale=nan bound=nan tied=none
sweep.sweep task=none values=none rng=none,text n_jobs=nan
sphere.coalesce x0=none,number,nan,zero,deep beta=nan normalize=none clusters=nan
  radius=number,nan tol=nan
sphere.equiangular_field cosine=number,nan n=nan beta=nan normalize=none
sphere.equiangular_gap n=nan beta=nan times=number,nan cosine0=integer
sphere.equiangular_time n=nan beta=nan,huge,negative gap=number,nan normalize=none
sphere.attention_cosine n=nan beta=nan
sphere.hemisphere_probability n=nan d=nan
sphere.project y=number,nan
sphere.attention_output beta=nan normalize=none causal=none
  query=none,number,nan,extremes,flat
sphere.perceptron_output inner=number,nan outer=number,nan,largest
  bias=text,number,nan activation=text,to-none,to-nan
sphere.flow field=none,to-none,to-nan horizon=number,nan
sphere.post_norm_layers parts=none step=nan depth=nan save_every=nan
sphere.pre_norm_layers x0=number,nan,zero parts=inner-none
sphere.partition_function beta=nan,huge shifted=none
sphere.interaction_energy beta=nan,zero shifted=none
sphere.dissipation normalize=none shifted=none
sphere.uniform_tokens n=nan d=nan systems=nan rng=none
sphere.cluster_labels radius=nan
sphere.cosines.cosine_drift cosines=nan,zero beta=nan normalize=none
sphere.cosines.merged_share gap=nan
circle.attention_field theta=none,nan beta=nan,huge normalize=none
circle.partition_function at=deep shifted=none
circle.simulate horizon=nan,huge normalize=none
circle.moments modes=nan
circle.wasserstein_distance theta=deep
circle.growth_rate mode=number,nan beta=nan,huge normalize=none d=nan
circle.growth_rate:many mode=short
circle.fastest_mode beta=nan,zero
circle.mean_field.density_moments density=number,nan,zero,negative modes=nan
circle.mean_field.quantile_tokens density=deep n=nan
circle.mean_field.simulate density0=deep horizon=nan,huge normalize=none
  noise=nan,negative tail=nan,tiny
circle.noise.langevin noise=nan horizon=number,nan rng=none
circle.noise.tricritical_beta d=nan
circle.noise.ordered_state order=nan beta=nan
circle.noise.stationary_density noise=nan,tiny order0=nan
circle.noise.free_energy beta=nan,zero noise=nan,negative
hierarchical.AttentionLimit gram=nan heads=nan score_scale=nan tol=nan nodes=nan
hierarchical.FiniteAttention width=nan head_width=nan output_matrix=none
hierarchical.ScaleMixture variances=number,nan,negative
hierarchical.ScaleMixture.density y=none,nan
hierarchical.ScaleMixture.moment order=nan
hierarchical.ScaleMixture.error quantity=none
hierarchical.AttentionLimit.sample coordinates=nan size=nan rng=none
hierarchical.AttentionLimit.conditional_covariance size=nan rng=none
hierarchical.AttentionLimit.conditional_variance row=nan,negative size=nan rng=none
hierarchical.AttentionLimit.width_correction y=nan
hierarchical.experiment tokens=nan coordinates=nan rng=none
hierarchical.experiment_variance tokens=nan rng=none
hierarchical.dense x=nan size=nan rng=none
hierarchical.dense_experiment tokens=nan size=nan rng=none
hierarchical.orthonormal_constant tokens=nan score_scale=nan
netsor.Program.matrix var=nan,huge
netsor.Program.matmul W=none h=none
netsor.Program.nonlin f=none args=short bounded=none
netsor.Program.finite width=nan outputs=none size=nan rng=none
netsor.Program.limit strict=none size=nan rng=none
sinkhorn.self_transport x=nan eps=nan weights=number,nan,zero,bool max_iter=nan
sinkhorn.alternating_transport max_iter=nan
sinkhorn.gibbs_kernel x=nan eps=nan
sinkhorn.sinkhorn_attention scores=none,nan,huge,all-minus-inf iterations=nan
sinkhorn.SelfTransport.barycentric values=nan
heat.grid_share a=nan,zero
heat.joint_flow x0=number,nan scale=zero horizon=nan times=nan
heat.GaussianMixture means=number,nan variances=number,nan,zero weights=nan
heat.GaussianMixture.pdf x=nan
heat.GaussianMixture.log_derivatives x=nan order=nan
heat.acceleration law=none x=nan
heat.leading_error law=none x=nan horizon=nan
heat.GaussianMixture.ppf p=number,nan
heat.GaussianMixture.heat t=nan,huge
heat.GaussianMixture.ornstein_uhlenbeck t=nan,negative variance=nan
heat.GaussianMixture.transport law=none
heat.GaussianMixture.sample size=nan rng=none
heat.quadrature spacing=number,nan,tiny
heat.node_density x=nan,zero weights=nan,huge
heat.bridge_flow steps=nan backward=none
heat.ornstein_uhlenbeck_flow eps=nan splitting=none
heat.euler_flow x=nan eps=nan,huge
heat.softmax_step eps=tiny kernel=none
heat.surrogate_step x=nan surrogate=nan theta=nan,huge
heat.kl_surrogate x=nan weights=nan variance=nan,tiny
heat.gaussian_slope variance=nan,negative eps=nan
heat.gaussian_barycentric cov=nan eps=nan
heat.gaussian_flow eps=nan steps=nan
heat.w2_of_pairs x=nan y=nan weights=nan
figures.figure fig=none alt=none caption=number
figures.rate_plot sizes=number,nan,huge-entry errors=none,empty,inner-number,inner-nan
  orders=inner-vector,inner-nan
figures.level_plot measured=nan predicted=nan labels=none,text top=nan
figures.curve_plot x=number,nan curves=none,inner-number,inner-nan
  xlim=number,inner-vector,inner-nan log=none
figures.compare_plot measured=none,inner-none
figures.explore draw=none,to-none x=none,vector,inner-nan start=number,inner-nan
  paper=number
figures.live script=none draw=none,to-none state=inner-nan controls=inner-none
  kernels=inner-none seed=nan
figures.Slider label=none low=none,zero high=nan start=nan log=none zero=none
samples.energy_distance one=nan,short other=nan
figures.Choice label=none options=none start=nan
exhibits.film law=none eps=huge time=huge tokens=zero
  layer=none plane=none
exhibits.globe x0=number,nan,zero,deep beta=huge opens=huge seed=nan rests=none
exhibits.planes edge=nan across=nan up=nan network=number,inner-nan
exhibits.regimes model=none spread=huge
regimes.describe width=nan depth=nan heads=nan tokens=nan key_width=nan
  temperature=zero residual_scale=nan layers_shared=none
regimes.preset name=none
exhibits.networks start=huge depth=huge temperature=huge
  seed=nan
exhibits.histogram score_scale=huge heads=zero
  width=zero one=none seed=nan
exhibits.training saved=none,inner-none x=none,number,nan
  patches=none,number,nan,short,empty labels=none,number,nan,negative
  classes=none,empty step=huge layer=huge image=endless
exhibits.weights pictures=nan,huge logits=number,nan names=empty
  temperature=nan order=nan query=nan
sphere.neighbors radius=nan
transformer.init depth=nan width=nan heads=nan tokens=nan features=nan
  classes=bool attention=none norm=none skip=nan branch=nan temperature=zero
  slopes=text iterations=nan rng=none
transformer.Transformer.forward x=none,number,nan,huge trace=none
transformer.Transformer.loss_and_gradient labels=none,number,nan,negative
transformer.Transformer.replace params=none,inner-nan,inner-none
transformer.perceptron features=nan hidden=nan classes=nan rng=none
transformer.Perceptron.forward x=deep,largest
transformer.train model=none steps=nan batch=nan learning_rate=nan
  save_at=none,inner-nan progress=text rng=none
transformer.Training.resume x=short steps=nan
transformer.inspect hidden=none,number,nan,zero,text
  weights=number,nan,negative,zero bins=nan radius=nan
"""


def public(owner, path):
    """What users call with an argument, in a module or a class of lib, by name."""
    home = getattr(owner, "__module__", owner.__name__)
    # What a class has from a base that users never see is its own.
    hidden = [b for b in getattr(owner, "__mro__", ()) if b.__name__ in HIDDEN]
    for name, thing in inspect.getmembers(owner, callable):
        if isinstance(owner, type):
            own = name == "__call__" or name[0] != "_"
            own &= any(name in vars(each) for each in (owner, *hidden))
        else:
            own = name[0] != "_" and getattr(thing, "__module__", "") == home
            own = name in getattr(owner, "__all__", [name] if own else [])
        if not own:
            continue
        if isinstance(thing, type):
            yield from public(thing, f"{path}.{name}")
        error = isinstance(thing, type) and issubclass(thing, BaseException)
        if not error and {*inspect.signature(thing).parameters} - {"self"}:
            yield f"{path}.{name}", thing


# coursework judges wrong values instead of refusing them; its tests lie apart.
MODULES = [m.name for m in pkgutil.iter_modules(lib.__path__) if m.name[0] != "_"]
MODULES = [import_module(f"lib.{m}") for m in {*MODULES} - {"core", "coursework"}]
MODULES += [
    thing
    for module in MODULES
    for name in getattr(module, "__all__", ())
    if inspect.ismodule(thing := getattr(module, name))
]
PUBLIC = {
    name: thing
    for module in MODULES
    for name, thing in public(module, module.__name__.removeprefix("lib."))
    if not inspect.ismodule(thing)
}
TRIED = {call: PUBLIC.get(call.split(":")[0]) for call in CALLS}
GOOD = {c: good for c, good in CALLS.items() if TRIED[c] and isinstance(good, dict)}


def wrong(good, label):
    """A value to refuse in place of a good one, or of the first item in it."""
    if label.startswith("inner-"):
        first = next(iter(good.values() if isinstance(good, dict) else good))
        value = wrong(first, label.removeprefix("inner-"))
        if isinstance(good, dict):
            return {**good, next(iter(good)): value}
        return [value, *good[1:]]
    plain = {
        "none": None, "text": "?", "number": 3.5, "vector": np.ones(2), "nan": np.nan,
        "zero": 0, "huge": 1e300, "tiny": 5e-324, "bool": True, "endless": 10**15,
        "to-none": lambda *a, **k: None, "to-nan": lambda *a, **k: np.nan,
    }  # fmt: skip
    if not isinstance(good, np.ndarray):
        if label == "negative":
            return -good
        return plain.get(label, {} if isinstance(good, dict) else [])
    x, largest = good.astype(float), np.finfo(float).max
    last = np.zeros(x.shape, bool)
    last.flat[-1] = True
    return {
        "nan": np.where(last, np.nan, x), "huge": x * 1e300, "zero": 0 * x,
        "huge-entry": np.where(last, 1e300, x), "all-minus-inf": 0 * x - np.inf,
        "largest": x / np.abs(x).max() * largest,
        "extremes": np.where(last, -largest, largest),
        "tiny": x * 1e-300, "negative": -x, "bool": x > 0, "complex": x + 1j,
        "flat": x[0], "deep": x[None], "short": x[..., :-1], "empty": x[:0],
        "missing": np.where(last, None, x.astype(object)),
        "text-array": x.astype(str), "integer": np.copysign(np.ceil(np.abs(x)), x),
    }.get(label, plain.get(label))  # fmt: skip


def twins(good):
    """Pairs that no function may tell apart."""
    if isinstance(good, np.ndarray):
        frozen, gaps = good.copy(), np.repeat(good, 2, axis=-1)
        frozen.flags.writeable, gaps[..., 1::2] = False, 99
        for view in (frozen, gaps[..., ::2], np.asfortranarray(good)):
            yield view, good
        yield good.tolist(), good
        # Rounded away from 0: signs and symmetries stay.
        whole = np.copysign(np.ceil(np.abs(good.astype(float))), good)
        yield whole.astype(np.int64), whole
    elif isinstance(good, Integral) and not isinstance(good, bool):
        yield np.min_scalar_type(good).type(good), good
    elif isinstance(good, Real) and not isinstance(good, bool):
        yield int(np.ceil(good)), float(np.ceil(good))


CASES = []
for entry in re.split(r"\n(?! )", REFUSED.strip()):
    call, *tries = entry.split()
    for argument, labels in (each.split("=") for each in tries):
        CASES += [(call, argument, label) for label in labels.split(",")]


def leaves(result):
    """Arrays, numbers and texts in a result, and the text that a page shows of it."""
    if isinstance(result, np.ndarray | Number | str):
        yield result
    if isinstance(result, np.random.Generator):
        yield copy.deepcopy(result).random()
    if isinstance(result, Figure):
        for ax in result.axes:
            yield from (ax.get_xlim(), ax.get_ylim())
            yield from (line.get_xydata() for line in ax.lines)
            yield from (path.vertices for c in ax.collections for path in c.get_paths())
    if dataclasses.is_dataclass(result):
        result = [*vars(result).values(), getattr(result, "_repr_html_", str)()]
    if isinstance(result, dict):
        result = [*result.values()]
    if isinstance(result, list | tuple):
        for item in result:
            yield from leaves(item)


def assert_same(one, other):
    for a, b in zip(leaves(one), leaves(other), strict=True):
        if isinstance(a, str | int):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def finite_result(call, arguments):
    function = TRIED[call]
    # What stands before a starred parameter has to be given by position.
    kinds = {k: p.kind for k, p in inspect.signature(function).parameters.items()}
    starred = [
        k for k, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL
    ]
    ahead = [*kinds][: [*kinds].index(starred[0])] if starred else []
    placed = [arguments[k] for k in ahead]
    for several in (arguments[k] for k in starred):
        placed += several if isinstance(several, list) else [several]
    named = {k: v for k, v in arguments.items() if k not in {*ahead, *starred}}
    try:
        with warnings.catch_warnings():
            for category in DOCUMENTED:
                warnings.simplefilter("ignore", category)
            result = function(*placed, **named)
    except DataUnavailable as error:
        pytest.skip(str(error))
    for leaf in map(np.asarray, leaves(result)):
        if leaf.dtype.kind in "fc":
            given = "``nan``" in inspect.getdoc(function)  # by the caller's function
            assert given or not np.isnan(leaf).any(), "the result has a NaN"
            documented = "``inf``" in inspect.getdoc(function)
            assert documented or np.isfinite(leaf).all(), "the result is infinite"
    return result


def answer(call, argument, value):
    """Result with one argument changed, or what kind of error names the argument."""
    try:
        return finite_result(call, {**copy.deepcopy(CALLS[call]), argument: value})
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        assert re.search(rf"\b{argument}\b", str(error)), f"{argument} is not named"
        return "refused"
    except ClaimFailed as error:
        assert type(error).__name__ in inspect.getdoc(TRIED[call])
        return "refused"


@pytest.fixture(autouse=True)
def no_hang():
    """Only what never ends takes this long; no duration is asserted."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("still running"))
    signal.alarm(waits.LIMIT)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("name", sorted({c.split(":")[0] for c in CALLS} | {*PUBLIC}))
def test_every_public_function_and_argument_is_tried(name):
    assert name in PUBLIC, f"CALLS has {name}, which lib no longer has"
    calls = [arguments for c, arguments in CALLS.items() if c.split(":")[0] == name]
    assert calls, f"CALLS has no {name}"
    if isinstance(calls[0], dict):
        tried = {k for call in calls for k, good in call.items() if good is not None}
        parameters = inspect.signature(PUBLIC[name]).parameters.values()
        known = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
        assert known <= tried, f"CALLS has {name} without {known - tried}"


@pytest.mark.parametrize("call", GOOD)
def test_good_call_leaves_its_arguments_alone(call):
    arguments = copy.deepcopy(CALLS[call])
    finite_result(call, arguments)
    for name, good in CALLS[call].items():
        if not isinstance(good, np.random.Generator):
            assert_same(arguments[name], good)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("call", GOOD)
def test_lists_integers_and_views_give_the_same(call):
    for argument, good in CALLS[call].items():
        if argument != "self":
            for one, other in twins(good):
                answers = [answer(call, argument, value) for value in (one, other)]
                assert_same(*answers)


@pytest.mark.parametrize("call", GOOD)
def test_nothing_is_none_missing_or_complex(call):
    parameters = inspect.signature(TRIED[call]).parameters
    for argument, good in CALLS[call].items():
        optional = argument not in parameters or parameters[argument].default is None
        optional |= argument == "self" or isinstance(good, str)
        labels = () if optional else ("none",)
        if isinstance(good, Real) and not isinstance(good, bool):
            labels += ("nan", "complex")
        if isinstance(good, np.ndarray):
            labels += ("nan", "missing", "complex", "text-array")
        for label in labels:
            value = good + 1j if label == "complex" else wrong(good, label)
            assert answer(call, argument, value) == "refused", (argument, label)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("call", "argument", "label"), CASES)
def test_bad_input_is_refused_by_name(call, argument, label):
    value = wrong(CALLS[call][argument], label)
    assert answer(call, argument, value) == "refused", f"{argument} is accepted"


REFUSALS = ValueError, TypeError, IndexError, OverflowError, ClaimFailed


def refusal(call, argument, label):
    """Lines of lib on the way from the public door to what refuses a value."""
    value = wrong(CALLS[call][argument], label)
    with pytest.raises(REFUSALS) as error:
        finite_result(call, {**copy.deepcopy(CALLS[call]), argument: value})
    frames = traceback.extract_tb(error.tb)
    return tuple((f.filename, f.lineno) for f in frames if f.filename.startswith(LIB))


def test_each_entry_is_refused_by_another_line():
    """Else it would try nothing new of its argument."""
    ways = {}
    for call, argument, label in CASES:
        way = call, argument, refusal(call, argument, label)
        ways.setdefault(way, []).append(label)
    assert [(*way[:2], labels) for way, labels in ways.items() if labels[1:]] == []
