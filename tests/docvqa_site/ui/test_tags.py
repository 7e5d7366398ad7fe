from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from docvqa_site.ui.templatetags.ui import readable_bytes


def render(template: str, **context: object) -> str:
    return Template("{% load ui %}" + template).render(Context(context))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1_234_567, "1.23 MB"),
        (9_994_999, "9.99 MB"),
        (9_995_001, "10.0 MB"),
        (999_499_000, "999 MB"),
        (999_500_000, "1.00 GB"),
        (2 * 1024**3, "2.15 GB"),
        (10**19, "10000 PB"),
    ],
)
def test_bytes_are_shown_to_three_digits(size: int, text: str) -> None:
    assert readable_bytes(size) == text


@given(st.integers(min_value=0, max_value=10**18 - 10**16))
def test_what_is_shown_is_within_half_a_percent(size: int) -> None:
    number, unit = readable_bytes(size).split()
    shown = float(number) * 1000 ** ["B", "kB", "MB", "GB", "TB", "PB"].index(unit)
    assert shown == pytest.approx(size, rel=0.0051)
    assert float(number) < 1000


def test_the_exact_number_of_bytes_is_in_the_title() -> None:
    html = '<data value="1234567" title="1,234,567 bytes">1.23 MB</data>'
    assert render("{{ size|bytes }}", size=1_234_567) == html


@pytest.mark.parametrize(
    ("anls", "text"),
    [(0.8242, "0.8242"), (0.82421, "0.8242"), (0.82419999, "0.8241"), (1.0, "1.0000"), (0, "0.0000")],
)
def test_a_score_has_four_decimals_and_never_seems_better_than_it_is(anls: float, text: str) -> None:
    assert render("{{ anls|score }}", anls=anls) == text


@pytest.mark.parametrize("name", ["bytes", "score", "ago", "at", "on"])
def test_a_missing_value_is_a_dash(name: str) -> None:
    assert render("{{ nothing|" + name + " }}", nothing=None) == "–"


def test_a_relative_time_carries_the_exact_one() -> None:
    moment = timezone.now() - timedelta(hours=3)
    html = render("{{ moment|ago }}", moment=moment)
    assert f'datetime="{moment.isoformat()}"' in html
    assert f">{moment:%b} {moment.day}, {moment:%Y} (3\xa0h ago)<" in html


def test_a_time_in_full_names_its_zone() -> None:
    moment = datetime(2030, 1, 5, 9, 7, tzinfo=UTC)
    assert ">Jan 5, 2030, 09:07 UTC (" in render("{{ moment|at }}", moment=moment)
    assert ">Jan 5, 2030, 09:07 UTC<" in render("{{ moment|on }}", moment=moment)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "just now"),
        (-90, "1\xa0min ago"),
        (-7_300, "2\xa0h ago"),
        (-3 * 86_400 - 60, "3\xa0days ago"),
        (30, "in less than a minute"),
        (26 * 3_600, "in 1\xa0day"),
        (800 * 86_400, "in 2\xa0years"),
    ],
)
def test_a_time_says_how_far_it_is_from_now(seconds: int, text: str) -> None:
    assert f"({text})<" in render("{{ moment|at }}", moment=timezone.now() + timedelta(seconds=seconds))


def test_addresses_of_this_site_are_links_in_a_problems_next_step(settings: Settings) -> None:
    address = f"{settings.SITE_URL}/submissions/1/"
    html = render(
        "{{ text|inline_code }}", text=f"See {address}, `pfl check` or https://elsewhere.example/<b>."
    )
    assert (
        f'<a href="{address}">{address}</a>, <code>pfl check</code> or https://elsewhere.example/&lt;b'
        in html
    )


def test_names_of_documents_are_links_in_a_problems_next_step() -> None:
    html = render("{{ text|inline_code }}", text="See docs/formats.md, `docs/bytes.md` or mydocs/x.md.")
    assert '<a href="/docs/formats/">docs/formats.md</a>, <code>docs/bytes.md</code> or mydocs/x.md.' in html
    html = render("{% include 'ui/problem.html' %}", problem={"code": "E_LOG_ROW", "message": "Wrong."})
    assert 'Wrong. <a class="small" href="/docs/errors/#row-e_log_row"><code>E_LOG_ROW</code></a>' in html


def test_a_coded_problem_says_where_expected_found_and_next() -> None:
    problem = {
        "code": "E_LOG_ROW",
        "message": "A line is wrong.",
        "where": "line <7>",
        "expected": "four numbers",
        "found": "three",
        "next_step": "Mend it.",
    }
    html = render('{% include "ui/problem.html" with problem=problem %}', problem=problem)
    for text in ("E_LOG_ROW", "A line is wrong.", "line &lt;7&gt;", "four numbers", "three", "Mend it."):
        assert text in html
