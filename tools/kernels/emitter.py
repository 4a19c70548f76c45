"""A recorded graph as JavaScript: loops over Float64Array, and nothing else.

Axes of at most :data:`SHORT` entries are written out; each other axis is a loop. Cheap
values are written where they are used, others are computed once
(:meth:`Emitter.choose`), in loops that are shared wherever one needs of another nothing
but the entry at hand (:meth:`Emitter.fuse`). The outermost loop runs over i, the next
over j: the text of an entry is the same in every loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from tools.kernels.graph import Along, Node, Refused, Size
from tools.kernels.operations import ATOM, OPERATIONS, REDUCTIONS, expression, number
from tools.kernels.recorder import Program

SHORT = 8
NOMINAL = 64  # what a free size counts for
WORTH = 1.5  # operations for each entry above which a value is kept
LEAVES = {"input", "literal", "constant", "size", "arange", "view", "concatenate"}
VARIABLES = "ijkl"
Index = int | str  # of an entry along an axis: a number, or an expression of i, j, ...
At = tuple[Index, ...]
Text = tuple[str, int]  # an expression, and how tightly it binds
Load = Callable[[Node, At], Text]


@dataclass(eq=False)
class Loop:
    """A loop over a size; what is written before, in and after it."""

    size: Size
    depth: int
    body: list[Loop | Node] = field(default_factory=list)
    hoisted: dict[str, str] = field(default_factory=dict)  # entries read before it


def is_long(size: Size) -> bool:
    return isinstance(size, str) or size > SHORT


def count(sizes: Iterable[Size]) -> int:
    return prod(NOMINAL if isinstance(size, str) else size for size in sizes)


def summed(node: Node) -> tuple[Size, ...]:
    """Sizes of the axes that a reduction takes away."""
    return node.data[2][len(node.shape) :] if node.op == "reduce" else ()


def reduces(node: Node) -> bool:
    """Tell whether a loop is needed for an entry."""
    return any(map(is_long, summed(node)))


def loops(node: Node) -> list[Size]:
    """Sizes of the loops in which an entry, or a term of it, is computed."""
    return [size for size in (*node.shape, *summed(node)) if is_long(size)]


def outer(node: Node) -> list[int]:
    """The axes of a node that are loops."""
    return [axis for axis, size in enumerate(node.shape) if is_long(size)]


def cells(node: Node) -> Iterator[At]:
    """Indices of the entries that are computed together: i, j, ... along loops."""
    names = iter(VARIABLES)
    return product(*([next(names)] if is_long(s) else range(s) for s in node.shape))


def flat(shape: tuple[Size, ...], at: At) -> str:
    """Place of an entry in an array that is stored row by row."""
    parts, constant = [], 0
    for axis, index in enumerate(at):
        rest = shape[axis + 1 :]
        stride = prod(size for size in rest if isinstance(size, int))
        letters = [size for size in rest if isinstance(size, str)]
        if isinstance(index, int) and not letters:
            constant += stride * index
        elif index != 0:
            factors = [*letters, *[str(stride)] * (stride > 1)]
            plain = not factors or str(index).isalnum()
            factors.append(str(index) if plain else f"({index})")
            parts.append(" * ".join(factors))
    return " + ".join([*parts, *[str(constant)] * (constant > 0 or not parts)])


class Emitter:
    """One program on its way to a module."""

    def __init__(self, program: Program):
        self.program = program
        names = [*program.letters, *program.inputs, *program.outputs]
        taken = {each for each in names if names.count(each) > 1 or each in VARIABLES}
        if taken:
            raise Refused(f"names are taken: {', '.join(sorted(taken))}")
        self.order = ordered([*program.outputs.values(), *dict(program.guards)])
        self.named = {node: name for name, node in program.outputs.items()}
        self.stored = self.choose()
        kept = [node for node in self.order if node in self.stored]
        self.names = {node: k for k, node in enumerate(kept)}
        self.constants: dict[str, str] = {}
        self.here: tuple[Loop, ...] = ()
        self.reads = {node: self.read_by(self.computed, node) for node in kept}
        guards = (self.read_by(self.entry, guard) for guard in dict(program.guards))
        self.asked = {node for reads in guards for node in reads}
        self.path: dict[Node, tuple[Loop, ...]] = {}
        self.body = self.fuse(kept, ())
        self.shared = {node: self.shared_loops(node) for node in kept}
        self.hoists = 0

    # What is computed once.

    def choose(self) -> set[Node]:
        """Outputs, sums over loops, and what would be computed again and again."""
        cost: dict[Node, float] = {}
        for node in self.order:
            own = OPERATIONS[node.op].cost if node.op in OPERATIONS else 0
            below = own + sum(cost[arg] for arg in node.args)
            terms = count(summed(node))
            cost[node] = terms * (below + len(node.args)) - 1 if terms > 1 else below
        asked = dict.fromkeys(self.order, 0.0)
        for guard, _ in self.program.guards:
            asked[guard] += 1
        stored = set()
        for node in reversed(self.order):
            entries = count(node.shape)
            again = cost[node] * (asked[node] / entries - 1)
            repeated = node.op not in LEAVES and again > WORTH
            if node in self.named or repeated or reduces(node):
                stored.add(node)
            computed = entries if node in stored else asked[node]
            for arg in node.args:
                asked[arg] += computed * count(summed(node))
        return stored

    # Entries as expressions.

    def entry(self, node: Node, at: At, load: Load) -> Text:
        """An entry where it is used: read, or computed on the spot."""
        pairs = zip(node.shape, at[len(at) - len(node.shape) :], strict=True)
        at = tuple(0 if size == 1 else k for size, k in pairs)
        if node.op == "input" or node in self.stored:
            return load(node, at)
        return self.computed(node, at, load)

    def computed(self, node: Node, at: At, load: Load) -> Text:
        """An entry computed from the arguments of its node."""
        match node.op:
            case "input":
                return load(node, at)
            case "literal":
                return number(node.data)
            case "size":
                return node.data, ATOM
            case "constant":
                return self.constant(node, at)
            case "arange":
                return str(at[0]), ATOM
            case "view":
                source = (k if isinstance(k, int) else moved(at, k) for k in node.data)
                return self.entry(node.args[0], tuple(source), load)
            case "concatenate":
                return self.part(node, at, load)
            case "reduce":
                return self.terms(node, at, load)
        return expression(node.op, [self.entry(arg, at, load) for arg in node.args])

    def terms(self, node: Node, at: At, load: Load) -> Text:
        """The terms of a reduction over the axes that are written out."""
        how, labels, sizes = node.data
        names = iter(VARIABLES[len(outer(node)) :])
        free = ([next(names)] if is_long(s) else range(s) for s in sizes[len(at) :])
        total: list[Text] = []
        for rest in product(*free):
            place = (*at, *rest)
            factors = [
                self.entry(arg, tuple(place[label] for label in own), load)
                for arg, own in zip(node.args, labels, strict=True)
            ]
            total.append(folded("multiply", factors))
        return folded(REDUCTIONS[how][1], total)

    def part(self, node: Node, at: At, load: Load) -> Text:
        """An entry of arrays that were put together along an axis."""
        axis = node.data
        if not isinstance(place := at[axis], int):
            raise Refused(f"more than {SHORT} entries are put together along an axis")
        for arg in node.args:
            if place < arg.shape[axis]:
                break
            place -= arg.shape[axis]
        return self.entry(arg, (*at[:axis], place, *at[axis + 1 :]), load)

    def constant(self, node: Node, at: At) -> Text:
        if all(isinstance(k, int) for k in at):
            return number(node.data[int(np.ravel_multi_index(at, node.shape))])
        text = ", ".join(number(value)[0] for value in node.data)
        name = self.constants.setdefault(f"[{text}]", f"c{len(self.constants)}")
        return f"{name}[{flat(node.shape, at)}]", ATOM

    # Which loops are shared.

    def read_by(self, text: Callable[..., Text], node: Node) -> dict[Node, set[At]]:
        """The stored nodes that the text of a node reads, and at which entries."""
        readers: dict[Node, set[At]] = {}

        def load(other: Node, at: At) -> Text:
            if other in self.stored:
                readers.setdefault(other, set()).add(at)
            return "", ATOM

        for at in cells(node):
            text(node, at, load)
        return readers

    def fuse(self, nodes: list[Node], path: tuple[Loop, ...]) -> list[Loop | Node]:
        """Statements, and loops around others, that compute the nodes on a path.

        A loop takes up every node that needs nothing of those in it but what the same
        turn of the loop has made.
        """
        body: list[Loop | Node] = []
        waiting, depth = list(nodes), len(path)
        while waiting:
            ready = [n for n in waiting if not self.reads[n].keys() & set(waiting)]
            group = [n for n in ready if len(loops(n)) == depth]
            if group:
                body += group
                self.path |= dict.fromkeys(group, path)
            else:
                loop = Loop(loops(ready[0])[depth], depth)
                for node in waiting:
                    needed = self.reads[node].keys() & set(waiting)
                    if loops(node)[depth:][:1] == [loop.size] and all(
                        other in group and self.in_step(node, other, depth)
                        for other in needed
                    ):
                        group.append(node)
                loop.body = self.fuse(group, (*path, loop))
                body.append(loop)
            waiting = [node for node in waiting if node not in group]
        return body

    def in_step(self, node: Node, other: Node, depth: int) -> bool:
        """Tell whether a turn of the loop needs of the other what this turn makes."""
        axes = outer(other)
        return len(axes) > depth and all(
            at[axes[depth]] == VARIABLES[depth] for at in self.reads[node][other]
        )

    def common(self, node: Node, path: tuple[Loop, ...]) -> int:
        """Number of the loops over the entries of a node that are open on a path."""
        own = self.path[node][: len(outer(node))]
        same = [one is other for one, other in zip(own, path, strict=False)]
        return [*same, False].index(False)

    def shared_loops(self, node: Node) -> int:
        """Number of loops that a node shares with all its users; others need memory."""
        paths = [self.path[n] for n, reads in self.reads.items() if node in reads]
        paths += [()] * (node in self.named or node in self.asked)
        return min(self.common(node, path) for path in paths)

    def in_memory(self, node: Node) -> tuple[int, ...]:
        """The axes that the memory of a node has; none where it needs none."""
        axes, shared = outer(node), self.shared[node]
        if shared == len(axes) and not (node in self.named and node.shape):
            return ()
        return tuple(k for k in range(len(node.shape)) if k not in axes[:shared])

    # Text.

    def read(self, node: Node, at: At) -> Text:
        """An entry of an input or of a stored node, from where the text stands."""
        if node not in self.stored:  # an input
            entry = f"{node.data}[{flat(node.shape, at)}]"
            return self.before(entry, at) if node.shape else (node.data, ATOM)
        if self.common(node, self.here) == len(outer(node)):
            return self.local(node, at), ATOM
        return self.before(self.place(node, at), at)

    def before(self, text: str, at: At) -> Text:
        """The same, read once before the loops that do not change it."""
        used = [VARIABLES.index(c) for k in at for c in str(k) if c in VARIABLES]
        depth = max(used, default=-1) + 1
        if depth == len(self.here):
            return text, ATOM
        hoisted = self.here[depth].hoisted
        if text not in hoisted:
            self.hoists += 1
            hoisted[text] = f"r{self.hoists}"
        return hoisted[text], ATOM

    def local(self, node: Node, at: At) -> str:
        """The name of an entry in the turn of the loops that makes it."""
        short = (str(k) for k in at if isinstance(k, int))
        return "_".join([f"t{self.names[node]}", *short])

    def memory(self, node: Node) -> str:
        return self.named.get(node, f"b{self.names[node]}")

    def written(self, body: list[Loop | Node]) -> list[str]:
        """Lines of statements and loops."""
        lines = []
        for each in body:
            if isinstance(each, Node):
                lines += self.statements(each)
                continue
            inner, v = self.written(each.body), VARIABLES[each.depth]
            reduced = [node for node in within(each) if len(outer(node)) == each.depth]
            lines += [f"const {name} = {text};" for text, name in each.hoisted.items()]
            for node in reduced:
                start, _ = REDUCTIONS[node.data[0]]
                lines += [
                    f"let {self.local(node, at)} = {start};" for at in cells(node)
                ]
            lines += [f"for (let {v} = 0; {v} < {each.size}; {v}++) {{", *inner, "}"]
            lines += [line for node in reduced for line in self.stores(node)]
        return lines

    def statements(self, node: Node) -> list[str]:
        """Lines of one turn of its loops: a node is computed, or takes up a term."""
        self.here, lines = self.path[node], []
        for at in cells(node):
            name, text = self.local(node, at), self.computed(node, at, self.read)
            if reduces(node):
                text = expression(REDUCTIONS[node.data[0]][1], [(name, ATOM), text])
                lines.append(f"{name} = {text[0]};")
            else:
                lines.append(f"const {name} = {text[0]};")
        return lines if reduces(node) else lines + self.stores(node)

    def stores(self, node: Node) -> list[str]:
        """Lines that put entries into memory, where others look for them."""
        if not self.in_memory(node):
            return []
        return [
            f"{self.place(node, at)} = {self.local(node, at)};" for at in cells(node)
        ]

    def place(self, node: Node, at: At) -> str:
        """Where in memory an entry is."""
        axes = self.in_memory(node)
        shape, at = (tuple(each[k] for k in axes) for each in (node.shape, at))
        return f"{self.memory(node)}[{flat(shape, at)}]"

    def conditions(self) -> Iterator[str]:
        """Conditions under which the kernel is what was recorded."""
        for name, shape in self.program.inputs.items():
            if shape:
                yield f"{name}.length == {extent(shape)}"
        self.here = ()
        for guard, seen in self.program.guards:
            held = self.entry(guard, (), self.read)
            yield (held if seen else expression("logical_not", [held]))[0]

    def module(self, title: str) -> str:
        """The module, with a first line that says what it is."""
        body = self.written(self.body)
        memory = [
            f"const {self.memory(node)} = new Float64Array("
            f"{extent(node.shape[k] for k in self.in_memory(node))});"
            for node in self.names
            if self.in_memory(node)
        ]
        outputs = ", ".join(
            name if node.shape else f"{name}: {self.local(node, ())}"
            for name, node in self.program.outputs.items()
        )
        conditions = dict.fromkeys(self.conditions())
        parameters = ", ".join([*self.program.letters, *self.program.inputs])
        lines = [
            f"// {title}",
            *(f"const {name} = {text};" for text, name in self.constants.items()),
            f"export default function ({{ {parameters} }}) {{",
            *memory,
            *body,
            "const ok = [",
            *(f"  {condition}," for condition in conditions),
            "].every(Boolean);",
            f"return {{ ok, {outputs} }};",
            "}",
        ]
        return indented(lines)


def ordered(roots: Iterable[Node]) -> list[Node]:
    """Nodes that others need, each after its arguments."""
    order: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in order:
            for arg in node.args:
                visit(arg)
            order[node] = None

    for root in roots:
        visit(root)
    return list(order)


def within(loop: Loop) -> Iterator[Node]:
    for each in loop.body:
        yield from within(each) if isinstance(each, Loop) else (each,)


def moved(at: At, along: Along) -> Index:
    index = at[along.axis]
    if isinstance(index, int):
        return index + along.start
    return f"{index} + {along.start}" if along.start else index


def folded(name: str, operands: list[Text]) -> Text:
    return reduce(lambda one, other: expression(name, [one, other]), operands)


def extent(shape: Iterable[Size]) -> str:
    """Number of entries."""
    return " * ".join(str(size) for size in shape if size != 1) or "1"


def indented(lines: Iterable[str]) -> str:
    text, depth = "", 0
    for line in lines:
        depth -= line.startswith("}")
        text += "  " * depth + line + "\n"
        depth += line.endswith("{")
    return text


def emit(program: Program, title: str) -> str:
    """The module of a program."""
    return Emitter(program).module(title)
