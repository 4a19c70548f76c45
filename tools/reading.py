"""Measures of how pages read: pictures, code, ways without one, cuts on a phone.

    python -m tools.reading            every page; printed, and recorded with a date
    python -m tools.reading 3          one page, with what keeps it from its targets

Each page of the built site is opened as wide as a desk's screen and as narrow as a
phone's. What is folded counts as folded. ``make reading`` calls the first form.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tools.browser import launched, required_browser
from tools.citations import uncited
from tools.command import ROOT, PipelineError, replace, run_main, today
from tools.pdf import addresses, contents_file, fresh_site
from tools.serve import served

RECORD = Path("chapters/reference/reading.json")
#: The pages that must meet their targets: those that have had their second edition.
SECOND_EDITION = (
    "chapters/index.html",
    "chapters/1-softmax-expansion.html",
    "chapters/2-proportional-limits.html",
    "chapters/3-sinkhorn-to-heat-flow.html",
    "chapters/4-mean-field-sphere.html",
    "chapters/5-non-gaussian-attention.html",
    "chapters/6-map-of-limits.html",
    "chapters/7-after-training.html",
    "chapters/8-which-limit.html",
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
QUERIES = ("rank collapse", "heat", "Sinkhorn", "Bartlett")
SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")
# A section with a star is a part of its page, and narrow.mjs sees that it has opened.
WHOLE = """() => {
  document.querySelectorAll('details.further').forEach((fold) => (fold.open = true));
  const later = (done) => requestAnimationFrame(() => requestAnimationFrame(done));
  return new Promise((done) => setTimeout(() => later(done)));
}"""
# The sizes of what is written on a canvas, which has no elements to ask.
PAINTED = """
window.paintedLabels = [];
for (const name of ['fillText', 'strokeText']) {
  const paint = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (text, ...place) {
    const { a, b, c, d } = this.getTransform();
    const shrunk = this.canvas.getBoundingClientRect().width / this.canvas.width;
    const size = parseFloat(this.font.match(/([\\d.]+)px/)[1]);
    const scale = Math.sqrt(Math.abs(a * d - b * c)) * shrunk;
    window.paintedLabels.push([this.canvas, size * scale, String(text)]);
    if (window.paintedLabels.length > 5000) window.paintedLabels.splice(0, 2500);
    return paint.call(this, text, ...place);
  };
}
"""
CHAPTER = re.compile(r"chapters/(\d)-[^/]*\.html")
# Pages that are about documents, and not about what stands in them.
OF_SOURCES = ("errata.html", "bibliography.html", "literature.html")

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A measure of a page or of the book; ``met`` says whether a value is good."""

    key: str
    name: str
    target: str
    met: Callable[[Any], bool]
    shown: Callable[[Any], str]


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def number(value: float | None) -> str:
    return "—" if value is None else f"{value:.3g}"


def nothing(value: Sequence[str]) -> bool:
    return not value


def count(value: Sequence[str]) -> str:
    return str(len(value))


# Of the landing page and the chapters.
OF_STORIES = (
    Measure(
        "exhibit", "exhibit on the first screen", "100 %", lambda x: x > 0.99, share
    ),
    Measure("exhibit_phone", "… of a phone", "100 %", lambda x: x > 0.99, share),
    Measure("code", "open code, of the height", "≤ 12 %", lambda x: x <= 0.12, share),
    Measure("figures", "figures, of the height", "≥ 25 %", lambda x: x >= 0.25, share),
    Measure("way", "screens without a picture", "≤ 3", lambda x: x <= 3, number),
    Measure("boxes", "check boxes in the flow", "0", nothing, count),
)
# Of the chapters only.
OF_CHAPTERS = (
    Measure("words", "words", "≤ 4500", lambda x: x <= 4500, str),
    Measure("sections", "sections without short open cell", "0", nothing, count),
)
# Of every page.
OF_PAGES = (
    Measure("refuted", "statements that say refuted", "0", nothing, count),
    Measure("cut", "formulas cut on a phone", "0", nothing, count),
    Measure("overflow", "too wide for a phone, without cue", "0", nothing, count),
    Measure("label", "smallest label on a phone, px", "≥ 11",
            lambda x: x is None or x >= 10.95, number),
    Measure("sentences", "sentences about the sources", "0", nothing, count),
    Measure("live", "continuous live exhibits", "", lambda x: True, str),
)  # fmt: skip
OF_BOOK = (
    Measure("live", "continuous live exhibits", "≥ 10", lambda x: x >= 10, str),
    Measure("uncited", "works cited on no page", "0", nothing, count),
    *(
        Measure(f"search {each}", f"search {each!r}: a section first", "yes",
                lambda x: bool(re.match(r"chapters/[^/]*\.html#", x)), str)
        for each in QUERIES
    ),
)  # fmt: skip


# -- Measuring ---------------------------------------------------------------------


def reading(
    browser: Any, site: str, address: str, ready: str = "networkidle"
) -> dict[str, Any]:
    """The measures of one page, at both widths, once it is ``ready``."""
    wide = at_width(browser, site, address, WIDE, ready)
    phone = at_width(browser, site, address, PHONE, ready)
    values = wide | {
        key: phone[key] for key in ("cut", "overflow", "label", "smallest")
    }
    if address.endswith(OF_SOURCES):
        values["sentences"] = []
    return values | {"exhibit_phone": phone["exhibit"]}


def at_width(
    browser: Any, site: str, address: str, size: dict[str, int], ready: str
) -> Any:
    """Findings of the script on a page at its opening, in a window of a size."""
    context = browser.new_context(
        viewport=size,
        is_mobile=size is PHONE,
        has_touch=size is PHONE,
        reduced_motion="reduce",
    )
    context.add_init_script(PAINTED)
    tab = context.new_page()
    tab.goto(site + address, wait_until=ready)
    # On a loaded machine the network rests while a long page is still being read.
    tab.wait_for_load_state("load")
    tab.evaluate("document.fonts.ready")
    tab.evaluate(WHOLE)
    measures = tab.evaluate(SCRIPT)
    context.close()
    return measures


def of_book(browser: Any, site: str, pages: Mapping[str, Values]) -> dict[str, Any]:
    """The measures of the book as a whole."""
    record: dict[str, Any] = {
        "live": sum(values["live"] for values in pages.values()),
        "uncited": uncited(ROOT),
    }
    return record | {
        f"search {each}": first_hit(browser, site, each) for each in QUERIES
    }


def first_hit(browser: Any, site: str, query: str) -> str:
    """Address of what the search page finds first, as from the root of the site."""
    context = browser.new_context(viewport=WIDE)
    tab = context.new_page()
    tab.goto(f"{site}search.html?q={query.replace(' ', '+')}", wait_until="networkidle")
    # The order is that of the finished list: results come in one after the other.
    hits = "#search-results li a[href]"
    tab.locator(f"{hits}, #search-results:has-text('did not match')").first.wait_for()
    tab.wait_for_load_state("networkidle")
    parts = urlsplit(tab.evaluate(f"document.querySelector({hits!r})?.href ?? ''"))
    context.close()
    place = f"#{parts.fragment}" if parts.fragment else ""
    return parts.path.lstrip("/") + place


# -- Judging and telling -----------------------------------------------------------


def measures(address: str) -> tuple[Measure, ...]:
    """Measures that a page is held to."""
    stories = OF_STORIES if "/reference/" not in address else ()
    return stories + (OF_CHAPTERS if CHAPTER.fullmatch(address) else ()) + OF_PAGES


def missed(address: str, values: Values) -> list[str]:
    """Sentences on the targets that a page does not meet."""
    return [
        f"{address}: {each.name}: {each.shown(values[each.key])}, wanted {each.target}"
        + details(values, each.key)
        for each in measures(address)
        if not each.met(values[each.key])
    ]


def details(values: Values, key: str) -> str:
    """Places at fault, where the page says them."""
    if key == "label":
        return f" ({values['smallest']!r})"
    named = values[key]
    return "".join(f"\n    {text}" for text in named) if isinstance(named, list) else ""


def short(address: str) -> str:
    """The name of a page at the head of a column."""
    if chapter := CHAPTER.fullmatch(address):
        return f"chapter {chapter[1]}"
    return Path(address).stem.replace("more-checks", "checks")[:12]


def table(pages: Mapping[str, Values]) -> Iterator[str]:
    """Lines: one for each measure, with its target and its values on some pages.

    What misses its target has an exclamation mark.
    """
    yield f"{'':36}{'target':>8}" + "".join(f"{short(name):>13}" for name in pages)
    for each in dict.fromkeys(m for name in pages for m in measures(name)):
        cells = "".join(
            f"{told(each, values[each.key]) if each in measures(name) else '':>13}"
            for name, values in pages.items()
        )
        yield f"{each.name:36}{each.target:>8}{cells}"


def told(measure: Measure, value: Any) -> str:
    """A value, with a mark where it misses its target."""
    return measure.shown(value) + ("" if measure.met(value) else " !")


def brief(values: Values) -> dict[str, Any]:
    """The values as they are recorded: numbers, and how many are at fault."""
    return {
        key: len(value) if isinstance(value, list)
        else round(value, 3) if isinstance(value, float) else value
        for key, value in values.items()
    }  # fmt: skip


def chosen(asked: str, addresses: Sequence[str]) -> str:
    """The page of a number or a name."""
    for address in addresses:
        if asked == Path(address).stem or (
            (chapter := CHAPTER.fullmatch(address)) and chapter[1] == asked
        ):
            return address
    names = ", ".join(Path(address).stem for address in addresses)
    raise PipelineError(f"{asked!r} is no page; there are: {names}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.reading")
    parser.add_argument("page", nargs="?", help="a number of a chapter, or a name")
    asked = parser.parse_args().page
    folder, path = fresh_site(), required_browser("measure the pages")
    asked_for = [address for _, address in addresses(contents_file())]
    if asked:
        asked_for = [chosen(asked, asked_for)]
    with served(folder) as site, launched(path) as browser:
        pages = {each: reading(browser, site, each) for each in asked_for}
        if asked:
            (values,) = pages.values()
            print("\n".join([*table(pages), "", *missed(asked_for[0], values)]))
            return
        book = of_book(browser, site, pages)
    names = sorted(pages, key=lambda name: "/reference/" in name)
    for first in range(0, len(names), 7):
        print(
            "\n".join(table({name: pages[name] for name in names[first : first + 7]}))
        )
        print()
    for each in OF_BOOK:
        print(f"{each.name:36}{each.target:>8}  {told(each, book[each.key])}")
    record = {"date": today(), "pages": {k: brief(v) for k, v in pages.items()}}
    record["book"] = brief(book)
    replace(ROOT / RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    run_main(main, "the record of the last run was kept")
