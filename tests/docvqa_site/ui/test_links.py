"""Links that teams give, and texts that leave the site in CSV files."""

import pytest
from django.core.exceptions import ValidationError

from docvqa_site.ui.links import LinkField, safe_href
from docvqa_site.ui.spreadsheets import without_formula


@pytest.mark.parametrize(
    "link",
    [
        "https://x.example/\u202egpj",
        "https://аррӏе.example/",
        "ftp://x.example/code",
        "javascript:alert(1)",
        "https://x.example/\u200bcode",
    ],
)
def test_a_link_that_looks_like_another_is_rejected(link: str) -> None:
    with pytest.raises(ValidationError):
        LinkField().clean(link)


def test_what_is_no_link_is_rejected_with_an_example_of_one() -> None:
    with pytest.raises(ValidationError, match=r"such as https://example\.org/"):
        LinkField().clean("not a url")


@pytest.mark.parametrize(
    "link", ["https://x.example/a?b=ü#c", "http://xn--80ak6aa92e.example/", "github.com/x/y", ""]
)
def test_other_links_are_kept(link: str) -> None:
    cleaned = LinkField().clean(link)
    assert cleaned.endswith(link)
    assert safe_href(cleaned) == (cleaned or "#")


def test_a_link_that_no_form_would_take_leads_nowhere() -> None:
    assert safe_href("javascript:alert(1)") == "#"


@pytest.mark.parametrize("start", ["=", " =", "\u200b+", "\t@", "\u00a0＝", "\ufeff-"])
def test_no_cell_is_a_formula(start: str) -> None:
    assert without_formula(f"{start}1+1") == f"'{start}1+1"
    assert without_formula(f"a{start}1+1") == f"a{start}1+1"
