import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.ui import markdown
from docvqa_site.ui.markdown import ATTRIBUTES, TAGS, Allowance, render_markdown, render_within

# A row is filled up to the header's 181 columns: of the longest description, six such tables make 4 MB.
WIDE_TABLE = "a|" * 181 + "\n" + "-|" * 181 + "\n" + "x\n" * 362 + "\n"
HOSTILE = {
    "six wide tables": WIDE_TABLE * 6,
    "wide tables in a proof": (WIDE_TABLE * 69)[:100_000],
    "many small tables": ("|a|\n|-|\n\n" * 20_000)[:100_000],
    "tables without an end": ("|a|\n|-|\n" * 20_000)[:100_000],
    "a long address used often": "[a]: http://x.y/" + "z" * 50_000 + "\n\n" + "[a]" * 16_000,
    "links": ("[a](b) " * 20_000)[:100_000],
    "lists": ("- a\n  - b\n" * 20_000)[:100_000],
    "headings": ("# a\n" * 25_000)[:100_000],
    "emphasis": ("*a* " * 25_000)[:100_000],
    "formulas": ("$\\frac{a}{b}$ " * 20_000)[:100_000],
    "formulas with a long command": ("$\\newcommand{\\a}{" + "x" * 900 + "}" + "\\a" * 90 + "$\n\n") * 90,
    "a text that is too long": "words " * 100_000,
}


def test_it_renders_headings_lists_code_and_tables() -> None:
    html = render_markdown("# Rules\n\n- one\n\n`code`\n\n| a | b |\n| - | -: |\n| 1 | 2 |\n")
    for piece in ("<h3>Rules</h3>", "<li>one</li>", "<code>code</code>", "<td>2</td>"):
        assert piece in html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![tracker](https://elsewhere.example/pixel.png)",
        "[click](javascript:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        '<a href="x" style="position:fixed">x</a>',
        "<iframe src='https://elsewhere.example'></iframe>",
    ],
)
def test_it_lets_no_script_style_or_foreign_content_through(hostile: str) -> None:
    html = render_markdown(hostile)
    for forbidden in ("<script", "<img", "<iframe", "<a style", 'href="javascript', 'href="data'):
        assert forbidden not in html


def test_headings_come_below_those_of_the_page() -> None:
    html = render_markdown("# One\n\n## Two\n\n##### Far below", top_heading=2)
    assert "<h2>One</h2>" in html
    assert "<h3>Two</h3>" in html
    assert "<h6>Far below</h6>" in html


def test_formulas_are_mathml_without_style() -> None:
    html = render_markdown("Noise $\\sigma = 1.2$:\n\n$$\n\\begin{aligned}a&=b\\\\c&=d\\end{aligned}\n$$\n")
    assert "<math><mi>σ</mi><mo>=</mo><mn>1.2</mn></math>" in html
    assert (
        '<span class="formula" tabindex="0" role="group" aria-label="Formula"><math display="block">' in html
    )
    assert '<mtd class="math-right">' in html
    assert " style=" not in html


@pytest.mark.parametrize(
    "formula",
    [
        r"\text{</math><script>alert(1)</script>}",
        r"\href{javascript:alert(1)}{x}",
        r"\color{red}x",
        r"\unknown{<img src=x onerror=alert(1)>}",
        r"\frac{1}{",
        r"\newcommand{\a}{\a\a}\a",
        "x" * 5_000,
    ],
)
def test_no_formula_breaks_out_of_its_place(formula: str) -> None:
    html = render_markdown(f"a ${formula}$ b")
    assert html.startswith("<p>a ")
    assert html.endswith(" b</p>\n")
    for forbidden in ("<script", "<img", "href=", " style="):
        assert forbidden not in html


def test_a_formula_that_cannot_be_converted_is_shown_as_it_was_written() -> None:
    assert "<code>$\\unknown{a}$</code>" in render_markdown("$\\unknown{a}$")


def test_amounts_of_money_are_no_formula() -> None:
    assert "<math" not in render_markdown("It costs $5 for one and $10 for two.")


def test_an_image_is_a_link_that_nobody_loads() -> None:
    html = render_markdown("![the plot](https://elsewhere.example/plot.png)")
    assert ">Image: the plot</a>" in html
    assert "<img" not in html


def test_aligned_table_columns_carry_no_inline_style() -> None:
    assert "style" not in render_markdown("| a |\n| -: |\n| 1 |\n")


def test_the_rows_of_a_table_have_headings_if_its_corner_is_empty() -> None:
    html = render_markdown(
        "| | sees | *who* |\n| - | - | -: |\n| **server** | sums | 1 |\n| | nothing | 2 |\n"
    )
    assert "<td></td>\n<th>sees</th>" in html
    assert '<th scope="row"><strong>server</strong></th>\n<td>sums</td>' in html
    assert "<td></td>\n<td>nothing</td>" in html
    html = render_markdown("| round | sum |\n| - | - |\n| 1 | 2 |\n")
    assert "<th>round</th>" in html
    assert "<td>1</td>" in html


def test_the_number_of_a_preprint_is_a_link() -> None:
    html = render_markdown("Tobaben et al. (2024, arXiv:2411.03730), *arXiv:1602.05629v4*.")
    assert '(2024, <a href="https://arxiv.org/abs/2411.03730" rel' in html
    assert ">arXiv:1602.05629v4</a></em>." in html
    html = render_markdown(
        "[arXiv:2411.03730](https://a.example) `arXiv:2411.03730` myarXiv:2411.03730 arXiv:1.2"
    )
    assert html.count("<a ") == 1


def test_an_address_in_a_text_is_a_link() -> None:
    html = render_markdown("See (https://example.org/a_b_c?d=1&e=2), or **https://example.org**.")
    assert '(<a href="https://example.org/a_b_c?d=1&amp;e=2" rel="nofollow noopener noreferrer">' in html
    assert '">https://example.org/a_b_c?d=1&amp;e=2</a>), or <strong><a' in html
    html = render_markdown(
        "[https://a.org](https://b.org) `https://c.org` <https://d.org> javascript://e.org"
    )
    assert html.count("<a ") == 2
    assert 'a.org"' not in html
    assert "https://" in render_markdown("https:// and https://...")


def test_links_do_not_vouch_for_their_targets() -> None:
    assert 'rel="nofollow noopener noreferrer"' in render_markdown("[a](https://elsewhere.example)")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_comes_out_is_limited_and_says_so(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = []
    monkeypatch.setattr(
        markdown._parser.renderer, "render", lambda tokens, *_: rendered.append(tokens) or "<p>start of</p>"
    )
    html = render_within(text, Allowance())
    flat = [child for token in rendered[0] for child in token.children or [token]]
    assert sum(token.type in {"td_open", "th_open"} for token in flat) <= markdown.MAX_CELLS
    assert sum(map(markdown._length, flat)) <= markdown.MAX_OUTPUT_CHARACTERS + 1_000
    assert "This text is not shown in full" in html


def test_a_table_that_is_too_large_is_shown_as_it_was_written() -> None:
    html = render_markdown(WIDE_TABLE)
    assert "<table" not in html
    assert "a|a|a|" in html
    assert "This text is not shown in full" in html


def test_a_table_of_two_hundred_rows_is_a_table() -> None:
    html = render_markdown("|a|b|\n|-|-|\n" + "|1|2|\n" * 200)
    assert html.count("<tr>") == 201
    assert "not shown in full" not in html


def test_what_was_cut_has_no_tag_left_open() -> None:
    html = render_markdown("> - " + "**bold** text\n" * 20_000)
    for tag in ("blockquote", "ul", "li", "p", "strong"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>")


def test_documents_of_several_texts_share_one_allowance() -> None:
    allowance = Allowance(cells=100)
    table = "|a|b|\n|-|-|\n" + "|1|2|\n" * 10
    shown = [("<table" in render_within(table, allowance)) for _ in range(10)]
    assert shown == [True, True] + [False] * 8


def test_a_text_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A *long* description. " * 50
    first = render_markdown(text)
    monkeypatch.setattr(markdown, "render_within", None)
    assert render_markdown(text) == first


@given(st.text(alphabet="<>\"'&/=[]()!#`*-\n ascriptonerimghf:javx0", max_size=200))
def test_whatever_is_written_only_allowed_tags_and_attributes_come_out(text: str) -> None:
    class Collector(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag in TAGS
            assert {name for name, _ in attributes} <= ATTRIBUTES.get(tag, set()) | {"rel"}

    Collector().feed(render_markdown(text))


@pytest.mark.parametrize(
    "text", ["a\n> >\n" * 16_000, "a\n> - - \n" * 11_000], ids=["quotes", "lists in quotes"]
)
def test_a_text_that_takes_too_long_to_read_is_shown_as_it_was_written(text: str) -> None:
    start = time.process_time()
    html = render_markdown(text)
    # Without the limit it takes six minutes.
    assert time.process_time() - start < 20
    assert html.startswith("<pre><code>a\n&gt; ")
    assert "its markup is nested too much" in html


def test_quotes_in_quotes_with_lines_without_a_mark_are_quotes() -> None:
    html = render_markdown("> > one\nand more of it\n\n" * 500)
    assert html.count("<blockquote>") == 1_000
    assert "not shown in full" not in html
