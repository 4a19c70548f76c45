"""What a page shows of a verdict: few words, digits that mean something, no box."""

import pytest

from tools.command import PipelineError
from tools.site.checks import (
    chip,
    few_words,
    item,
    mathematics,
    numbers_of,
    pretty,
    statement_line,
)
from tools.verdicts import Row, collect


def row(numbers="measured 1; at most 2", claim="c", word="HOLDS", chip="", id="v-1"):
    return Row("page", "Section", id, word, claim, "thm", numbers, "<p></p>", chip)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        # With a standard error, its first digit decides.
        (
            "measured −1.979 ± 0.0069 (s.e.); expected −2, tolerance 0.05",
            ("−2", "−1.979 ± 0.007", "0.021", "0.05"),
        ),
        (
            "measured 6.07 at [1] ± 0.061 (s.e.); expected 6.19409, tolerance 0.35"
            " (worst of 2 entries)",
            ("6.19", "6.07 ± 0.06", "0.12", "0.35"),
        ),
        # An error below the printed digits says nothing.
        (
            "measured −0.50 ± 0.00075 (s.e.); expected −0.5, tolerance 0.1",
            ("−0.5", "−0.5", "under 0.01", "0.1"),
        ),
        # What was rounded before it was printed is not subtracted.
        (
            "measured 0.07399 at [0]; expected 0.0739898, tolerance 1e-12"
            " (worst of 2 entries)",
            ("0.07399", "0.07399", "under 10⁻¹²", "10⁻¹²"),
        ),
        (
            "measured 0 (to 1e-10); expected 0, tolerance 1e-09",
            ("0", "under 10⁻¹⁰", "under 10⁻⁹", "10⁻⁹"),
        ),
        # Bounds: three digits, more where they decide.
        ("measured 20799286; at least 1000", ("at least 1000", "2.08·10⁷", None, None)),
        ("measured 0.98996; at least 0.99", ("at least 0.99", "0.98996", None, None)),
        (
            "measured 0.00855 ± 0.0025 (s.e.); at most 0.025",
            ("at most 0.025", "0.009 ± 0.003", None, None),
        ),
        (
            "measured 2.423e-05; at least −1e-13",
            ("at least −10⁻¹³", "2.42·10⁻⁵", None, None),
        ),
    ],
)
def test_numbers_have_the_digits_that_mean_something(printed, shown):
    numbers = numbers_of(row(printed))
    assert (numbers.predicted, numbers.measured, numbers.off, numbers.allowed) == shown


def test_another_form_of_numbers_stops_the_build():
    with pytest.raises(PipelineError, match="page: the numbers of the verdict 'c'"):
        numbers_of(row("about 3"))


def test_numbers_of_every_verdict_of_the_book_are_read():
    for each in collect():
        numbers = numbers_of(each)
        assert numbers.measured and numbers.predicted
        for text in (numbers.measured, numbers.predicted, numbers.off or ""):
            assert "e-" not in text and "-" not in text and len(text) <= 24, each


def test_powers_of_ten():
    assert [pretty(x) for x in (1e-9, -2e-9, 123456.0, 0.5, 0, float("inf"))] == [
        *("10⁻⁹", "−2·10⁻⁹", "1.23·10⁵", "0.5", "0", "∞")
    ]


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("the energy only rises", "the energy only rises"),
        (
            "at width 16, n times the covariance of a linear layer is q Σlin",
            "n times the covariance of a linear layer …",
        ),
        ("corrected: its derivative is −s_1 s_2", "its derivative is −s_1 s_2"),
        (
            "the remainder of the first order falls as τ to the power −2",
            "the remainder of the first order …",
        ),
    ],
)
def test_a_claim_in_few_words(claim, words):
    assert few_words(claim) == words


def test_chips_are_short():
    for each in collect():
        assert 1 <= len(few_words(each.claim)) <= 45, each.claim


def test_mathematics_of_a_claim():
    assert mathematics("n^−½ and s_i < e^(−2t)") == (
        "n<sup>−½</sup> and s<sub>i</sub> &lt; e<sup>−2t</sup>"
    )


def test_a_false_variant_is_a_tempting_mistake_and_nothing_is_refuted():
    good, bad = row(claim="x"), row(claim="y & z", word="REFUTED", id="v-2")
    html = item(bad, "#thm") + statement_line([good, bad], ["#v-1", "#v-2"])
    assert "A tempting mistake" in html and "y &amp; z" in html
    assert "1 check holds" in html and "1 false variant is rejected" in html
    numbers = numbers_of(good)
    assert f"{numbers.measured}, predicted {numbers.predicted}</span>" in html
    assert f"{numbers.measured}, it would be {numbers.predicted}</span>" in html
    assert "refuted" not in html.lower()
    assert 'href="#thm"' in html and 'id="v-2"' in html and 'href="#v-1"' in html


def test_a_group_shares_one_chip():
    true, false = ("holds", "it rises", "1.2"), ("rejected", "it falls", "3")
    assert "it rises: <b>1.2</b>" in chip([true])
    # Its mark is heard, for no word says the same; the other one has its word.
    assert 'role="img" aria-label="holds:">✓<' in chip([true])
    assert "aria-label" not in chip([false])
    assert chip([true, false]).endswith("it rises: <b>1.2</b> · 1 more")
    assert chip([false, true]).endswith("it rises: <b>1.2</b> · 1 more")
    assert chip([true] * 3).endswith("it rises: <b>1.2</b> · 2 more")
    assert chip([false] * 2).endswith("rejected: it falls (<b>3</b>) · 1 more")
    assert chip([false]).endswith("rejected: it falls (<b>3</b>)")


def test_words_given_by_a_cell_stand_on_its_chip():
    assert 'data-claim="it falls"' in item(row(chip="it falls"), None)
