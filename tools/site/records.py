"""Directives that show what runs recorded: seeds, mutants, benchmarks, kernels."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from docutils import nodes

from tools.kernels.parity import MOST
from tools.kernels.parity import RECORD as PARITY
from tools.mutants.record import RECORD as MUTANTS
from tools.notebooks import FACTS
from tools.paint import RECORD as PAINT
from tools.paint import told_of_globe
from tools.reseed import RESULTS as RESEED
from tools.reseed import Rate, counts_of_runs, rates
from tools.site.directives import Page, table
from tools.site.ratio_figure import ratio_figure, shown

BENCHMARKS = "benchmarks/results.json"


class Reseed(Page):
    """Shows the result of ``make reseed``: how much was run, failures, two rates."""

    def run(self) -> list[nodes.Node]:
        result = self.read(RESEED)
        claims = result["claims"]
        failing = [each for each in claims if each["passed"] < each["runs"]]
        sentences = [f"{each['claim']}: {times(each['words'])}" for each in failing]
        items = [nodes.list_item("", nodes.paragraph(text=s)) for s in sentences]
        listing = [nodes.bullet_list("", *items)] if items else []
        refuted = {(row.page, row.id) for row in self.rows if row.word == "REFUTED"}
        return [
            nodes.paragraph(text=fresh_seeds(result)),
            *listing,
            nodes.paragraph(
                text="Where numbers differ from seed to seed a verdict may be wrong:"
            ),
            rate_table(*rates(claims, refuted)),
        ]


def fresh_seeds(result: dict[str, Any]) -> str:
    """Of the record of fresh seeds: how many claims had how many, how many failed."""
    claims = result["claims"]
    (most, first), *others = counts_of_runs(claims).items()
    *ahead, last = [
        f"{first} of the {len(claims)} claims had been run under {most} fresh seeds",
        *(f"{count} under {runs}" for runs, count in others),
    ]
    listed = f"{', '.join(ahead)} and {last}" if ahead else last
    failed = sum(each["passed"] < each["runs"] for each in claims) or "none"
    return f"By {result['date']}, {listed}; {failed} of them failed."


def rate_table(alarms: Rate, misses: Rate) -> nodes.table:
    """False alarms and misses of the verdicts, with the bounds of their rates."""
    lines = [
        [
            nodes.Text(what),
            *(nodes.Text(f"{number:,}") for number in rate),
            nodes.Text(f"{rate.bound:.2g}"),
        ]
        for what, rate in (
            ("true claims that did not hold", alarms),
            ("false variants that passed as true", misses),
        )
    ]
    heads = ["wrong verdicts", "claims", "runs", "wrong", "rate at most (95 %)"]
    return table(heads, lines)


class Mutants(Page):
    """Shows what ``make mutants`` found: who noticed how many, and those none can."""

    def run(self) -> list[nodes.Node]:
        record = self.read(MUTANTS)
        counts = record["summary"]
        noticed, wrong = counts["noticed"], counts["mutants"] - counts["equivalent"]
        own, package, other = (
            counts[f"by {whose}"]
            for whose in (
                "the module's own tests",
                "its package's",
                "other tests of lib",
            )
        )
        text = (
            f"On {record['date']}, {counts['mutants']} of the {record['of']:,} mutants"
            f" were drawn with the seed {record['seed']}."
            f" {counts['equivalent']} of them compute the same. The tests notice"
            f" {noticed} of the other {wrong}, {noticed / wrong:.1%}:"
            f" {own} are noticed by the tests of their own module, {package} by others"
            f" of its package, {other} by other tests of lib, and"
            f" {counts['before any test']} before a test begins. {counts['hang']} of"
            " them would never end."
        )
        return [nodes.paragraph(text=text), *self.others(record["mutants"])]

    def others(self, rows: list[dict[str, Any]]) -> list[nodes.Node]:
        """The mutants that no test notices, each with the reason, if there is one."""
        lines = [
            [
                nodes.Text(f"{each['file'].removeprefix('lib/')}:{each['line']}"),
                nodes.literal(text=each["code"]),
                nodes.literal(text=f"{each['was']} → {each['to']}"),
                nodes.Text(each["reason"] or "alive"),
            ]
            for each in sorted(rows, key=lambda row: (row["file"], row["line"]))
            if each["how"] is None
        ]
        if not lines:
            return []
        return [
            nodes.paragraph(text="No test notices these, for the reasons given:"),
            table(["where", "statement", "change", "reason"], lines),
        ]


class Benchmarks(Page):
    """Shows what ``make bench`` measured beside peers, a section for each module."""

    def run(self) -> list[nodes.Node]:
        results = self.read(BENCHMARKS)
        unit, machine = results["unit_seconds"], results["machine"]
        versions = ", ".join(f"{k} {v}" for k, v in results["versions"].items())
        text = (
            f"Measured on {results['date']} on one thread of {machine['processor']}"
            f" ({machine['system']}), with {versions}. The limits of the machine on"
            f" that day: {1e-9 / unit['bytes']:.1f} GB/s of memory,"
            f" {1e9 * unit['exp']:.2f} ns an exponential,"
            f" {1e9 * unit['normals']:.1f} ns a normal deviate,"
            f" {1e-9 / unit['flop']:.0f} Gflop/s in a matrix product."
        )
        by_module = groupby(results["rows"], key=lambda row: row["module"])
        return [
            nodes.paragraph(text=text),
            *(module_section(module, [*rows]) for module, rows in by_module),
        ]


def module_section(module: str, rows: list[dict[str, Any]]) -> nodes.section:
    """A module of the benchmarks: its figure, its table, and why peers are faster."""
    title = f"lib.{'sphere.cosines' if module == 'cosines' else module}"
    part = nodes.section(ids=[f"benchmarks-{module}"])
    part += [
        nodes.title("", "", nodes.literal(text=title)),
        nodes.raw("", ratio_figure(title, rows)._repr_html_(), format="html"),
        table(
            ["what", "peer", "ours", "ratio", "errors: ours, peer", "limit"],
            [line(number, row) for number, row in enumerate(rows, 1)],
        ),
    ]
    places = [*enumerate(rows, 1)]
    slower = [(at, row["reason"]) for at, row in places if loses(row)]
    far = [(at, row["beyond"]) for at, row in places if "beyond" in row]
    for head, told in (
        ("Why peers are faster:", slower),
        ("What takes more than three times the limit:", far),
    ):
        if told:
            part += [nodes.paragraph(text=head), sentences(told)]
    return part


def loses(row: dict[str, Any]) -> bool:
    """Tell whether the peer of a row is faster, and why is known."""
    return bool("reason" in row and "ratio" in row and row["ratio"]["median"] < 1)


def sentences(told: list[tuple[int, str]]) -> nodes.bullet_list:
    """List of the sentences of rows, with their numbers; once what several say."""
    numbers: dict[str, list[str]] = {}
    for place, sentence in told:
        numbers.setdefault(sentence, []).append(str(place))
    items = (f"{', '.join(each)}: {said}" for said, each in numbers.items())
    listed = (nodes.list_item("", nodes.paragraph(text=item)) for item in items)
    return nodes.bullet_list("", *listed)


def line(number: int, row: dict[str, Any]) -> list[nodes.Node]:
    """A row of the benchmarks in the table of its module."""
    ratio, errors = row.get("note", "—"), row["ours"]["words"]["error"]
    if "ratio" in row:
        middle, low, high = (shown(row["ratio"][k]) for k in ("median", "low", "high"))
        ratio = f"{middle} ({low}–{high})"
        errors += f", {row['peer']['words']['error']}"
    limit = row.get("limit")
    cells = (
        f"{number}. {row['name']}",
        row["peer_name"],
        row["ours"]["words"]["seconds"],
        ratio,
        errors,
        f"{limit['ours_over_limit']:.1f} × {limit['by']}" if limit else "—",
    )
    return [nodes.Text(cell) for cell in cells]


class Growths(Page):
    """Shows how costs grow, as ``make bench`` measured it."""

    def run(self) -> list[nodes.Node]:
        lines = [
            [
                nodes.Text(each["name"]),
                nodes.Text(f"{min(each['sizes']):,} to {max(each['sizes']):,}"),
                nodes.Text(f"{each['exponent']:.2f} ± {each['stderr']:.2f}"),
                nodes.Text(f"{each['expected']:g}"),
            ]
            for each in self.read(BENCHMARKS)["growths"]
        ]
        return [table(["what", "from, to", "exponent (s.e.)", "expected"], lines)]


class Paints(Page):
    """Shows when a page is first seen and first moves, and how fast it moves then."""

    def run(self) -> list[nodes.Node]:
        sight = self.read(PAINT)
        lines = [
            [
                nodes.Text(each["page"]),
                *(
                    nodes.Text(f"{each[key]:.2f} s" if key in each else "—")
                    for key in ("seconds", "moves")
                ),
                nodes.Text(each.get("note") or f"{each['bytes'] / 1000:.0f} kB"),
            ]
            for each in sight["pages"]
        ]
        heads = ["page", "first contentful paint", "first movement", "on the wire"]
        told = [nodes.paragraph(text=f"On {sight['date']}:"), table(heads, lines)]
        if "globe" in sight:  # which a record of before has not
            told.append(nodes.paragraph(text=told_of_globe(sight["globe"])))
        return told


class Parity(Page):
    """Shows how far the kernels are from ``lib`` in each engine, and how fast."""

    def run(self) -> list[nodes.Node]:
        record = self.read(PARITY)
        engines = record["engines"]
        sizes = ", ".join(map(str, record["sizes"]))
        errors = [
            [
                nodes.literal(text=name),
                nodes.Text(f"{kernel['gzip'] / 1000:.1f} kB"),
                nodes.Text(kernel["largest"]),
                *(nodes.Text(f"{e['errors'][name]:.1e}") for e in engines.values()),
            ]
            for name, kernel in record["kernels"].items()
        ]
        first = next(iter(engines.values()))["milliseconds"]
        times = [
            [
                nodes.Text(n),
                nodes.Text(f"{first[n]['numpy']:.2f} ms"),
                *(
                    nodes.Text(f"{e['milliseconds'][n]['kernel']:.2f} ms")
                    for e in engines.values()
                ),
            ]
            for n in first
        ]
        return [
            nodes.paragraph(
                text=f"Largest error at the sizes {sizes}, as long as a kernel is given"
                f" at most {MOST:,} numbers, relative to the largest entry of each"
                f" output, on {record['date']}:"
            ),
            table(["kernel", "gzipped", "up to size", *engines], errors),
            nodes.paragraph(
                text="A step of tokens on the sphere (four fields, the least of five"
                " rounds; numpy by the processor's time, browsers by the clock):"
            ),
            table(["tokens", "numpy", *engines], times),
        ]


class ExecutionFacts(Page):
    """Table of what ``make notebooks`` recorded: time, date, versions, machine."""

    def run(self) -> list[nodes.Node]:
        facts = self.read(FACTS)
        heads = ["notebook", *next(iter(facts.values()))]
        lines = [
            [nodes.Text(str(value)) for value in (name, *fact.values())]
            for name, fact in facts.items()
        ]
        return [table([head.replace("_", " ") for head in heads], lines)]


def times(words: dict[str, int]) -> str:
    """Count in words how each verdict came out: ``HOLDS 19 times, FAILS once``."""
    return ", ".join(
        f"{word} {'once' if count == 1 else f'{count} times'}"
        for word, count in words.items()
    )


def setup(app: Any) -> None:
    app.add_directive("reseed", Reseed)
    app.add_directive("mutants", Mutants)
    app.add_directive("benchmarks", Benchmarks)
    app.add_directive("growths", Growths)
    app.add_directive("paints", Paints)
    app.add_directive("execution-facts", ExecutionFacts)
    app.add_directive("parity", Parity)
