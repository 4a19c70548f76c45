"""Downloaded notebooks: plain Markdown of each construct."""

import io
import re
import xml.etree.ElementTree as ET

import docutils.nodes
import nbformat
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace

from tools.command import ROOT, PipelineError
from tools.digests import KEY
from tools.site.plain import notebook as plain
from tools.site.plain.check import require_plain
from tools.site.plain.inline import at_start, escaped, joined
from tools.texts import METADATA, SETS, read_text, texts

ADDRESS = "https://example.org/book/"
MYST = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["parse"]
CONF = """
extensions = ["myst_nb", "sphinx_design", "sphinx_proof", "sphinxcontrib.bibtex"]
exclude_patterns = {excluded!r}
nb_execution_mode = "off"
myst_enable_extensions = {myst!r}
bibtex_bibfiles = ["references.bib"]
root_doc = "first"
"""
WORKS = """
@misc{one, author = {Ada One}, title = {A}, year = {2001}, eprint = {2001.00001}}
@misc{two, author = {Bo Two and Cy Three}, title = {B}, year = {2002},
  doi = {10.1000/(x)2}, eprint = {2002.2}}
@misc{many, author = {Di Four and Ed Five and Fay Six}, title = {C}, year = {2003}}
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>'
OTHER = """(far)=
# Another page

```{prf:theorem} Far away
:label: thm-far

It holds.
```

```{bibliography}
```
"""


class Book:
    """A small book whose pages are converted while Sphinx resolves them."""

    def __init__(self, folder, address=None, **pages):
        excluded = [f"{name}.md" for name in pages]
        listed = "\n".join(["other", *pages])
        files = {
            "conf.py": CONF.format(
                excluded=excluded, myst=MYST["myst_enable_extensions"]
            ),
            "references.bib": WORKS,
            "first.md": f"# First\n\n```{{toctree}}\n{listed}\n```\n",
            "other.md": OTHER,
            "dot.png": "not a real one",
            "line.svg": SVG,
        }
        for name, cells in pages.items():
            notebook = new_notebook(cells=cells, metadata={**METADATA, KEY: {"a": "b"}})
            files[f"{name}.ipynb"] = nbformat.writes(notebook)
            text = (cell.source for cell in cells if cell.cell_type == "markdown")
            files[f"{name}.md"] = "\n\n".join(["---\nfront: matter\n---", *text])
        for name, content in files.items():
            (folder / name).write_text(content, "utf-8")
        self.warnings = io.StringIO()
        self.app = Sphinx(
            folder, folder, folder / "html", folder / "trees", "html",
            status=None, warning=self.warnings,
        )  # fmt: skip
        plain.setup(self.app)
        self.app.env.limit_plain, self.app.env.limit_address = {}, address
        list(self.app.env.check_dependents(self.app, set(self.app.builder.read())))

    def notebook(self, name):
        self.app.env.get_and_resolve_doctree(name, self.app.builder)
        return nbformat.reads(self.app.env.limit_plain[name], 4)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    with docutils_namespace():
        yield lambda *args, **pages: Book(
            tmp_path_factory.mktemp("book"), *args, **pages
        )


# Constructs, each as it is written and as it is given away.

EXAMPLES = {
    "heading": ("## A *head* of $x$", "## A *head* of $x$"),
    "target": (
        "(here)=\n## Head\n\nSee [that](here) and [](here).",
        '<a id="here"></a>\n\n## Head\n\nSee [that](#here) and [Head](#here).',
    ),
    "statement": (
        "```{prf:theorem} Sums of $x$\n:label: thm-a\n\nFirst:\n\n1. one,\n2. $2 <y$.\n"
        "\n$$\nx &= |y| \\\\\n&= z\n$$\n```",
        '> <a id="thm-a"></a>**Theorem 2 (Sums of $x$).** First:\n>\n> 1. one,\n'
        "> 2. $2 < y$.\n>\n> $$\\begin{split}x &= |y| \\\\ &= z\\end{split}$$",
    ),
    "untitled statement": (
        "```{prf:lemma}\n:label: lem-a\n\n- It holds.\n```",
        '> <a id="lem-a"></a>**Lemma 1.**\n>\n> - It holds.',
    ),
    "unnumbered statement": (
        "```{prf:remark} Aside\n:label: rem-a\n:nonumber:\n\nIt holds.\n```",
        '> <a id="rem-a"></a>**Remark (Aside).** It holds.',
    ),
    "proof": ("```{prf:proof}\nOne.\n\nTwo.\n```", "*Proof.* One.\n\nTwo. ∎"),
    "proof that ends with a formula": (
        "```{prf:proof}\nOne:\n\n$$ x $$\n```",
        "*Proof.* One:\n\n$$\nx\n$$\n\n∎",
    ),
    "dropdown": (
        ":::{dropdown} Is `1 < 2`?\n1. one\n\n   $$ x $$ (eq-a)\n\n2. two\n\n"
        "| a | b |\n|---|--:|\n| $\\|x\\|$ | `1\\|2` |\n:::\n\nBy {eq}`eq-a`.",
        "<details>\n<summary>Is 1 &lt; 2?</summary>\n\n1. one\n\n"
        '   <a id="equation-eq-a"></a>\n\n   $$\n   x \\tag{1}\n   $$\n\n2. two\n\n'
        "| a | b |\n| --- | ---: |\n| $\\vert x\\vert$ | `1\\|2` |"
        "\n\n</details>\n\nBy [(1)](#equation-eq-a).",
    ),
    "open dropdown without title": (
        ":::{dropdown}\n:open:\nText.\n:::",
        "<details open>\n<summary>More</summary>\n\nText.\n\n</details>",
    ),
    "dropdown in a list": (
        "1. Why?\n\n   :::{dropdown} Answer\n   So.\n   :::\n2. And?",
        "1. Why?\n\n   <details>\n   <summary>Answer</summary>\n\n   So.\n\n"
        "   </details>\n\n2. And?",
    ),
    "admonition": (
        ":::{admonition} At *a* glance\n- one\n- two\n:::",
        "> **At *a* glance**\n>\n> - one\n> - two",
    ),
    "note": (":::{note}\nOne.\n\nTwo.\n:::", "> **Note**\n>\n> One.\n>\n> Two."),
    "admonition that is folded": (
        ":::{admonition} Title\n:class: dropdown\nText.\n:::",
        "<details>\n<summary>Title</summary>\n\nText.\n\n</details>",
    ),
    "quote in a quote": ("> One.\n>\n> > $$ x $$", "> One.\n>\n> > $$x$$"),
    "citation in words": (
        "By {cite:t}`two`.",
        "By Two and Three ([2002](https://doi.org/10.1000/%28x%292)).",
    ),
    "citations in brackets": (
        "Known {cite}`two,one`.",
        "Known ([Two and Three, 2002](https://doi.org/10.1000/%28x%292);"
        " [One, 2001](https://arxiv.org/abs/2001.00001)).",
    ),
    "citation of a place": (
        "Known {cite:p}`{see}one{chapter 2}`.",
        "Known (see [One, 2001](https://arxiv.org/abs/2001.00001), chapter 2).",
    ),
    "citation of what has no address": (
        "By {cite:t}`many`.",
        "By Four *et al.* (2003).",
    ),
    "reference to a statement": (
        "By {prf:ref}`thm-b`, {prf:ref}`that <thm-b>` and {prf:ref}`thm-far`.\n\n"
        "```{prf:theorem}\n:label: thm-b\n\nYes.\n```",
        "By [Theorem 3](#thm-b), [that](#thm-b) and Theorem 1.\n\n"
        '> <a id="thm-b"></a>**Theorem 3.** Yes.',
    ),
    "reference to a page": (
        "See {doc}`other`, [it](other.md) and {ref}`far`.",
        "See *Another page*, it and *Another page*.",
    ),
    "link": (
        "[A *b*](https://a.org/x_(y)) and <https://b.org>.",
        "[A *b*](https://a.org/x_%28y%29) and <https://b.org>.",
    ),
    "footnote": (
        "Said[^a], and again[^a].\n\n[^a]: A *note*.",
        "Said<sup>[1](#a)</sup>, and again<sup>[1](#a)</sup>.\n\n"
        '<a id="a"></a><sup>1</sup> A *note*.',
    ),
    "definitions": (
        "Term $x$\n: Meaning.\n\n  $$ x $$\n\nOther\n: One.",
        "- **Term $x$**\n\n  Meaning.\n\n  $$\n  x\n  $$\n\n- **Other**\n\n  One.",
    ),
    "lists": (
        "- a\n  1. b\n  2. c\n\n* d\n\n3. e\n4. f",
        "- a\n  1. b\n  2. c\n\n<!-- -->\n\n- d\n\n<!-- -->\n\n3. e\n4. f",
    ),
    "attributes": ("[Words]{.small} stay.", "Words stay."),
    "equation without dollars": (
        "\\begin{align}\na &= b \\\\\n&<c\n\\end{align}",
        "$$\n\\begin{align}\na &= b \\\\\n&< c\n\\end{align}\n$$",
    ),
    "two equations in one": (
        "```{math}\na = b\n\nc = d\n```",
        "$$\n\\begin{aligned}a = b \\\\ c = d\\end{aligned}\n$$",
    ),
    "formula between words": ("An $n$th, a $x$-y.", "An $n$<!-- -->th, a $x$-y."),
    "marks that are none": (
        r"1\. a\*b\* \_c\_ d_e \$5 \<b> \`x\` \~\~y\~\~ [a]\(b) &amp;amp; a\\b",
        r"1\. a\*b\* \_c\_ d_e <span>&#36;</span>5 &lt;b> \`x\` \~\~y\~\~ [a\](b)"
        r" &amp;amp; a\\b",
    ),
    "code": (
        "`` `x` ``\n\n```python\nx = 1\n```\n\n~~~\n```\n~~~",
        "`` `x` ``\n\n```python\nx = 1\n```\n\n````\n```\n````",
    ),
    "line break": ("a\\\nb", "a<br>b"),
    "rule": ("a\n\n---\n\nb", "a\n\n---\n\nb"),
    "picture": (
        "```{figure} dot.png\n:alt: A dot\n\nCaption.\n```\n\n![A line.](line.svg)",
        "![A dot](data:image/png;base64,bm90IGEgcmVhbCBvbmU=)\n\n*Caption.*\n\n"
        "*Picture: A line.*",
    ),
    "drawing": (
        '```{raw} html\n<svg aria-label="A * map"><a href="#">x</a></svg>\n```',
        r"*Picture: A \* map.*",
    ),
    "cards": (
        "::::{grid} 2\n:::{grid-item-card} Read\n:link: other\n:link-type: doc\nOn.\n"
        ":::\n:::{grid-item-card} Run\n:link: https://a.org\nOff.\n:::\n::::",
        "- **Read.** On.\n- **[Run](https://a.org).** Off.",
    ),
    "comment": ("% not seen\n\nSeen.", "Seen."),
}


@pytest.fixture(scope="module")
def examples(make):
    """Each example in a cell of its own, some with code behind it."""
    cells = [new_markdown_cell("# Examples")]
    for number, (source, _) in enumerate(EXAMPLES.values()):
        cells.append(new_markdown_cell(source))
        if number % 2:
            cells.append(new_code_cell("1 + 1", execution_count=number))
    book = make(examples=cells)
    return cells, book.notebook("examples")


@pytest.mark.parametrize("name", EXAMPLES)
def test_construct(name, examples):
    cells, given = examples
    source, wanted = EXAMPLES[name]
    (place,) = [n for n, cell in enumerate(cells) if cell.source == source]
    assert given.cells[place].source == wanted


def test_code_outputs_and_ids_stay_and_metadata_is_clean(make):
    data = {"text/html": '<p id="verdict-1">HOLDS</p>', "image/png": "AAAA"}
    cells = [
        new_markdown_cell("# Title"),
        new_code_cell("1", metadata={"tags": ["remove-cell"]}, id="first-cell"),
        new_code_cell("2", outputs=[new_output("display_data", data)]),
        new_markdown_cell("One."),
        new_markdown_cell("Two:\n\n- {prf:ref}`thm-far`"),
    ]
    given = make(page=cells).notebook("page")
    assert [cell.id for cell in given.cells] == [cell.id for cell in cells]
    assert given.cells[1:3] == cells[1:3]
    assert given.cells[4].source == "Two:\n\n- Theorem 1"
    assert given.metadata == METADATA
    nbformat.validate(given)


def test_links_lead_to_the_site_where_its_address_is_known(make):
    text = (
        "See {doc}`other`, {prf:ref}`thm-far`, [it](other.md), {cite:t}`many` and"
        " {cite:t}`one`.\n\n::::{grid} 1\n:::{grid-item-card} Read\n:link: other\n"
        ":link-type: doc\nOn.\n:::\n::::"
    )
    page = [new_markdown_cell(f"# Title\n\n{text}")]
    given = make(ADDRESS, page=page).notebook("page").cells[0].source
    assert f"[Another page]({ADDRESS}other.html)" in given
    assert f"[Theorem 1]({ADDRESS}other.html#thm-far)" in given
    assert f"[it]({ADDRESS}other.html)" in given
    assert re.search(rf"\(\[2003\]\({ADDRESS}other.html#id\d+\)\)", given)
    assert "([2001](https://arxiv.org/abs/2001.00001))" in given
    assert f"- **[Read]({ADDRESS}other.html).** On." in given


def test_numbers_are_those_of_the_site_where_chapters_have_their_own(make):
    """The second page of a numbered table of contents: Theorem 2.1."""
    theorem = (
        "# Title\n\n```{prf:theorem}\n:label: thm-x\n\nYes.\n```\n\n$$ x $$ (eq-x)"
    )
    book = make(
        page=[new_markdown_cell(f"{theorem}\n\n{{prf:ref}}`thm-x`, {{eq}}`eq-x`")]
    )
    numbers = book.app.env.toc_fignumbers["page"]
    numbers["theorem"]["thm-x"], numbers["displaymath"]["equation-eq-x"] = (
        (2, 1),
        (2, 7),
    )
    given = book.notebook("page").cells[0].source
    assert "**Theorem 2.1.** Yes." in given and "[Theorem 2.1](#thm-x)" in given
    assert r"\tag{2.7}" in given and "[(2.7)](#equation-eq-x)" in given


# What a notebook cannot carry.

REFUSED = {
    "abbreviation": ("An {abbr}`SDE (equation)`.", "the construct 'abbreviation'"),
    "unknown citation": ("By {cite}`one,nobody`.", "the unknown citation 'nobody'"),
    "HTML": ("<div>Text.</div>", "raw HTML"),
    "HTML in a line": ("A <b>word</b>.", "raw HTML"),
    "dollar in a formula": (r"$$ x \text{if \$5} $$", "a dollar within a formula"),
    "backtick in a formula": ("$x ` y$", "a backtick within a formula"),
    "comment in a formula": ("$$\nx % y\n$$", "a comment in TeX"),
    "formula in a summary": (":::{dropdown} Is $x$?\nYes.\n:::", "a formula in the"),
    "array in a table": (
        "| a |\n|---|\n| $\\begin{array}{c\\|c}x\\end{array}$ |",
        "a bar in an array within a table",
    ),
    "list in a table": (
        "```{list-table}\n:header-rows: 1\n\n* - a\n* - - b\n    - c\n```",
        "a cell with more than one paragraph",
    ),
    "table without heads": ("```{list-table}\n\n* - a\n```", "one line of heads"),
    "picture without words": ("![](dot.png)", "a picture without words"),
    "drawing without words": ("```{raw} html\n<svg></svg>\n```", "a drawing without"),
    "tabs": ("::::{tab-set}\n:::{tab-item} A\nB\n:::\n::::", "the construct"),
}  # fmt: skip


@pytest.fixture(scope="module")
def refused(make):
    """A page for each, where the construct stands in the third line of a cell."""
    pages = {
        f"page{number}": [
            new_markdown_cell("# Title"),
            new_code_cell("1"),
            new_markdown_cell(f"Good.\n\n{source}"),
        ]
        for number, (source, _) in enumerate(REFUSED.values())
    }
    return make(**pages)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_notebook_cannot_carry_is_refused_with_its_place(name, refused):
    page = f"page{list(REFUSED).index(name)}"
    with pytest.raises(ExtensionError) as caught:
        refused.notebook(page)
    said = str(caught.value.orig_exc)
    assert isinstance(caught.value.orig_exc, PipelineError)
    # Front matter and the title take six lines of the text.
    start = 7
    place = re.match(rf"{page}\.md, line (\d+): the plain notebook cannot carry ", said)
    assert place and start <= int(place[1]) <= start + 6, said
    assert REFUSED[name][1] in said


UNKNOWN = {
    "```{mystery}\nText.\n```": "Unknown directive type: 'mystery'",
    "A {mystery}`word`.": 'Unknown interpreted text role "mystery"',
    "By {prf:ref}`thm-no`.": "label 'thm-no' not found",
}


@pytest.mark.parametrize("source", UNKNOWN)
def test_what_nobody_knows_is_a_warning_of_the_build(source, make):
    """Of which Sphinx leaves nothing on the page; the site takes a warning as error."""
    book = make(page=[new_markdown_cell(f"# Title\n\n{source}")])
    book.notebook("page")
    assert UNKNOWN[source] in book.warnings.getvalue()


def test_text_of_no_certain_cell_is_refused(make):
    book = make(page=[new_markdown_cell("# Title"), new_markdown_cell("One.")])

    def add(app, doctree, here):
        (section,) = doctree.findall(docutils.nodes.section)
        section.insert(1, docutils.nodes.paragraph(text="Whose?"))

    book.app.connect("doctree-resolved", add, priority=1)
    with pytest.raises(ExtensionError, match=r"to which cell .*'Whose\?'"):
        book.notebook("page")


def test_text_that_is_not_on_the_page_is_missed(make):
    tags = {"tags": ["remove-cell"]}
    cells = [new_markdown_cell("# Title"), new_markdown_cell("Gone.", metadata=tags)]
    with pytest.raises(ExtensionError, match="page.md: a cell of text .* 'Gone.'"):
        make(page=cells).notebook("page")


def test_link_to_no_place_of_the_notebook_is_refused(make):
    cells = [new_markdown_cell("# Title\n\nText."), new_code_cell("1")]
    book = make(page=cells)

    def mislead(app, doctree, here):
        paragraph = next(doctree.findall(docutils.nodes.paragraph))
        paragraph += docutils.nodes.reference("", "there", refid="nowhere")

    book.app.connect("doctree-resolved", mislead, priority=1)
    with pytest.raises(ExtensionError, match="a link leads to 'nowhere'"):
        book.notebook("page")


def test_macros_of_the_site_are_refused(make):
    book = make(page=[new_markdown_cell("# Title")])
    book.app.config.mathjax3_config = {"tex": {"macros": {"R": r"\mathbb R"}}}
    with pytest.raises(ExtensionError, match="MathJax macros"):
        book.notebook("page")


# Words that look like marks.

COMMON = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LIKE_MARKS = st.text(st.sampled_from("ab 1.)-+>#=*_~`[](): !|<&;\\$e"), max_size=24)


def words_of(markdown):
    """The words of rendered Markdown, and the names of its elements."""
    root = ET.fromstring(f"<x>{COMMON.render(markdown)}</x>".replace("<br>", "<br/>"))
    return "".join(root.itertext()).strip(), {element.tag for element in root.iter()}


@given(LIKE_MARKS.map(lambda text: " ".join(text.split())))
def test_words_stay_words(text):
    shown, elements = words_of(at_start(escaped(text)))
    assert shown == text
    assert elements <= {"x", "p", "span"}


MARKED = st.tuples(st.sampled_from(["", "*", "**"]), LIKE_MARKS)


@example([("*", "\\"), ("", "1")])
@given(st.lists(MARKED, max_size=5))
def test_neighbors_do_not_change_each_other(parts):
    parts = [(mark, " ".join(text.split())) for mark, text in parts]
    parts = [(mark, text) for mark, text in parts if text]
    line = joined(f"{mark}{escaped(text)}{mark}" for mark, text in parts)
    wanted = "".join(text for _, text in parts)
    assert words_of(f"a {line}")[0] == f"a {wanted}".strip()


# Texts that are given away without a build.


@pytest.mark.parametrize(
    "source",
    [
        "By {prf:ref}`x`.", "(x)=\n# Head", "$$\nx\n$$ (eq)", ":::{note}\nText.\n:::",
        "1. a\n\n   ```{note}\n   Text.\n   ```", "Said[^a].\n\n[^a]: Note.", "a\n: b",
        "\\begin{align}\nx\n\\end{align}", "% no", "[a]{.b}", "{{ x }}",
    ],
)  # fmt: skip
def test_text_that_is_more_than_markdown_is_named(source):
    notebook = new_notebook(cells=[new_markdown_cell(f"Text.\n\n{source}")])
    with pytest.raises(PipelineError, match="^set 1: .* of MyST, .* as source: '"):
        require_plain(notebook, "set 1")


@pytest.mark.parametrize("path", texts(ROOT, SETS), ids=lambda path: path.stem)
def test_problem_sets_are_plain(path):
    require_plain(read_text(path), path.stem)
