"""What a visitor finds beside the documents: what is public of tracks, methods, teams and news, as it is now."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.docs.search import MOST_RESULTS
from docvqa_site.news.models import NewsItem
from docvqa_site.pages.search import SHOWN_FIRST
from docvqa_site.submissions.models import RunState, Submission, SubmissionState
from docvqa_site.teams.models import Team
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_track

pytestmark = pytest.mark.django_db


def found(client: Client, text: str, **query: str) -> dict[str, list[str]]:
    """The headings of the results, by their kinds."""
    page = client.get("/search/", {"q": text, **query}).text
    groups = re.findall(r'<h2 id="results-(\w+)">.*?</h2>(.*?)</section>', page, re.S)
    return {
        key: [unescape(one) for one in re.findall(r"<li><a [^>]*>([^<]+?) ?</?[as]", rows)]
        for key, rows in groups
    }


def make_method(team: Team | None = None, **fields) -> Submission:
    submission = make_submission(team, state=SubmissionState.SUBMITTED, **fields)
    make_run(submission, state=RunState.SCORED)
    return submission


def test_each_kind_is_found_by_its_words_whatever_their_endings(client: Client) -> None:
    track = make_track(name="Zebra track", summary="Few bytes.", description="The *quokkas* compete.")
    team = make_team(name="Quokka Lab", slug="quokka-lab", affiliation="University of Zagreb")
    method = make_method(team, track=track, title="Sparse marmots", description="Marmots **quantize** sums.")
    news = NewsItem.objects.create(
        title="Pangolins win", slug="pangolins", text="See [them](https://a.example)."
    )

    assert found(client, "quokka") == {
        "tracks": ["Zebra track"],
        "methods": ["Sparse marmots"],
        "teams": ["Quokka Lab"],
    }
    assert found(client, "quantizing marmot zebra") == {"methods": ["Sparse marmots"]}
    assert found(client, "zagreb UNIV") == {"teams": ["Quokka Lab"]}
    assert found(client, "pangolin") == {"news": ["Pangolins win"]}
    page = client.get("/search/?q=pangolin").text
    assert f'href="{news.get_absolute_url()}"' in page
    assert "See them" in page
    assert "a.example" not in page
    page = client.get("/search/?q=marmots").text
    link = page.partition(f'href="{method.get_absolute_url()}"')[2].partition("</a>")[0]
    # Also in a list of the links alone.
    assert "Quokka Lab · Zebra track" in link


@pytest.mark.parametrize("text", ["epsilon 8", "ε = 8", "eps=8.0"])
def test_a_budget_leads_to_its_boards(client: Client, text: str) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, name="Private track", budgets=[1, 8])
    assert found(client, text)["pages"][0] == "Private track at ε\xa0=\xa08"
    assert f'href="/leaderboard/{track.slug}/' not in client.get("/search/", {"q": "epsilon 4"}).text


def test_the_history_of_a_track_is_found(client: Client) -> None:
    make_track(name="Zebra track", slug="zebra")
    make_track(name="Draft", is_draft=True)
    for text in ("history", "Progress over time"):
        assert found(client, text)["pages"] == ["Progress over time: Zebra track"]
    assert 'href="/leaderboard/zebra/progress/"' in client.get("/search/?q=progress").text


def test_texts_of_methods_are_compared_in_lower_case_as_they_are_stored(client: Client) -> None:
    method = make_method(description="A study of QUOKKAS.")
    Submission.objects.filter(pk=method.pk).update(description="A study of Wombats.")
    with CaptureQueriesContext(connection) as queries:
        assert found(client, "wOMBAT")["methods"] == [method.title]
    asked = [one["sql"].partition(" WHERE ")[2] for one in queries if "lower_description" in one["sql"]]
    assert len(asked) == 1
    assert '"description"' not in asked[0]
    assert "methods" not in found(client, "quokkas")


def test_only_what_is_public_is_found_and_only_as_it_is_now(client: Client) -> None:
    make_track(name="Narwhal", is_draft=True)
    NewsItem.objects.create(
        title="Narwhal", slug="n", text="", published_at=timezone.now() + timedelta(days=1)
    )
    make_submission(make_team(name="Narwhal Draft"), title="Narwhal")
    make_method(make_team(name="Narwhal Quiet"), title="Narwhal", published_at=None)
    make_submission(make_team(name="Narwhal Unscored"), title="Narwhal", state=SubmissionState.SUBMITTED)
    blind = make_method(
        make_team(name="Narwhal Blind"), title="Masked", description="By narwhals.", anonymous=True
    )
    assert found(client, "narwhal") == {}
    assert found(client, f"masked {blind.alias}") == {"methods": ["Masked"]}

    team = make_team(name="Narwhal", slug="whale")
    method = make_method(team, title="Whistle")
    assert found(client, "narwhal") == {"methods": ["Whistle"], "teams": ["Narwhal"]}
    team.name = "Beluga"
    team.save()
    assert found(client, "narwhal") == {}
    assert found(client, "beluga") == {"methods": ["Whistle"], "teams": ["Beluga"]}
    method.state = SubmissionState.WITHDRAWN
    method.save()
    assert found(client, "beluga") == {}


def test_several_kinds_show_their_best_and_lead_to_the_rest(client: Client) -> None:
    track, team = make_track(), make_team()
    for number in range(SHOWN_FIRST + 1):
        make_method(team, track=track, title=f"Epsilon {number}", description="About ε.")
    named = make_method(team, track=track, title="Epsilon")
    make_method(team, track=track, title="Other", description="Epsilon")

    all_kinds = found(client, "epsilon")
    assert all_kinds["methods"][0] == named.title
    assert {key: len(rows) for key, rows in all_kinds.items()} == {
        "pages": 1,
        "methods": SHOWN_FIRST,
        "documents": SHOWN_FIRST,
    }
    assert 'href="?q=epsilon&amp;in=methods"' in client.get("/search/?q=epsilon").text
    page = client.get("/search/?q=epsilon").text
    assert f'Methods <span class="muted small">{SHOWN_FIRST} of {SHOWN_FIRST + 3}</span>' in page
    assert f'Documentation <span class="muted small">{SHOWN_FIRST} of the {MOST_RESULTS} best</span>' in page
    only = found(client, "epsilon", **{"in": "methods"})
    assert list(only) == ["methods"]
    assert len(only["methods"]) == SHOWN_FIRST + 3
    assert found(client, "epsilon", **{"in": "nonsense"}) == all_kinds


def test_a_search_asks_the_database_once_for_each_kind(client: Client) -> None:
    team = make_team()
    for _ in range(3):
        make_method(team, title="Epsilon")
    with CaptureQueriesContext(connection) as asked:
        client.get("/search/?q=epsilon")
    assert sum("LIKE" in one["sql"] for one in asked) == 4
