"""Every public function works on bad input as documented or names the argument.

CALLS holds a good call of each; the bad ones follow from the types of its values. A new
function gets a line there: its arguments, ``self`` included for a method. ``name:word``
is one more call; a class that users never make has its maker in place of a call.
"""

import copy
import dataclasses
import inspect
import pkgutil
import re
import signal
import warnings
from concurrent.futures import Executor, Future
from contextlib import chdir
from functools import partial
from importlib import import_module
from numbers import Integral, Number, Real

import numpy as np
import pytest
from matplotlib.figure import Figure

import lib
from lib import attention
from lib.claims import ClaimFailed
from lib.data import DataUnavailable
from lib.figures import BookFigure
from lib.heat import GaussianMixture, SpacingWarning
from lib.hierarchical import AttentionLimit, FiniteAttention, ScaleMixture
from lib.layers import PlainLayer, RMSNorm, ShapedLayer
from lib.netsor import Program
from lib.sde import BlockSDE, CovarianceSDE, LinearSDE, ReluSDE, SmoothSDE
from lib.sinkhorn import ConvergenceWarning, FrozenFlowWarning, self_transport
from lib.sweep import SweepFailed

RNG = np.random.default_rng(0)
ROWS, SQUARES = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 3, 3))
SIZES = 2.0 ** np.arange(3, 8)
ALT = "A line rises from the lower left corner to the upper right one."
LAYER = ShapedLayer(9, 2, 0.8, 0.6, 1.0)
SHAPED = dict(
    width=9, key_width=2, skip=0.8, branch=0.6, tau0=1.0, heads=3, pre_norm=True
)
GRAM = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.5]])
LIMITS = {
    "linear": LinearSDE(0.6), "attention": CovarianceSDE(0.6, 0.8),
    "relu": ReluSDE((1.0, -1.0)), "smooth": SmoothSDE(1.0, 0.5, branch=0.6),
    "block": BlockSDE((CovarianceSDE(0.6, 0.8, 2), ReluSDE(branch=0.6))),
}  # fmt: skip
RUN = dict(gram0=GRAM, horizon=0.5, steps=8, paths=2, rng=RNG, every=3, level=1e6)
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
HEADS = {"query": SQUARES[:, :2], "key": SQUARES[:, 1:], "value": SQUARES}


class Here(Executor):
    """Runs each task at once, in this process."""

    def submit(self, call):
        future = Future()
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)
        return future


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
    "gram.simulate": dict(
        gram0=np.eye(3), layer=LAYER, depth=2, paths=2, rng=RNG, every=2, factors=True
    ),
    "gram.simulate:block": dict(
        gram0=np.eye(3), layer=(LAYER, RMSNorm(9)), depth=2, paths=2, rng=RNG
    ),
    "gram.simulate_tokens": dict(
        x0=np.ones((2, 9)), layer=LAYER, depth=2, paths=2, rng=RNG, every=2
    ),
    "gram.dense_simulate": dict(
        x0=np.ones((2, 9)), layer=LAYER, depth=2, paths=2, rng=RNG, every=2
    ),
    "gram.random_scores": dict(gram=np.eye(3), key_width=2, draws=4, rng=RNG),
    "gram.bartlett": dict(paths=2, m=3, degrees=5, rng=RNG),
    "gram.ShapedLayer": SHAPED,
    "gram.Trajectory": "simulate",
    "collapse.log_residual": dict(
        gram0=np.eye(3), layer=PlainLayer(9, 2, 0.0, 1.0), depth=2, paths=2, rng=RNG
    ),
    "layers.LinearLayer": dict(width=9, skip=0.8, branch=0.6, pre_norm=True),
    "layers.ShapedLayer": SHAPED,
    "layers.PlainLayer": SHAPED,
    "layers.MultiHeadLayer": {**SHAPED, "output": False},
    "layers.ReluLayer": dict(width=9, slopes=(1.0, -1.0)),
    "layers.ResidualReluLayer": dict(
        width=9, skip=0.8, branch=0.6, slopes=(1.0, -1.0), pre_norm=True
    ),
    "layers.RMSNorm": dict(width=9),
    "sde.LinearSDE": dict(branch=0.6),
    "sde.CovarianceSDE": dict(branch=0.6, tau0=0.8, heads=2, output=True),
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
        heads=2, every=3, level=1e6,
    ),
    "sde.distance_law": dict(
        distance0=1.5, branch=0.6, tau0=0.8, horizon=0.5, heads=2, spacing=0.1
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
    "architectures.mlp": dict(cov=PAIR, depth=2),
    "architectures.rnn": dict(cov=PAIR),
    "architectures.cnn": dict(cov=PAIR, depth=2),
    "architectures.lstm": dict(cov=PAIR),
    "architectures.attention": dict(
        cov=PAIR, heads=2, score_scale=1.5, bound=9.0, tied=False
    ),
    "architectures.Architecture": "mlp",
    "sweep.sweep": dict(
        task=partial(attention.random_scores, key_width=3), values=SQUARES, rng=RNG,
        executor=Here(), progress=False,
    ),
    "sweep.sweep:kept": dict(
        task=abs, values=range(3), executor=Here(), store="results"
    ),
    "sphere.coalesce": dict(
        x0=UNITS, beta=3.0, normalize=True, clusters=1, radius=1e-3, tolerance=1e-6
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
    "cosines.cosine_drift": dict(cosines=COSINES, beta=2.0, normalize=True),
    "cosines.simulate": dict(
        cosines0=COSINES, beta=2.0, horizon=1.0, steps=3, normalize=True, save_every=2
    ),
    "cosines.post_norm_layers": dict(
        cosines0=COSINES, beta=2.0, step=0.5, depth=3, normalize=True, save_every=2
    ),
    "cosines.root": dict(cosines=COSINES),
    "cosines.merged_share": dict(cosines=COSINES, gap=0.1),
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
    "mean_field.density_moments": dict(density=DENSITY, modes=3),
    "mean_field.quantile_tokens": dict(density=DENSITY, n=5),
    "mean_field.simulate": dict(
        density0=DENSITY, beta=2.0, horizon=1.0, steps=5, normalize=True, noise=0.1,
        tail=1.0, save_every=2,
    ),
    "noise.langevin": dict(
        theta0=THETA, beta=2.0, noise=0.1, horizon=1.0, steps=3, normalize=True,
        save_every=2, rng=RNG,
    ),
    "noise.critical_noise": dict(beta=2.0, normalize=True, d=3),
    "noise.tricritical_beta": dict(d=3),
    "noise.ordered_state": dict(order=0.6, beta=3.0),
    "noise.stationary_density": dict(beta=3.0, noise=0.03, order0=0.5),
    "noise.free_energy": dict(density=DENSITY, beta=3.0, noise=0.03),
    "noise.transition_noise": dict(beta=3.0),
    "hierarchical.AttentionLimit": dict(
        gram=PAIR, heads=2, score_scale=1.5, tolerance=1e-6, nodes=2**16
    ),
    "hierarchical.FiniteAttention": dict(
        gram=PAIR, width=40, heads=2, score_scale=1.5, head_width=20,
        output_matrix=True, tolerance=1e-6, nodes=2**16,
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
    "hierarchical.attention_stack": dict(
        gram=PAIR, depth=2, heads=2, score_scale=1.5, width=9, skip=0.8, branch=0.6,
        normalize=True, paths=2, rng=RNG,
    ),
    "hierarchical.orthonormal_constant": dict(tokens=4, score_scale=1.5),
    "netsor.Program.inputs": dict(self=Program(), cov=PAIR),
    "netsor.Program.matrix": dict(self=Program(), var=1.5),
    "netsor.Program.matmul": dict(self=PROGRAM, W=W1, h=X1),
    "netsor.Program.nonlin": dict(self=PROGRAM, f=np.tanh, args=[G1], bounded=True),
    "netsor.Program.dot": dict(self=PROGRAM, g1=G1, g2=G2),
    "netsor.Program.finite": dict(self=PROGRAM, width=9, outputs=[G1, G2], **MANY),
    "netsor.Program.limit": dict(self=PROGRAM, outputs=[G1, G2], strict=True, **MANY),
    "netsor.Program.kernel": dict(self=PROGRAM, one=G1, two=G2, strict=True),
    "netsor.Vector": "matmul",
    "netsor.Scalar": "dot",
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
    "heat.GaussianMixture": dict(means=SIZES, variances=SIZES, weights=MASS),
    "heat.GaussianMixture.pdf": dict(self=LAW, x=ROWS),
    "heat.GaussianMixture.cdf": dict(self=LAW, x=ROWS),
    "heat.GaussianMixture.score": dict(self=LAW, x=ROWS),
    "heat.GaussianMixture.ppf": dict(self=LAW, p=MASS),
    "heat.GaussianMixture.heat": dict(self=LAW, t=0.5),
    "heat.GaussianMixture.ornstein_uhlenbeck": dict(self=LAW, t=0.5, variance=1.5),
    "heat.GaussianMixture.transport": dict(self=LAW, x=ROWS, law=LAW),
    "heat.GaussianMixture.sample": dict(self=LAW, size=4, rng=RNG),
    "heat.quadrature": dict(mixture=LAW, spacing=0.25),
    "heat.node_density": dict(x=NODES, weights=MASS),
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
    "heat.gaussian_flow": dict(cov=COV, eps=0.5, steps=2),
    "heat.gaussian_w2": dict(cov=COV, other=np.eye(2)),
    "heat.w2_of_pairs": dict(x=NODES, y=NODES + 1, weights=MASS),
    "heat.w2_to_law": dict(x=NODES, law=LAW, weights=MASS),
    "heat.PairedDistance": "w2_of_pairs",
    "figures.figure": dict(fig=Figure(), alt=ALT, caption="See there."),
    "figures.rate_plot": dict(
        sizes=SIZES, errors={"a": 1 / SIZES}, orders={"a": -1.0}, **AXES
    ),
    "figures.level_plot": dict(
        measured=SIZES, predicted=SIZES, labels=["a", 1, 2, 3, 4], top=1.0, **AXES
    ),
    "figures.curve_plot": dict(
        x=SIZES, curves={"a": 1 / SIZES}, xlim=(0.5, 99.0), ylim=(1e-3, 1.0),
        log="xy", **AXES,
    ),  # fmt: skip
    "figures.compare_plot": dict(
        measured={"a": (SIZES, 1 / SIZES, 1 / SIZES)}, predicted={"b": (SIZES, SIZES)},
        xlim=(0.5, 99.0), ylim=(1e-3, 99.0), log="xy", **AXES,
    ),
    "figures.explore": dict(
        draw=lambda x: BookFigure(f"<svg>{x}</svg>", ALT), x=[1, 2]
    ),
    "figures.animate": dict(
        draw=lambda x: BookFigure(f"<svg>{x}</svg>", ALT), x=[1, 2]
    ),
    "figures.BookFigure": "figure",
    "figures.Explorer": "explore",
}  # fmt: skip

HIDDEN = {"OutputLaw"}

# What no function may answer, however sound its answer looks.
REFUSED = ("nan", "missing", "complex", "text-array")


def public(owner, path):
    """What users call with an argument, in a module or a class of lib, by name."""
    home = getattr(owner, "__module__", owner.__name__)
    # What a class has from a base that users never see is its own.
    hidden = [b for b in getattr(owner, "__mro__", ()) if b.__name__ in HIDDEN]
    for name, thing in inspect.getmembers(owner, callable):
        own = name[0] != "_" and getattr(thing, "__module__", "") == home
        own |= name[0] != "_" and any(name in vars(base) for base in hidden)
        if not own and name not in getattr(owner, "__all__", ["__call__"]):
            continue
        if isinstance(thing, type):
            yield from public(thing, f"{path}.{name}")
        error = isinstance(thing, type) and issubclass(thing, Exception)
        if not error and {*inspect.signature(thing).parameters} - {"self"}:
            yield f"{path}.{name}", thing


# coursework judges wrong values instead of refusing them; its tests lie apart.
MODULES = [m.name for m in pkgutil.iter_modules(lib.__path__) if m.name[0] != "_"]
MODULES.remove("coursework")
PUBLIC = {k: v for m in MODULES for k, v in public(import_module(f"lib.{m}"), m)}
TRIED = {call: PUBLIC.get(call.split(":")[0]) for call in CALLS}
GOOD = {c: good for c, good in CALLS.items() if TRIED[c] and isinstance(good, dict)}


def values(good):
    """What may come in place of a good value, by its type.

    By label, a bad value, or a pair of values that no function may tell apart.
    """
    bad = {"none": None, "text": "?", "number": 3.5, "vector": np.ones(2)}
    same = {}
    match good:
        case bool():
            pass
        case str():
            bad |= {"empty": "", "unknown": good + "?", "bytes": b"?"}
        case Real():
            bad |= {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "zero": 0}
            bad |= {"negative": -good, "huge": 1e300, "tiny": 5e-324, "bool": True}
            bad |= {"whole": 2.0, "complex": good + 1j, "beyond-floats": 10**400}
            # No address space holds 10**15 numbers: asking for them takes none.
            bad |= {"endless": 10**15, "empty": []}
            same["integer"] = int(np.ceil(good)), float(np.ceil(good))
            if isinstance(good, Integral):
                same = {"numpy": (np.min_scalar_type(good).type(good), good)}
        case np.ndarray():
            x, most = good.astype(float), np.finfo(float).max
            last, objects = np.zeros(x.shape, bool), x.astype(object)
            last.flat[-1] = True
            bad |= {w: np.where(last, float(w), x) for w in ("nan", "inf", "-inf")}
            bad |= {"missing": np.where(last, None, objects), "object": objects}
            bad |= {"huge": x * 1e300, "huge-entry": np.where(last, 1e300, x)}
            bad |= {
                "largest": x / np.abs(x).max() * most,
                "all-minus-inf": 0 * x - np.inf,
            }
            bad |= {"extremes": np.where(last, -most, most), "tiny": x * 1e-300}
            bad |= {"zero": 0 * x, "negative": -x, "bool": x > 0, "complex": x + 1j}
            bad |= {"flat": x[0], "deep": x[None], "deeper": x[..., None]}
            bad |= {"short": x[..., :-1], "empty": x[:0], "empty-rows": x[..., :0]}
            bad |= {"ragged": [[1.0], [1.0, 2.0]], "text-array": x.astype(str)}
            frozen, gaps = good.copy(), np.repeat(good, 2, axis=-1)
            frozen.flags.writeable, gaps[..., 1::2] = False, 99
            same |= {"read-only": (frozen, good), "strided": (gaps[..., ::2], good)}
            same |= {"fortran": (np.asfortranarray(good), good)}
            same |= {"list": (good.tolist(), good)}
            # Rounded away from 0: signs and symmetries stay.
            whole = np.copysign(np.ceil(np.abs(x)), x)
            small = np.int8 if np.abs(whole).max() < 128 else np.int64
            same |= {"integer": (whole.astype(small), whole)}
        case dict():
            bad |= {"empty": {}, "renamed": {f"{k}?": v for k, v in good.items()}}
        case list() | tuple():
            bad |= {"empty": [], "short": good[:-1], "long": [*good, good[0]]}
        case _ if callable(good):
            bad |= {"to-none": lambda *a, **k: None, "to-nan": lambda *a, **k: np.nan}
    return {label: (value,) for label, value in bad.items()} | same


def spots(good):
    """Where a value is put: in place of a good one, or of the first item in it."""
    yield "", good, lambda value: value
    if isinstance(good, dict):
        key, first = next(iter(good.items()))
        yield "inner-", first, lambda value: {**good, key: value}
    if isinstance(good, list | tuple):
        yield "inner-", good[0], lambda value: [value, *good[1:]]


CASES = [
    pytest.param(call, name, label, [*map(put, v)], id=f"{call}-{name}-{place}{label}")
    for call, arguments in GOOD.items()
    for name, good in arguments.items()
    if name != "self" and good is not None
    for place, value, put in spots(good)
    for label, v in values(value).items()
]


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
    except (ClaimFailed, SweepFailed) as error:
        assert type(error).__name__ in inspect.getdoc(TRIED[call])
        return "refused"


@pytest.fixture(autouse=True, scope="module")
def in_a_folder(tmp_path_factory):
    """Files that a call makes lie in a folder of the tests."""
    with chdir(tmp_path_factory.mktemp("files")):
        yield


@pytest.fixture(autouse=True)
def no_hang():
    """Only what never ends takes this long; no duration is asserted."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("still running after 20 s"))
    signal.alarm(20)
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
@pytest.mark.parametrize(("call", "argument", "label", "given"), CASES)
def test_bad_input_is_answered_or_named(call, argument, label, given):
    answers = [answer(call, argument, value) for value in given]
    refused = isinstance(answers[0], str)
    assert refused or label not in REFUSED, f"{argument} is accepted"
    for other in answers[1:]:
        assert_same(answers[0], other)
