"""Where formulas are in a text: what Jupyter takes for one, and what nobody means by a dollar."""

import time

import pytest

from docvqa_site.ui.delimiters import extract
from docvqa_site.ui.markdown import Allowance, render_markdown, render_within


def found(text: str) -> list[str]:
    return [formula.source for formula in extract(text).formulas]


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("The release\n$$\na \\le b \\\\\n$$\nholds.", ["$$\na \\le b \\\\\n$$"]),
        ("Then $$a = b$$ holds.", ["$$a = b$$"]),
        ("noise $ \\sigma = 1.2 $ and $ C $", ["$ \\sigma = 1.2 $", "$ C $"]),
        ("Let \\(u_{i}\\) and\n\n\\[ a * b \\]", ["\\(u_{i}\\)", "\\[ a * b \\]"]),
        ("\\\\(x\\\\) and\n\\\\[ y \\\\]", ["\\\\(x\\\\)", "\\\\[ y \\\\]"]),
        ("$$\na\n\n+ c\n$$", ["$$\na\n\n+ c\n$$"]),
        ("$x \\text{ if $b > 0$}$", ["$x \\text{ if $b > 0$}$"]),
        ("\\begin{align} a &= b \\end{align}", ["\\begin{align} a &= b \\end{align}"]),
        ("see \\eqref{eq:a_b}", ["\\eqref{eq:a_b}"]),
        ("10$^{-5}$ and a 2$\\times$2 matrix", ["$^{-5}$", "$\\times$"]),
        ("| $|\\ell(u)|$ | $\\|u\\|$ |", ["$|\\ell(u)|$", "$\\|u\\|$"]),
    ],
)
def test_a_formula_is_found_however_people_mark_it(text: str, formulas: list[str]) -> None:
    assert found(text) == formulas
    assert render_within(text, Allowance()).count("<math") == len([f for f in formulas if "ref" not in f])


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 for one and $10 for two.",
        "from $5-$10 and US$ 5 or US$ 6",
        "$HOME and $PATH, $a, and $b",
        "a \\$5 bill and a $6 one",
        "[\\[1\\]](#a) as \\[Dwork, 2006\\] shows",
        "`$x$` and ``a ` $y$``",
        "```\n$x$\n```",
        "~~~tex\n$$x$$\n~~~",
        "- item\n\n  ```\n  \\begin{align}x\\end{align}\n  ```",
        "text\n\n    $code$",
        "$$",
        "an $ end",
        "$one\n\nother$",
    ],
)
def test_money_code_and_single_dollars_are_no_formula(text: str) -> None:
    assert found(text) == []


def test_a_formula_in_a_quote_has_no_marks_of_the_quote() -> None:
    (formula,) = extract("> $$\n> a > b\n> $$\n").formulas
    assert formula.tex == "a > b"


def test_what_is_no_text_has_formulas_as_they_were_written() -> None:
    html = render_markdown('[$x$](https://example.org/$y$ "of $z$")\n\n![a $b$](https://example.org/c)')
    assert 'href="https://example.org/$y$" title="of $z$"' in html
    assert "<math><mi>x</mi></math>" in html
    assert "Image: a $b$" in html


def test_a_text_cannot_name_a_formula_by_its_mark() -> None:
    html = render_within("$x$ \ufdd00\ufdd1 [a](%EF%B7%900%EF%B7%91) [b](%EF%B7%909%EF%B7%91)", Allowance())
    assert html.count("<math") == 1


@pytest.mark.parametrize(
    "unit", ["${", "\\begin{a}", "\\(", "\\[", "{$", "``` ` ", "$`a` ", "\\begin{a}\\end{b}"]
)
def test_delimiters_without_an_end_take_a_second_at_most(unit: str) -> None:
    start = time.process_time()
    extract((unit * 100_000)[:100_000])
    assert time.process_time() - start < 3


def test_commands_numbers_and_references_are_those_of_the_whole_text() -> None:
    html = render_within(
        "By \\eqref{eq:a_b}, $\\newcommand{\\M}{\\mathcal{A}}$ $\\M$:\n\n"
        "\\begin{equation} x \\label{eq:a_b} \\end{equation}",
        Allowance(),
    )
    assert '<a href="#eq:a-b" rel="nofollow noopener noreferrer">(1)</a>' in html
    assert 'id="eq:a-b"><mtext>(1)</mtext>' in html
    assert "<code>" not in html


@pytest.mark.parametrize(
    "formula",
    [
        "\\begin{split} a &= b \\\\ &= c \\end{split}",
        "\\begin{eqnarray} a &=& b \\\\ c &\\le& d \\end{eqnarray}",
        "\\begin{alignat}{2} a &= b \\end{alignat}",
        "$\\text{a $b$ c}$",
        "$$\\mathop{\\mathbb{E}}\\limits_{x \\sim D} f$$",
        "$$x \\label{a} \\tag{7}$$",
        "$\\DeclareMathOperator*{\\mean}{mean} \\mean_x$",
        "$\\renewcommand{\\vec}[1]{\\mathbf{#1}} \\vec{x}$",
        "$\\sum_{\\substack{a \\\\ b}} \\mbox{if } \\widetilde{O}$",
    ],
)
def test_what_mathjax_knows_is_drawn(formula: str) -> None:
    html = render_within(formula, Allowance())
    assert "<math" in html
    assert "<code>" not in html


@pytest.mark.parametrize(
    "formula", ["$\\unknown{a}*b*$", "\\begin{theorem}\n*a* \\\\\n\\end{theorem}", "$\\eqref{nowhere}$"]
)
def test_what_cannot_be_drawn_keeps_every_character(formula: str) -> None:
    assert f"<code>{formula}</code>" in render_within(formula, Allowance())


def test_a_footnote_is_listed_whether_something_refers_to_it_or_not() -> None:
    html = render_within("A claim[^1].\n\n[^1]: Dwork 2006\n[^2]: and *more*", Allowance())
    assert '<sup><a href="#fn-1-1" id="fnref-1-1"' in html
    assert '<li id="fn-1-1"><p>Dwork 2006 <a href="#fnref-1-1"' in html
    assert "<p>and <em>more</em></p>" in html
