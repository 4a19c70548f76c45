"""Last edits of every page of a built site, once its style sheets are written.

The theme writes into its pages what only the finished text can be mended of: a dozen
style sheets, scripts before the words, a handler that a strict policy refuses. What
Sphinx knows of a page is mended before it is written, in ``outputs``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from html import unescape
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from bs4.element import Script

from tools.command import NOT_FOUND, PipelineError
from tools.site.bundle import one_style_sheet
from tools.site.cells import fold_cells
from tools.site.first_rules import put_first_rules
from tools.site.further import fold_further
from tools.site.head import ROOT_PAGE
from tools.site.markup import one, parsed, some, with_drawings, without_drawings
from tools.site.pieces import write_index, write_pieces
from tools.site.typeset import STYLES

# Attributes with the address of another file, and that of the root of the site.
ADDRESSES = ("href", "src", "action", "data-content_root")
# Scripts of the theme and of extensions that no page of the book needs: those on every
# page, and those that our page of the search has not.
UNUSED = ("sphinx_highlight.js", "togglebutton.js", "design-tabs.js")
UNUSED_SEARCH = ("searchtools.js", "language_data.js", "searchindex.js")
SEARCH = "search.html"
UNUSED_STARTS = ("let toggle", "var togglebutton")  # of scripts within the pages
# Assets that no finished page needs: the icons that are fonts or a script, and maps.
UNUSED_ASSETS = ("**/fontawesome*", "**/fa-*", "**/*.map")
POLICY = "Content-Security-Policy"  # every finished page has one
AUTO = 'localStorage.getItem("theme") || "auto"'
# The theme of the system before the first paint; the theme's own script decides only
# when the page is there.
SYSTEM = (
    'localStorage.getItem("theme") ||'
    ' (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")'
)
# Which code the reader wants to see, before the first paint as well.
CODE = (
    'document.documentElement.dataset.code = localStorage.getItem("code") || "ideas";'
)
# While the page comes in, what is far below the window is not laid out (page.css), and
# the stored pictures of an exhibit wait for what moves in their place. Who comes back,
# or to a place in the page, is there at once; and book.mjs may fail to come.
ARRIVING = (
    'if (!location.hash && performance.getEntriesByType("navigation")[0]?.type ==='
    ' "navigate") document.documentElement.dataset.arriving = "";\n'
    'addEventListener("DOMContentLoaded",'
    " () => delete document.documentElement.dataset.arriving);"
)
# What the theme measures at every load, in closed folds too: narrow.mjs measures what
# is shown.
TAB_STOPS = (
    '["pre",".nboutput > .output_area",".cell_output > .output",'
    '".jp-RenderedHTMLCommon",".pst-scrollable-table-container"].join(", ")'
)
NOTHING = '"tab-stops-are-those-of-narrow-mjs"'
# What matplotlib says of every element of the page around a drawing: book.css has it.
OF_DRAWINGS = "*{stroke-linejoin: round; stroke-linecap: butt}"
STYLE = re.compile(r"<style\b[^>]*>(.*?)</style>", re.S)
HANDLER = re.compile(r"<[^>]*\s(on[a-z]+)\s*=")


def finish(folder: Path, base: str = "/") -> set[Path]:
    """Finish the new pages of a built site, and drop the assets none of them needs.

    ``base`` is the path under which the site will be served. The pages of an earlier
    build have a policy already; those that had none are returned.
    """
    pages = {
        path: path.read_text("utf-8")
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }
    new = {p for p, html in pages.items() if f'http-equiv="{POLICY}"' not in html}
    mended: Counter[str] = Counter()
    for path in sorted(new):
        name = path.relative_to(folder).as_posix()
        text, drawings = without_drawings(pages[path])
        mended["a drawing with a style of its own"] += drop_styles(drawings, name)
        tree = parsed(text)
        if name != f"{ROOT_PAGE}.html":  # which has no theme
            drop_formula_styles(tree, name)
            one_style_sheet(tree, path, folder)
            mended.update(finish_page(tree, name))
            write_pieces(tree, path, name)
        if name == f"{NOT_FOUND}.html":
            make_absolute(tree, base)
        set_policy(tree, name)
        path.write_text(with_drawings(str(tree), drawings), "utf-8")
    write_index(folder)
    static = folder / "_static"
    drop_tab_stops(static / "scripts" / "pydata-sphinx-theme.js")
    mended.update(drop_assets(static))
    if len(new) == len(pages):  # what a build of single pages has not, others had
        require_all(mended)
    return new


def require_all(mended: Mapping[str, int]) -> None:
    """Stop the build where no page has what some must have."""
    for what, places in mended.items():
        if not places:
            raise PipelineError(f"no page of the site has {what}, which a build mends")


def drop_assets(static: Path) -> dict[str, int]:
    """Drop the assets that no page needs; how many there were of each kind."""
    dropped = {}
    for pattern in UNUSED_ASSETS:
        files = [path for path in static.glob(pattern) if path.is_file()]
        dropped[f"files {pattern}"] = len(files)
        for path in files:
            path.unlink()
    return dropped


def finish_page(tree: BeautifulSoup, name: str) -> dict[str, int]:
    """One page of the theme: fewer scripts, later, and right attributes.

    What only some pages have is counted, by its name.
    """
    put_scripts_last(tree, name)
    drop_scripts(tree, name)
    fold_cells(tree, name)
    fold_further(tree, name)
    set_landmarks(tree, name)
    set_theme_at_once(tree, name)
    mended = {
        "a button that prints": drop_handler(tree, name),
        "a list of contents, #pst-page-toc-nav": take_contents_over(tree),
        "a bibliography, .citation-list": set_list_roles(tree, name),
        "a picture stored with its drawing": drop_stills(tree),
    }
    name_exhibits(tree, name)
    put_exhibits_first(tree, name)
    put_style_first(tree, name)
    put_first_rules(tree, name)
    return mended


def drop_formula_styles(tree: BeautifulSoup, name: str) -> None:
    """A page without formulas needs no letters of theirs."""
    link = one(tree, name, "the style sheet of formulas", f'link[href*="{STYLES}"]')
    if not tree.select(".math"):
        link.decompose()


def drop_tab_stops(script: Path) -> None:
    """Keep the theme from laying out all code of a page, which is mostly folded."""
    text = script.read_text("utf-8")
    if NOTHING in text:
        return  # an earlier build has done it
    if text.count(TAB_STOPS) != 1:
        raise PipelineError(f"{script.name}: it does not measure {TAB_STOPS}")
    script.write_text(text.replace(TAB_STOPS, NOTHING), "utf-8")


def put_scripts_last(tree: BeautifulSoup, name: str) -> None:
    """Scripts of the head behind the text: before it, each costs a round trip.

    Modules wait for the text by themselves, and the script that sets the theme must
    not. The icons in use are drawn by icons.css; the theme's script has two thousand.
    """
    ahead = "links that load scripts ahead"
    for link in some(tree, name, ahead, "link[rel=preload][as=script]"):
        link.decompose()
    icons = "the script of the icons"
    one(tree, name, icons, 'script[src*="fontawesome.js"]').decompose()
    body = one(tree, name, "a body", "body")
    scripts = "head script:not([type], [data-cfasync])"
    for script in some(tree, name, "scripts in its head", scripts):
        body.append(script.extract())


def drop_scripts(tree: BeautifulSoup, name: str) -> None:
    """Leave out what the book has its own way for: the search, folds, tabs.

    The index of the theme's search alone is a sixth of what a page weighs.
    """
    for file in (*UNUSED, *(() if name == SEARCH else UNUSED_SEARCH)):
        one(tree, name, f"the script {file}", f'script[src*="{file}"]').decompose()
    inline = tree.select("script:not([src])")
    for start in UNUSED_STARTS:
        scripts = [each for each in inline if each.text.startswith(start)]
        if not scripts:
            raise PipelineError(f"{name}: no script of it starts with {start!r}")
        for script in scripts:
            script.decompose()


def drop_handler(tree: BeautifulSoup, name: str) -> int:
    """The print button is served by book.mjs; a strict policy refuses handlers."""
    buttons = tree.select('[onclick="window.print()"]')
    for button in buttons:
        del button["onclick"]
    for element in tree.find_all(True):
        if handlers := [key for key in element.attrs if key.startswith("on")]:
            raise PipelineError(
                f"{name}: its policy refuses the handler {handlers[0]}"
                f" of <{element.name}>"
            )
    return len(buttons)


def take_contents_over(tree: BeautifulSoup) -> int:
    """Another name for the contents list, which book.mjs keeps true.

    The theme's script finds it by its name, and misses the headings that pass by
    between two looks: after a jump of the page its list is stale.
    """
    lists = tree.select("#pst-page-toc-nav")
    for contents in lists:
        contents["id"] = "page-contents"
    return len(lists)


def set_landmarks(tree: BeautifulSoup, name: str) -> None:
    """One banner, in which the logo and the search are.

    The theme leaves them outside all landmarks, and writes an empty header and footer.
    """
    for empty in ("header#pst-header", "footer.bd-footer"):
        one(tree, name, f"an empty {empty}", f"{empty}:empty")["role"] = "presentation"
    one(tree, name, "a sidebar", "#pst-primary-sidebar")["role"] = "banner"


def set_theme_at_once(tree: BeautifulSoup, name: str) -> None:
    """The theme of the system before the first paint, a light one without scripts."""
    later = "a theme that is set later"
    one(tree, name, later, "html[data-theme=auto]")["data-theme"] = "light"
    script = one(tree, name, "a script that sets the theme", "script[data-cfasync]")
    if script.text.count(AUTO) != 1:
        raise PipelineError(f"{name}: its script does not set the theme by {AUTO!r}")
    said = script.text.replace(AUTO, SYSTEM)
    script.string = Script(f"{said}\n{CODE}\n{ARRIVING}\n")


def set_list_roles(tree: BeautifulSoup, name: str) -> int:
    """Give the bibliography roles that its elements can have.

    docutils writes ``role="list"`` around entries that are no list items.
    """
    lists = tree.select(".citation-list")
    for works in lists:
        place = "entries in its bibliography"
        for entry in some(works, name, place, "[role=doc-biblioentry]"):
            entry["role"] = "listitem"
    return len(lists)


def drop_stills(tree: BeautifulSoup) -> int:
    """The PNG stored in a figure is for those who are shown no SVG."""
    dropped = 0
    for template in tree.find_all("template"):  # into which a selector does not look
        image = template.find("img", recursive=False)
        if image and str(image.get("src")).startswith("data:image/png;"):
            template.decompose()
            dropped += 1
    return dropped


def drop_styles(drawings: list[str], name: str) -> int:
    """Say once what each drawing says in a style sheet of its own; how many do.

    Its rule is for all elements: with every drawing that comes in, a browser would
    compute the styles of the whole page anew.
    """
    dropped = 0
    for k, drawing in enumerate(drawings):
        if handler := HANDLER.search(drawing):
            raise PipelineError(
                f"{name}: its policy refuses the handler {handler[1]} of a drawing"
            )
        for style in STYLE.findall(drawing):
            if unescape(style).strip() != OF_DRAWINGS:
                raise PipelineError(f"{name}: a drawing has other styles: {style!r}")
        drawings[k], count = STYLE.subn("", drawing)
        dropped += count
    return dropped


def put_style_first(tree: BeautifulSoup, name: str) -> None:
    """Ask for the style sheet at once: nothing is drawn before it is there.

    Before it stands the script that sets the theme: behind it, script and all that
    follows would wait for the style sheet.
    """
    script = one(tree, name, "a script that sets the theme", "script[data-cfasync]")
    sheet = one(tree, name, "a style sheet", "head > link[rel=stylesheet]")
    title = one(tree, name, "a title", "head > title")
    title.insert_after(script.extract(), sheet.extract())


def name_exhibits(tree: BeautifulSoup, name: str) -> None:
    """Let a screen reader say what an exhibit is before its controls.

    Its drawing has no text, and its caption stands below them.
    """
    for number, exhibit in enumerate(tree.select("figure.book-exhibit")):
        caption = one(exhibit, name, "a caption of its exhibit", "figcaption")
        exhibit["aria-labelledby"] = caption["id"] = f"exhibit-{number}"


def put_exhibits_first(tree: BeautifulSoup, name: str) -> None:
    """The script of a page's exhibits, and at once what it will ask for.

    It runs as soon as it is there: what moves stands at the top, and does not wait for
    the end of the page.
    """
    exhibits = tree.select("figure.book-exhibit")
    if not exhibits:
        return
    names = dict.fromkeys(each for e in exhibits for each in exhibit_modules(e))
    root = one(tree, name, "the way to its root", "html[data-content_root]")
    static = f"{root['data-content_root']}_static"
    made = [tree.new_tag("script", type="module", src=f"{static}/exhibit.mjs")]
    made[0]["async"] = ""
    for file in names:
        address = f"{static}/{file}"
        made.append(tree.new_tag("link", rel="modulepreload", href=address))
    one(tree, name, "a title", "head > title").insert_after(*made)


def exhibit_modules(exhibit: Tag) -> list[str]:
    """The modules that an exhibit will ask for, as from the folder of its script."""
    # The description that lib.figures.live writes.
    said = one(exhibit, "an exhibit", "what it is", "script[type='application/json']")
    described = json.loads(said.string or "")
    files = ["random", described["script"]]
    files += [f"kernels/{file}" for file in described["kernels"].values()]
    return [f"{file}.mjs" for file in files]


def make_absolute(tree: BeautifulSoup, base: str) -> None:
    """Let addresses lead to the same places from any depth.

    The page of unknown addresses is served in their place, wherever they are.
    """
    for key in ADDRESSES:
        for element in tree.select(f"[{key}]"):
            if is_within(value := str(element[key])):
                element[key] = base + value.removeprefix("./")


def is_within(address: str) -> bool:
    """Say whether an address is one within the site, as from its root."""
    scheme, colon, _ = address.partition(":")
    outside = colon and scheme.replace("-", "").replace("+", "").isalnum()
    return not (outside or address.startswith(("#", "/")))


def set_policy(
    tree: BeautifulSoup, name: str, *more: str, scripts: str = "'self'"
) -> None:
    """Allow this page its own files and its own inline scripts, and nothing else.

    ``more`` are further directives and ``scripts`` the sources of scripts, for a page
    that needs others.
    """
    inline = tree.select('script:not([src], [type*="json"])')
    # As they are written, whatever kind of text a tree takes them for.
    hashes = sorted({source_of(script.decode_contents()) for script in inline})
    policy = (
        "default-src 'self'; base-uri 'self'; object-src 'none'; form-action 'self';"
        " img-src 'self' data:; style-src 'self' 'unsafe-inline';"
        f" script-src {' '.join([scripts, *hashes])}"
        + "".join(f"; {each}" for each in more)
    )
    meta = {"http-equiv": POLICY, "content": policy}
    one(tree, name, "a head", "head").insert(0, tree.new_tag("meta", attrs=meta))


def source_of(text: str) -> str:
    """The policy's name for an inline script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
