"""A chapter uses the letters that the notation page declares for it, and no others."""

import re

import pytest

from tools.command import ROOT

PAGE = ROOT / "chapters/reference/notation.md"
CHAPTERS = sorted(
    int(path.name.partition("-")[0]) for path in (ROOT / "chapters").glob("[0-9]*.md")
)
GREEK = re.compile(
    r"(var)?(alpha|beta|gamma|delta|epsilon|theta|phi)|zeta|eta|iota|kappa|lambda|mu|nu"
    r"|xi|pi|rho|sigma|tau|chi|psi|omega|ell"
    r"|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
FONTS = "hat|widehat|tilde|bar|dot|mathbb|mathbf|mathcal|mathrm|operatorname"
FONT = re.compile(
    rf"\\({FONTS})(?![A-Za-z])\s*(\{{[^{{}}]*\}}|\\[A-Za-z]+|[A-Za-z0-9])"
)
SILENT = re.compile(r"\\(begin|end|text|label|tag)\s*\{[^{}]*\}|\\!|\\,|\\;")


def letters(tex):
    """The letters of a formula: plain, Greek, or with their accent or alphabet."""
    tex = SILENT.sub(" ", tex)
    # The superscripts of a weight matrix name it and are no letters of their own.
    tex = re.sub(r"W\^(\{[^{}]*\}|[QKVO])", "W", tex).replace(r"\rVert_F", "")
    letters = []

    def styled(match):
        letters.append(f"{match.group(1)} {match.group(2).strip('{}')}")
        return " "

    tex = FONT.sub(styled, tex)
    for command, letter in re.findall(r"\\([A-Za-z]+)|([A-Za-z])", tex):
        if letter or GREEK.fullmatch(command):
            letters.append(letter or f"\\{command}")
    return letters


def formulas(text):
    """The formulas of a page, code left out."""
    text = re.sub(r"^```\{code-cell\}.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "", text)
    displayed = re.findall(r"\$\$(.*?)\$\$", text, flags=re.S)
    inline = re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.S))
    return displayed + inline


def declared(page=PAGE):
    """Letters declared for each chapter: ``{1: {"m", ...}, ...}``."""
    text = page.read_text("utf-8").split("## Concordance")[0]
    table = {chapter: set() for chapter in CHAPTERS}
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) < 5 or not re.fullmatch(r"all|[\d, ]+", cells[3]):
            continue
        chapters = CHAPTERS if cells[3] == "all" else map(int, cells[3].split(","))
        first = set()
        for formula in re.findall(r"\$([^$]+)\$", cells[1]):
            # A list of symbols; each one is declared by its first letter.
            for symbol in re.split(r",(?![^({]*[)}])", formula):
                own = letters(symbol)
                words = {x for x in own if x.startswith(("mathrm", "operator"))}
                first |= {*own[:1]} | words
        for chapter in chapters:
            table.setdefault(chapter, set()).update(first)
    return table


def chapter_texts():
    return sorted(
        p
        for p in (ROOT / "chapters").rglob("*.md")
        if re.match(r"\d|more-checks-\d", p.name)
    )


@pytest.mark.parametrize("path", chapter_texts(), ids=lambda path: path.stem)
def test_chapter_uses_declared_letters(path):
    chapter = int(re.search(r"\d+", path.name).group())
    used = {x for f in formulas(path.read_text("utf-8")) for x in letters(f)}
    missing = sorted(used - declared()[chapter])
    assert missing == [], f"declare for chapter {chapter} in {PAGE.name}: {missing}"


def test_letters_of_a_formula():
    assert letters(r"\hat Y = Y J") == ["hat Y", "Y", "J"]
    assert letters(r"\frac{1}{m} W^Q (W^K)^\top \in \mathbb{R}") == [
        "mathbb R",
        "m",
        "W",
        "W",
    ]
    assert letters(r"\tau_0 \sqrt{n}\, \mathrm{diag}(s)") == [
        "mathrm diag",
        "\\tau",
        "n",
        "s",
    ]


def test_undeclared_letter_is_found(tmp_path):
    page = tmp_path / "notation.md"
    page.write_text("| $m$ | tokens | 2 | | |\n| $i, j$ | index | all | — | |\n")
    table = declared(page)
    assert table[2] == {"m", "i", "j"} and table[3] == {"i", "j"}
