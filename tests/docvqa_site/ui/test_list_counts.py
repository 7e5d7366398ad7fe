"""Lists that a filter or a search changes say how many they found, also to a screen reader."""

import re
from html import unescape

import pytest
from django.test import Client

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import (
    make_run,
    make_submission,
    make_track,
    owner_of,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

STATUS = re.compile(r'role="status"[^>]*>(.*?)</(?:p|span)>', re.DOTALL)


def statuses(client: Client, address: str) -> list[str]:
    found = STATUS.findall(client.get(address).text)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", text)).split()) for text in found]


@pytest.fixture
def method():
    """A public method with a ranked run in each kind of track."""
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 8])
    private = make_submission(track=track, state=SubmissionState.SUBMITTED, title="Quokka")
    make_run(private, state=RunState.SCORED, budget=8, anls=0.7, epsilon=7.5, bytes_total=100)
    short = make_submission(
        private.team, make_track(FEWEST_BYTES, slug="bytes"), state=SubmissionState.SUBMITTED, title="Quokka"
    )
    make_run(short, state=RunState.SCORED, anls=0.9, bytes_total=100)
    return short


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/leaderboard/bytes/", "1 ranked run, 0 unranked"),
        ("/leaderboard/bytes/?q=quokka", "1 ranked run, 0 unranked (filtered)"),
        ("/leaderboard/bytes/?q=wombat", "No run matches these filters."),
        ("/leaderboard/private/?epsilon=8", "1 ranked run, 0 unranked"),
        ("/leaderboard/private/?epsilon=all", "1 method"),
        ("/leaderboard/private/?epsilon=all&q=quokka", "1 method (filtered)"),
        ("/leaderboard/private/?epsilon=all&q=wombat", "No ranked run matches these filters."),
        ("/search/?q=quokka", "Methods: 2"),
    ],
)
def test_boards_and_the_search_say_how_many_they_found(
    client: Client, method, address: str, said: str
) -> None:
    assert statuses(client, address) == [said]


def test_a_teams_submissions_are_counted(client: Client, method) -> None:
    client.force_login(owner_of(method.team))
    assert statuses(client, "/submissions/") == ["2 submissions"]
    assert statuses(client, "/submissions/?state=draft") == ["No submissions in this state."]


def test_lists_of_organizers_are_counted(client: Client, method) -> None:
    sign_in_organizer(client, "organize", "view_submission", "view_team")
    assert statuses(client, "/organize/runs/") == ["2 runs"]
    assert statuses(client, "/organize/runs/?track=bytes") == ["1 run"]
    assert statuses(client, "/organize/teams/?text=wombat") == ["0 teams"]
