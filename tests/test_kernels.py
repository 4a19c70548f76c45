"""Kernels: what is recorded is what lib computes, and what cannot be is refused."""

import ast
import gzip
import importlib
import json
import shutil
import tokenize
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from lib import sphere
from tools.command import PipelineError
from tools.kernels import __main__ as command
from tools.kernels import build, operations, parity
from tools.kernels.catalog import KERNELS, Kernel
from tools.kernels.emitter import Emitter
from tools.kernels.graph import Refused, Traced

NAMES = [kernel.name for kernel in KERNELS]
CLOSE = 1e-12


@pytest.fixture(scope="module", params=["node", "chromium"])
def engine(request):
    if request.param == "chromium":
        return parity.in_browser(request.getfixturevalue("browser"))
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    return parity.in_node


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build.build(folder)
    return folder


def planted(call, draw=None, **inputs):
    """A kernel of a function of a test, and of inputs of given shapes."""

    def normal(rng, **sizes):
        def size(shape):
            return [sizes.get(each, each) for each in shape]

        return {
            name: rng.standard_normal(size(shape))[()] for name, shape in inputs.items()
        }

    function = f"{call.__module__}:{call.__qualname__}"
    return Kernel(
        "planted", function, lambda **v: {"made": call(**v)}, inputs, draw or normal
    )


def checked(engine, folder, *kernels, sizes=(1, 2, 7)):
    """Rows of kernels that are written first."""
    for number, kernel in enumerate(kernels):
        object.__setattr__(kernel, "name", f"planted{id(folder)}{number}")
        path = folder / kernel.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build.module(kernel))
    return parity.rows(engine, folder, kernels, sizes)


# The compiler: what records a function and prints it.


COMPILER = [
    Path(build.__file__).with_name(f"{name}.py")
    for name in ("graph", "recorder", "operations", "emitter")
]


def lines_of_code(path):
    """The lines that are not blank, a comment or a docstring."""
    text = path.read_text("utf-8")
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    silent |= {tokenize.INDENT, tokenize.DEDENT}
    lines = {
        line
        for token in tokenize.generate_tokens(StringIO(text).readline)
        if token.type not in silent
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= {*range(node.lineno, node.end_lineno + 1)}
    return len(lines)


def test_the_compiler_is_small_and_says_how_small():
    total = sum(map(lines_of_code, COMPILER))
    assert total <= 700
    said = (Path(build.__file__).with_name("README.md")).read_text("utf-8")
    assert f"{total} lines of code" in said, total


def test_the_compiler_knows_nothing_of_the_kernels_of_the_site():
    own = {f"tools.kernels.{path.stem}" for path in COMPILER}
    for path in COMPILER:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        names = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
        names |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
        project = {n for n in names if n is None or n.split(".")[0] in ("tools", "lib")}
        assert project <= own, path.name


# The kernels of the site.


def test_every_kernel_is_listed_and_small(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kernels", "--list"])
    command.main()
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["name"] for each in listed] == NAMES
    assert len(set(NAMES)) >= 10
    assert {"lib.sphere:attention_field", "lib.sphere:simulate"} <= {
        each["function"] for each in listed
    }
    for each in listed:
        assert set(each) == {"name", "file", "function", "inputs", "outputs"}
        module, _, name = each["function"].partition(":")
        assert callable(getattr(importlib.import_module(module), name))
        text = (folder / each["file"]).read_bytes()
        assert len(gzip.compress(text)) <= 4096, each["name"]
        assert b"import" not in text and b"eval" not in text


def test_every_kernel_is_lib_at_sizes_that_were_never_recorded(engine, folder):
    sizes = {start + k for start, _ in build.RECORDINGS for k in range(3)}
    assert 1 in parity.SIZES and not sizes & set(parity.SIZES)
    for row in parity.all_rows(engine, folder):
        assert row.ok and row.error <= CLOSE, row


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_what_lib_gives(name, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kernels", "--example", name, "--size", "7"])
    command.main()
    example = json.loads(capsys.readouterr().out)
    kernel = build.kernel(name)
    program = build.recorded(kernel, 7, 5)
    sizes = dict.fromkeys(kernel.letters, 7)
    assert list(example["inputs"]) == [*sizes, *kernel.inputs]
    assert {**example["inputs"], **sizes} == example["inputs"]
    for values, shapes in (
        (example["inputs"], kernel.inputs),
        (example["outputs"], {k: node.shape for k, node in program.outputs.items()}),
    ):
        for key, shape in shapes.items():
            length = np.prod([sizes.get(size, size) for size in shape], dtype=int)
            assert np.size(values[key]) == length and np.ndim(values[key]) == (
                shape != ()
            )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--example", "nothing"], "there is no kernel 'nothing'; there are sphere_"),
        (["--example", NAMES[0], "--size", "0"], "--size must be at least 1, got 0"),
    ],
)
def test_what_there_is_not_is_said(arguments, says, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kernels", *arguments])
    with pytest.raises(PipelineError, match=says):
        command.main()


def test_the_site_has_them(site, browser):
    page = browser.new_page()
    page.goto(f"{site}chapters/index.html")
    kernel = build.kernel("sphere_field")
    example = build.example(kernel, 7, 3)
    answer = page.evaluate(
        """async ([file, {x, ...rest}]) => {
          const { default: kernel } = await import(new URL(file, document.baseURI));
          const { ok, field } = kernel({ ...rest, x: Float64Array.from(x) });
          return { ok, field: Array.from(field) };
        }""",
        [f"{site}{kernel.file}", example["inputs"]],
    )
    page.close()  # its globe would move to the end of the session
    assert answer["ok"] and parity.error(answer, example["outputs"]) < CLOSE


# What is shown where lib would say no.


TOKENS = sphere.uniform_tokens(6, 3, rng=np.random.default_rng(1))
STEP = dict(x=TOKENS, beta=4.0, dt=0.1, value=np.eye(3))
LOGITS = dict(logits=np.array([[1.0, 2.0, -1.0]]), temperature=1.0)
TOGETHER = np.tile(TOKENS[:1], (6, 1))


def nan_at(array, place):
    array = array.copy()
    array[place] = np.nan
    return array


CASES = [
    ("sphere_step", STEP, True),
    ("sphere_step", STEP | dict(beta=0.0), True),
    ("sphere_step", STEP | dict(beta=-7.0), True),
    ("sphere_step", STEP | dict(beta=2e6, dt=1e-9), True),
    ("sphere_step", STEP | dict(value=-np.eye(3)), True),
    ("sphere_step", STEP | dict(x=TOGETHER), True),
    ("sphere_step", STEP | dict(x=TOKENS[:1]), True),
    ("sphere_step", STEP | dict(x=TOKENS * 1.001), False),
    ("sphere_step", STEP | dict(x=nan_at(TOKENS, (2, 1))), False),
    ("sphere_step", STEP | dict(beta=np.nan), False),
    ("sphere_step", STEP | dict(beta=np.inf), False),
    ("sphere_step", STEP | dict(dt=0.0), False),
    ("sphere_step", STEP | dict(dt=-0.1), False),
    ("sphere_step", STEP | dict(beta=40.0, dt=40.0), False),
    ("sphere_step", STEP | dict(value=1e200 * np.eye(3)), False),
    ("sphere_energy", dict(x=TOKENS, beta=-3.0), True),
    ("sphere_energy", dict(x=TOKENS, beta=0.0), False),
    ("softmax_expansion", LOGITS, True),
    ("softmax_expansion", LOGITS | dict(temperature=np.nan), False),
    ("softmax_expansion", LOGITS | dict(logits=np.full((1, 3), np.inf)), False),
    ("softmax_expansion", LOGITS | dict(temperature=1e-300), False),
    ("sinkhorn_kernel", dict(x=TOKENS[:, :2], eps=0.01), True),
    ("sinkhorn_kernel", dict(x=TOKENS[:, :2], eps=100.0), True),
    ("sinkhorn_kernel", dict(x=TOKENS[:, :2], eps=0.0), False),
    ("equiangular_field", dict(cosine=np.zeros(2), tokens=1, beta=1.0), False),
    ("equiangular_field", dict(cosine=-np.ones(2), tokens=3, beta=1.0), False),
]


def test_ok_is_what_lib_says(engine, folder):
    jobs, kernels = [], []
    for name, values, _ in CASES:
        kernel = build.kernel(name)
        sizes = {
            letter: np.shape(values[key])[axis]
            for key, shape in kernel.inputs.items()
            for axis, letter in enumerate(shape)
            if letter in kernel.letters
        }
        kernels.append(kernel)
        given = {key: values[key] for key in kernel.inputs}
        jobs.append(parity.job(kernel, sizes, given))
    answers = engine(folder, jobs)
    for kernel, answer, (name, values, allowed) in zip(
        kernels, answers, CASES, strict=True
    ):
        assert answer["ok"] is allowed, (name, values)
        given = {key: values[key] for key in kernel.inputs}
        if allowed:
            assert parity.error(answer, kernel.call(**given)) < CLOSE, (name, values)
        else:
            with pytest.raises(ValueError), np.errstate(all="ignore"):
                kernel.call(**given)


def test_arrays_of_another_length_are_not_ok(engine, folder):
    inputs = build.example(build.kernel("sphere_field"), 5, 1)["inputs"]
    job = {"file": build.kernel("sphere_field").file, "inputs": {**inputs, "n": 4}}
    assert engine(folder, [job])[0]["ok"] is False


# Each operation.


def positive(x):
    return np.abs(x) + 0.1


BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.less,
    np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
    np.floor_divide,
]  # fmt: skip
UNARY = [
    np.negative, np.absolute, np.sign, np.floor, np.exp, np.expm1, np.sin, np.cos,
    np.tanh, np.square, np.isfinite, np.isnan, np.isinf, np.isneginf,
]  # fmt: skip


def named(function, call):
    return function.__name__, lambda x, y: call(function, x, y)


ELEMENTWISE = {
    **dict(named(each, lambda f, x, y: f(x, y)) for each in BINARY),
    **dict(named(each, lambda f, x, y: f(x)) for each in UNARY),
    "power": lambda x, y: np.power(positive(x), y),
    "powers": lambda x, y: x**3 + x**2 + positive(x) ** 0.5,
    "sqrt": lambda x, y: np.sqrt(positive(x)),
    "log": lambda x, y: np.log(positive(x)),
    "log1p": lambda x, y: np.log1p(positive(x)),
    "arccos": lambda x, y: np.arccos(np.tanh(x)),
    "logical_and": lambda x, y: (x > 0) & (y > 0),
    "logical_or": lambda x, y: (x > 0) | (y > 0),
    "logical_not": lambda x, y: ~(x > y),
    "where": lambda x, y: np.where(x > y, x, -y),
    "clip": lambda x, y: np.clip(x, -0.5, y * y),
}  # fmt: skip
ORDER = {
    "differences": lambda x, y: x - (y - (x - y)) - -1 * x,
    "quotients": lambda x, y: x / (y / positive(x)) * 2 / y,
    "signs": lambda x, y: np.negative(-x) - (-(x + y)) * -3,
    "conditions": lambda x, y: ((x > 0) == (y > 0)) & ~((x > 1) | (y > 1)),
}
ARRAYS = {
    "sum": lambda a, x: np.sum(a),
    "mean": lambda a, x: a.mean(axis=0) + a.mean(axis=-1, keepdims=True)[0],
    "max": lambda a, x: a.max(axis=-1) - a.min(axis=(0, 1)),
    "any": lambda a, x: (a > 1).any(axis=0) + 2.0 * (a > -1).all(axis=1, keepdims=True),
    "matmul": lambda a, x: a.mT @ x @ x.T @ a,
    "vectors": lambda a, x: x.T @ a[:, 0] + a[:, 1] @ x + x[0] @ (x.T @ x),
    "einsum": lambda a, x: np.einsum("ij,ik,il->jkl", a[:, :3], x, x),
    "transpose": lambda a, x: np.transpose(x[None], (2, 0, 1)).swapaxes(0, 1),
    "diagonal": lambda a, x: np.diagonal(x @ x.T) + np.einsum("ii->i", x @ x.T),
    "stack": lambda a, x: np.stack([a[:, 0], a[:, 1] * 2], axis=1),
    "concatenate": lambda a, x: np.concatenate([x, a[:, 1:3]], axis=-1),
    "eye": lambda a, x: np.eye(x.shape[0]) - 1 / x.shape[0] + np.arange(x.shape[0]),
    "filled": lambda a, x: np.full_like(x, 2.0) + np.ones(x.shape) + np.zeros_like(x),
    "constants": lambda a, x: a * np.arange(12.0) - np.linspace(0, 1, 3)[1],
    "broadcast": lambda a, x: np.broadcast_to(x[:, 0], (2, x.shape[0])) + 1,
    "outer": lambda a, x: np.subtract.outer(x[:, 0], x[:, 1]),
    "list": lambda a, x: np.asarray([x.sum(), x.max()]),
    "copy": lambda a, x: x.copy() + x.astype(float),
    "in place": lambda a, x: increased(x * 1),
}  # fmt: skip


def increased(y):
    y += 1
    np.exp(y, out=y)
    y *= y
    return y


def test_every_operation_computes_what_numpy_computes(engine, tmp_path):
    """Alone, in an expression that needs its brackets, and in loops."""
    assert {*ELEMENTWISE} >= {*operations.OPERATIONS}
    kernels = [
        planted(f, x=("n",), y=("n",)) for f in {**ELEMENTWISE, **ORDER}.values()
    ]
    kernels += [planted(f, a=("n", 12), x=("n", 3)) for f in ARRAYS.values()]
    rows = checked(engine, tmp_path, *kernels)
    names = [*ELEMENTWISE, *ORDER, *ARRAYS]
    for number, row in enumerate(rows):
        assert row.ok and row.error <= CLOSE, (names[number // 3], row)


# What cannot be recorded.


def float_of_a_size(x):
    return x * float(x.shape[0])


def length(x):
    return x / len(x)


def whole_number(x):
    return x * int(x.sum())


def list_of_numbers(x):
    return np.array([x.sum(), 1.0])


def as_an_index(x):
    return np.zeros(3)[x.argmax()]


def loop_over_rows(x):
    return sum(row for row in x)


def range_of_a_size(x):
    return sum(k * x for k in range(x.shape[0]))


def unknown_function(x):
    return np.fft.fft(x)


def unknown_ufunc(x):
    return np.arctan(x)


def unknown_method(x):
    return x.cumsum()


def reduced_by_a_ufunc(x):
    return np.add.reduce(x)


def unknown_option(x):
    return x.sum(dtype=int)


def places_of_truth(x):
    return np.where(x)


def chosen_by_truth(x):
    return x[x > 0]


def chosen_by_places(x):
    return x[[0, 0]]


def part_of_a_free_axis(x):
    return x[1:]


def second_of_a_free_axis(x):
    return x[1]


def last_of_a_free_axis(x):
    return x[-1]


def entry_written(x):
    y = x * 1
    y[0] = 2.0
    return y


def written_into_an_array(x):
    return np.exp(x, out=np.empty(x.example.shape))


def array_of_the_examples_size(x):
    return x + np.arange(float(x.example.size))


def truth_as_numbers(x):
    return (x > 0) + (x > 1)


def two_free_sizes(x):
    return x[:, None] + np.ones((x.shape[0] + 1,))


def as_whole_numbers(x):
    return x.astype(int)


def made_of_whole_numbers(x):
    return np.asarray(x, dtype=int)


def any_of_numbers(x):
    return x * np.any(x)


def truth_of_numbers(x):
    return np.logical_not(x)


REFUSED = [
    (as_whole_numbers, "return x.astype(int)", "no rule for values of type int64"),
    (made_of_whole_numbers, "return np.asarray", "no rule for values of type int64"),
    (any_of_numbers, "return x * np.any(x)", "no rule for any of numbers"),
    (truth_of_numbers, "return np.logical_not", "no rule for logical_not of numbers"),
    (float_of_a_size, "return x * float(x.shape[0])", "float() makes a constant"),
    (length, "return x / len(x)", "len() makes a constant of a size"),
    (whole_number, "return x * int(x.sum())", "int() makes a constant of a value"),
    (list_of_numbers, "return np.array", "an array of numbers is made of a recorded"),
    (as_an_index, "return np.zeros", "no rule for .argmax"),
    (loop_over_rows, "return sum(row", "len() makes a constant of a size"),
    (range_of_a_size, "return sum(k * x", "an index, a range or a size is a value"),
    (unknown_function, "return np.fft.fft(x)", "no rule for numpy.fft"),
    (unknown_ufunc, "return np.arctan(x)", "no rule for numpy.arctan"),
    (unknown_method, "return x.cumsum()", "no rule for .cumsum"),
    (reduced_by_a_ufunc, "return np.add.reduce(x)", "no rule for numpy.add.reduce"),
    (unknown_option, "return x.sum", "this call of numpy.sum: got an unexpected"),
    (places_of_truth, "return np.where", "this call of numpy.where: missing a"),
    (chosen_by_truth, "return x[x > 0]", "no rule for the index"),
    (chosen_by_places, "return x[[0, 0]]", "no rule for the index [0, 0]"),
    (
        part_of_a_free_axis,
        "return x[1:]",
        "no rule for a part of an axis of free size n",
    ),
    (
        second_of_a_free_axis,
        "return x[1]",
        "no rule for the index 1 of an axis of size n",
    ),
    (
        last_of_a_free_axis,
        "return x[-1]",
        "no rule for the index -1 of an axis of size n",
    ),
    (entry_written, "y[0] = 2.0", "no rule for writing into a part of an array"),
    (
        written_into_an_array,
        "return np.exp",
        "a recorded value is written into another",
    ),
    (array_of_the_examples_size, "return x + np.arange", "sizes 5 and n meet"),
    (truth_as_numbers, "return (x > 0)", "no rule for numpy.add of bool"),
    (two_free_sizes, "return x[:, None]", "an array has a size that is computed"),
]


@pytest.mark.parametrize(
    ("function", "code", "what"), REFUSED, ids=[case[0].__name__ for case in REFUSED]
)
def test_a_refusal_names_function_line_and_operation(function, code, what):
    with pytest.raises(Refused) as refused:
        build.module(planted(function, x=("n",)))
    first = function.__code__.co_firstlineno
    place, _, said = str(refused.value).partition(": ")[2].partition(": ")
    place = str(refused.value)[: str(refused.value).index("`")]
    assert place.startswith(f"{__name__}:{function.__qualname__}")
    assert int(place.split("line ")[1].split()[0]) in range(first + 1, first + 4)
    assert code in str(refused.value) and what in str(refused.value), said


# Planted faults.


def test_a_constant_of_the_example_makes_other_programs():
    """Were float() let through, two recordings would tell."""
    name = f"{__name__}:float_of_a_size"
    kernel = planted(float_of_a_size, x=("n",))
    object.__setattr__(kernel, "exempt", {name: "to see it noticed"})
    with pytest.raises(Refused, match="other sizes or values make another program"):
        build.module(kernel)


def test_what_is_exempt_for_nothing_is_said():
    kernel = planted(increased_copy, x=("n",))
    object.__setattr__(kernel, "exempt", {"lib.sphere:simulate": "no reason"})
    with pytest.raises(Refused, match="lib.sphere:simulate: exempt for nothing"):
        build.module(kernel)


@pytest.mark.parametrize("inputs", [{"i": ("n",)}, {"made": ("n",)}, {"n": ("n",)}])
def test_a_name_that_is_taken_is_said(inputs):
    with pytest.raises(Refused, match="names are taken: [imn]"):
        build.module(planted(lambda **values: sum(values.values()) * 2, **inputs))


def increased_copy(x):
    y = x * 1
    y += 1
    return y


def view_of_what_is_written(x):
    y = x * 1
    row = y[:, 0]
    y += 1
    return row * 2


def written_through_a_view(x):
    y = x * 1
    row = y.T[0]
    row += 1
    return y * 2


def written_by_out(x):
    y = x * 1
    row = np.swapaxes(y, 0, 1)
    np.exp(y, out=y)
    return row.sum(axis=0)


@pytest.mark.parametrize(
    "function", [view_of_what_is_written, written_through_a_view, written_by_out]
)
def test_a_write_through_another_name_is_noticed(function):
    with pytest.raises(Refused, match="changed by another name of it") as refused:
        build.module(planted(function, x=("n", 3)))
    assert str(refused.value).count(f"{__name__}:{function.__name__}, line ") == 2


def test_a_write_that_nobody_sees_is_recorded(engine, tmp_path):
    for row in checked(engine, tmp_path, planted(increased_copy, x=("n",))):
        assert row.ok and row.error == 0


def branching(x):
    return x * 2 if x.sum() > 0 else -x


def signed(sign):
    def draw(rng, n):
        return {"x": sign * np.abs(rng.standard_normal(n))}

    return draw


def test_a_branch_becomes_a_part_of_ok(engine, tmp_path, monkeypatch):
    """The other branch is not ok; without the guard, it would be wrong and ok."""
    kernel = planted(branching, signed(1), x=("n",))
    assert all(row.ok and row.error == 0 for row in checked(engine, tmp_path, kernel))
    object.__setattr__(kernel, "draw", signed(-1))
    rows = parity.rows(engine, tmp_path, [kernel], (1, 4))
    assert not any(row.ok for row in rows)
    monkeypatch.setattr(Traced, "__bool__", lambda self: bool(self.example))
    unguarded = planted(branching, signed(1), x=("n",))
    folder = tmp_path / "unguarded"
    assert all(row.ok for row in checked(engine, folder, unguarded))
    object.__setattr__(unguarded, "draw", signed(-1))
    rows = parity.rows(engine, folder, [unguarded], (1, 4))
    assert all(row.ok and row.error > CLOSE for row in rows)


def test_a_number_as_a_branch_is_true_as_in_python(engine, tmp_path):
    def one(x):
        return x + 1 if x.sum() else x

    def draw(rng, n):
        return {"x": np.full(n, 0.5)}

    kernel = planted(one, draw, x=("n",))
    assert all(row.ok for row in checked(engine, tmp_path, kernel))
    jobs = [
        parity.job(kernel, {"n": 2}, {"x": np.array(x)})
        for x in ([1.0, np.nan], [1.0, -1.0])
    ]
    assert [answer["ok"] for answer in engine(tmp_path, jobs)] == [True, False]


def test_recordings_on_both_sides_of_a_branch_differ():
    small, large = (start for start, _ in build.RECORDINGS)

    def draw(rng, n):
        return signed(1 if n == small else -1)(rng, n)

    assert small != large
    with pytest.raises(Refused, match="other sizes or values make another program"):
        build.module(planted(branching, draw, x=("n",)))


# An operation with its operands swapped, and the kernels that this leaves as they are.
SWAPPED = {
    "subtract": ("{1} - {0}", {"sinkhorn_kernel", "sinkhorn_update"}),  # squares, sizes
    "divide": ("{1} / {0}", set()),
    "where": ("({0} ? {2} : {1})", set()),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_a_swapped_operand_is_noticed(name, engine, tmp_path, monkeypatch):
    text, same = SWAPPED[name]
    changed = operations.OPERATIONS[name]._replace(text=text)
    monkeypatch.setitem(operations.OPERATIONS, name, changed)
    build.build(tmp_path)
    rows = parity.rows(engine, tmp_path, KERNELS, (3,))
    wrong = {row.kernel for row in rows if not row.ok or row.error > CLOSE}
    assert wrong == {k.name for k in KERNELS if uses(k, name)} - same != set()


def uses(kernel, name):
    """Whether a program has the operation."""
    program = build.recorded(kernel, 5, 1)
    return any(node.op == name for node, _ in Emitter(program).cells)
