from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.ui.markdown import ATTRIBUTES, TAGS, render_markdown


def test_it_renders_headings_lists_code_and_tables() -> None:
    html = render_markdown("# Rules\n\n- one\n\n`code`\n\n| a | b |\n| - | -: |\n| 1 | 2 |\n")
    for piece in ("<h1>Rules</h1>", "<li>one</li>", "<code>code</code>", "<td>2</td>"):
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


def test_aligned_table_columns_carry_no_inline_style() -> None:
    assert "style" not in render_markdown("| a |\n| -: |\n| 1 |\n")


def test_links_do_not_vouch_for_their_targets() -> None:
    assert 'rel="nofollow noopener noreferrer"' in render_markdown("[a](https://elsewhere.example)")


@given(st.text(alphabet="<>\"'&/=[]()!#`*-\n ascriptonerimghf:javx0", max_size=200))
def test_whatever_is_written_only_allowed_tags_and_attributes_come_out(text: str) -> None:
    class Collector(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag in TAGS
            assert {name for name, _ in attributes} <= ATTRIBUTES.get(tag, set()) | {"rel"}

    Collector().feed(render_markdown(text))
