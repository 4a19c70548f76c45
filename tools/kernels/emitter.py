"""A recorded graph as JavaScript: loops over Float64Array, and nothing else.

An axis of free size is a loop. Every other axis is written out: each entry along it is
a *cell* of its own. A cell is written where it is used when that is cheap, else
computed once (:meth:`Emitter.choose`), in loops that are shared wherever one needs of
another nothing but the entry at hand (:meth:`Emitter.fuse`). The outermost loop runs
over i, the next over j: the text of a cell is the same in every loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial, reduce
from itertools import product
from math import prod

from tools.kernels.graph import Node, Refused, Shape, free
from tools.kernels.operations import ATOM, OPERATIONS, REDUCTIONS, Text, applied, number
from tools.kernels.recorder import Program

NOMINAL = 64  # what a free size counts for
WORTH = 1.5  # operations for each entry above which a value is kept
VARIABLES = "ijkl"
At = tuple[int | str, ...]  # along each axis a number, or one of i, j, ...


def places(shape: Shape, depth: int = 0) -> Iterator[At]:
    """Entries that are written out; where an axis is a loop, at its variable."""
    names = iter(VARIABLES[depth:])
    return product(
        *([next(names)] if isinstance(size, str) else range(size) for size in shape)
    )


def extent(shape: Shape) -> str:
    """Number of entries."""
    fixed = prod(size for size in shape if isinstance(size, int))
    return " * ".join([*free(shape), *[str(fixed)] * (fixed != 1)]) or "1"


def flat(shape: Shape, at: At) -> str:
    """Place of an entry in an array that is stored row by row."""
    terms, constant = [], 0
    for axis, index in enumerate(at):
        stride = extent(shape[axis + 1 :])
        if isinstance(index, int) and stride.isdecimal():
            constant += index * int(stride)
        elif index != 0:
            terms.append(f"{stride} * {index}".removeprefix("1 * "))
    return " + ".join([*terms, *[str(constant)] * (constant > 0 or not terms)])


class Loop:
    """A loop over a size: what is in it, and entries that are read before it."""

    def __init__(self, size: str, depth: int):
        self.size, self.depth = size, depth
        self.body: list[Loop | Cell] = []
        self.sums: list[Cell] = []  # they start before it
        self.hoisted: dict[str, str] = {}


class Cell:
    """A value of the graph at given places of fixed axes, for loops over free ones.

    ``outer`` are the sizes of the loops over its entries, ``loops`` these and those
    over the terms of an entry. ``parts`` is what one turn of its loops needs.
    """

    def __init__(self, node: Node, at: At, parts: list[Read]):
        self.node, self.at, self.parts = node, at, parts
        self.outer = free(node.shape)
        self.loops = free(node.args[0].shape) if node.op in REDUCTIONS else self.outer
        self.kept, self.number = False, 0
        self.reads: set[Read] = set()  # kept cells in its text, and where along loops
        self.path: tuple[Loop, ...] = ()  # the loops around its statement
        self.memory: Shape = ()  # of the loops that not all its readers are in

    def along(self, at: At) -> At:
        """Place of an entry along the loops."""
        sizes = zip(at, self.node.shape, strict=True)
        return tuple(k for k, size in sizes if isinstance(size, str))

    def common(self, path: tuple[Loop, ...]) -> int:
        """Number of the loops over the entries that are open on a path."""
        return len({*self.path[: len(self.outer)]} & {*path})


Read = tuple[Cell, At]


class Emitter:
    """One program on its way to a module."""

    def __init__(self, program: Program):
        self.program = program
        names = [*program.letters, *program.inputs, *program.outputs]
        taken = {each for each in names if names.count(each) > 1 or each in VARIABLES}
        if taken:
            raise Refused(f"names are taken: {', '.join(sorted(taken))}")
        self.cells: dict[tuple[Node, At], Cell] = {}  # each after its parts
        self.here: tuple[Loop, ...] = ()
        self.hoists = 0
        # Arrays are written into outputs; numbers and guards are read at the end.
        at_end = [guard for guard, _ in program.guards]
        for name, node in program.outputs.items():
            if not node.shape:
                at_end.append(node)
                continue
            output = Node("output", (node,), name, node.shape)
            for at in places(node.shape):
                self.read(output, at)
        self.read(Node("end", tuple(at_end)), ())
        self.choose()
        kept = [cell for cell in self.cells.values() if cell.kept]
        for cell in kept:
            cell.reads = set(self.sources(cell.parts))
        self.body = self.fuse(kept[:-1], ())
        self.allot(kept)

    # Cells.

    def read(self, node: Node, at: At) -> Read:
        """The cell of an entry, behind views and arrays that were put together.

        Numpy lines arrays up at their last axes, and repeats those of one entry.
        """
        pairs = zip(node.shape, at[len(at) - len(node.shape) :], strict=True)
        at = tuple(0 if size == 1 else k for size, k in pairs)
        if node.op == "view":
            read = ((0 if k is None else at[k], start) for k, start in node.data)
            source = (k + start if start else k for k, start in read)
            return self.read(node.args[0], tuple(source))
        if node.op == "concatenate":
            axis, place = node.data, at[node.data]
            for arg in node.args:
                if place < arg.shape[axis]:
                    return self.read(arg, (*at[:axis], place, *at[axis + 1 :]))
                place -= arg.shape[axis]
        names = iter(VARIABLES)
        pairs = zip(at, node.shape, strict=True)
        own = tuple(next(names) if isinstance(size, str) else k for k, size in pairs)
        if (node, own) not in self.cells:
            self.cells[node, own] = Cell(node, own, self.parts(node, own))
        return self.cells[node, own], at

    def parts(self, node: Node, at: At) -> list[Read]:
        """Entries that one is computed from, in one turn of its loops."""
        terms = node.args[0].shape[len(at) :] if node.op in REDUCTIONS else ()
        return [
            self.read(arg, (*at, *rest))
            for rest in places(terms, len(free(node.shape)))
            for arg in node.args
        ]

    # What is computed once, and where.

    def choose(self) -> None:
        """Keep outputs, sums over loops, what would be computed again and again."""
        asked: Counter[Cell] = Counter()
        for cell in reversed(self.cells.values()):
            entries, turns = NOMINAL ** len(cell.outer), NOMINAL ** len(cell.loops)
            operation = OPERATIONS.get(cell.node.op)
            cost = operation.cost if operation else len(cell.parts)
            again = cost * (asked[cell] / entries - 1)
            made = cell.node.op in ("output", "end") or turns > entries
            cell.kept = made or again > WORTH
            for part, _ in cell.parts:
                asked[part] += turns if cell.kept else asked[cell]

    def sources(self, parts: list[Read]) -> Iterator[Read]:
        """The kept cells that are read for parts, and at which places along loops."""
        for cell, at in parts:
            if cell.kept:
                yield cell, cell.along(at)
            else:
                yield from self.sources(self.parts(cell.node, at))

    def fuse(self, waiting: list[Cell], path: tuple[Loop, ...]) -> list[Loop | Cell]:
        """Statements, and loops around others, that compute cells on a path.

        A loop takes up every cell that needs nothing of those in it but what the same
        turn of the loop has made.
        """
        body: list[Loop | Cell] = []
        depth = len(path)
        while waiting:
            rest = set(waiting)
            ready = [c for c in waiting if not any(one in rest for one, _ in c.reads)]
            group = [cell for cell in ready if len(cell.loops) == depth]
            for cell in group:
                cell.path = path
            body += group
            if not group:
                loop = Loop(ready[0].loops[depth], depth)
                turn = (VARIABLES[depth],)
                for cell in waiting:
                    if cell.loops[depth : depth + 1] == (loop.size,) and all(
                        one in group and at[depth : depth + 1] == turn
                        for one, at in cell.reads
                        if one in rest
                    ):
                        group.append(cell)
                loop.sums = [cell for cell in group if len(cell.outer) == depth]
                loop.body = self.fuse(group, (*path, loop))
                body.append(loop)
            waiting = [cell for cell in waiting if cell not in group]
        return body

    def allot(self, kept: list[Cell]) -> None:
        """Number what is kept; memory has the loops that its readers are not in."""
        shared = {cell: len(cell.outer) for cell in kept}
        for cell in kept:
            for one, _ in cell.reads:
                shared[one] = min(shared[one], one.common(cell.path))
        for k, cell in enumerate(kept):
            cell.number, cell.memory = k, cell.outer[shared[cell] :]

    # Text.

    def text(self, cell: Cell, at: At) -> Text:
        """An entry where it is used: read, or computed on the spot."""
        if not cell.kept:
            return self.computed(cell.node, at)
        if cell.common(self.here) == len(cell.outer):
            return f"t{cell.number}", ATOM
        return self.before(self.place(cell, at), cell.along(at)), ATOM

    def computed(self, node: Node, at: At) -> Text:
        """An entry computed from others."""
        match node.op:
            case "input" if at:
                return self.before(f"{node.data}[{flat(node.shape, at)}]", at), ATOM
            case "input" | "size":
                return node.data, ATOM
            case "arange":
                return str(at[0]), ATOM
            case "constant":
                return number(node.data[int(flat(node.shape, at))])
        texts = [self.text(*part) for part in self.parts(node, at)]
        if node.op in REDUCTIONS:
            return reduce(partial(applied, REDUCTIONS[node.op][1]), texts)
        return applied(node.op, *texts)

    def before(self, text: str, at: At) -> str:
        """The same, read once before the loops that do not change it."""
        depth = max(VARIABLES.find(str(k)) + 1 for k in at)
        if depth in (0, len(self.here)):
            return text
        hoisted = self.here[depth].hoisted
        self.hoists += text not in hoisted
        return hoisted.setdefault(text, f"r{self.hoists}")

    def place(self, cell: Cell, at: At) -> str:
        """Place of an entry in memory."""
        along = cell.along(at)[len(cell.outer) - len(cell.memory) :]
        return f"b{cell.number}[{flat(cell.memory, along)}]"

    def written(self, body: list[Loop | Cell]) -> Iterator[str]:
        """Lines of statements and loops."""
        for each in body:
            if isinstance(each, Cell):
                yield from self.statements(each)
                continue
            inner, v = list(self.written(each.body)), VARIABLES[each.depth]
            for text, name in each.hoisted.items():
                yield f"const {name} = {text};"
            for cell in each.sums:
                yield f"let t{cell.number} = {REDUCTIONS[cell.node.op][0]};"
            yield f"for (let {v} = 0; {v} < {each.size}; {v}++) {{"
            yield from (f"  {line}" for line in inner)
            yield "}"
            for cell in each.sums:
                yield from self.stores(cell)

    def statements(self, cell: Cell) -> Iterator[str]:
        """Lines of one turn of its loops: a cell is computed, or takes up a term."""
        self.here, node, name = cell.path, cell.node, f"t{cell.number}"
        if node.op == "output":
            text, _ = self.text(*cell.parts[0])
            yield f"{node.data}[{flat(node.shape, cell.at)}] = {text};"
        elif cell.loops == cell.outer:
            yield f"const {name} = {self.computed(node, cell.at)[0]};"
            yield from self.stores(cell)
        else:
            term, step = self.computed(node, cell.at), REDUCTIONS[node.op][1]
            yield f"{name} = {applied(step, (name, ATOM), term)[0]};"

    def stores(self, cell: Cell) -> Iterator[str]:
        """A line that puts a cell into memory, where others look for it."""
        if cell.memory:
            yield f"{self.place(cell, cell.at)} = t{cell.number};"

    def module(self, title: str) -> str:
        """The module, with a first line that says what it is."""
        letters, inputs, outputs, guards = vars(self.program).values()
        body = list(self.written(self.body))
        self.here = ()
        ok = [f"{k}.length == {extent(v)}" for k, v in inputs.items() if v]
        for guard, seen in guards:
            held = self.text(*self.read(guard, ()))
            ok.append((held if seen else applied("logical_not", held))[0])
        given = [
            k if node.shape else f"{k}: {self.text(*self.read(node, ()))[0]}"
            for k, node in outputs.items()
        ]
        memory = {f"b{c.number}": c.memory for c in self.cells.values() if c.memory}
        memory |= {k: node.shape for k, node in outputs.items() if node.shape}
        inner = [
            *(f"const {k} = new Float64Array({extent(v)});" for k, v in memory.items()),
            *body,
            "const ok = [",
            *(f"  {condition}," for condition in dict.fromkeys(ok)),
            "].every(Boolean);",
            f"return {{ {', '.join(['ok', *given])} }};",
        ]
        head = f"export default function ({{ {', '.join([*letters, *inputs])} }}) {{"
        lines = [f"// {title}", head, *(f"  {line}" for line in inner), "}", ""]
        return "\n".join(lines)
