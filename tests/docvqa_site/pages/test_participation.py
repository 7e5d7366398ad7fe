"""What the page about participation counts."""

import re
from datetime import UTC, datetime

import pytest
from django.core.cache import caches
from django.test import Client

from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.audit.versions import boards_changed
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.teams.models import Team
from tests.docvqa_site.factories import make_submission, make_team, make_track, make_user

pytestmark = pytest.mark.django_db

MARCH, APRIL = datetime(2026, 3, 15, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC)


def cells(client: Client) -> list[list[str]]:
    """The cells of each row of the page's tables, without the heads of their columns."""
    caches["pages"].clear()
    page = client.get("/participation/").text
    rows = re.findall(r"<tr>(.*?)</tr>", page.replace("\n", ""))
    found = [re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", row) for row in rows if "<td" in row]
    return found


def test_it_counts_people_teams_countries_and_submissions_by_track_and_month(client: Client) -> None:
    ada, ben = make_user(date_joined=MARCH), make_user(date_joined=APRIL)
    make_user(date_joined=APRIL, is_active=False)
    for user in (ada, ben, make_user(date_joined=MARCH, is_staff=True)):
        vouch_for_address(user)
    # Nobody has confirmed this address.
    unconfirmed = make_user(date_joined=MARCH)
    teams = [
        make_team(owner, created_at=APRIL, country=country)
        for owner, country in ((ada, "FI"), (ben, "ES"), (unconfirmed, "FI"))
    ]
    first, second = make_track(slug="track-1", name="Bytes"), make_track(slug="track-2", name="Privacy")
    make_submission(teams[0], first, state=SubmissionState.SUBMITTED, submitted_at=MARCH)
    make_submission(teams[0], first, state=SubmissionState.WITHDRAWN, submitted_at=APRIL)
    make_submission(teams[1], second, state=SubmissionState.SUBMITTED, submitted_at=APRIL)
    make_submission(teams[1], second)
    make_submission(
        teams[1],
        second,
        state=SubmissionState.SUBMITTED,
        submitted_at=APRIL,
        practice=True,
        published_at=None,
    )
    assert cells(client) == [
        ["Registrations", "2"],
        ["Teams", "3"],
        ["Submissions, Bytes", "1"],
        ["Submissions, Privacy", "1"],
        ["Downloads", "0"],
        ["Countries", "2"],
        ["April 2026", "1", "3", "0", "1"],
        ["March 2026", "1", "0", "1", "0"],
    ]
    page = " ".join(re.sub("<[^>]+>", " ", client.get("/participation/").text).split())
    assert "Finland 2 teams Spain 1 team" in page
    assert "Practice, withdrawn submissions and the organizers' baselines don't count" in page


def test_home_and_the_page_that_it_links_to_agree_at_any_time(client: Client) -> None:
    caches["pages"].clear()
    track = make_track(slug="bytes", name="Bytes")
    make_submission(make_team(), track, state=SubmissionState.SUBMITTED, submitted_at=MARCH)

    def numbers() -> list[tuple[str, ...]]:
        home = re.findall(r"(\d+) participating teams?, (\d+) submissions? so far", client.get("/").text)
        page = client.get("/participation/").text
        found = re.findall(r'<th scope="row">(?:Teams|Submissions, Bytes)</th><td class="num">(\d+)', page)
        return [*home, tuple(found)]

    assert numbers() == [("1", "1")] * 2
    make_submission(make_team(), track, state=SubmissionState.SUBMITTED, submitted_at=APRIL)
    # Neither is counted again until an hour has passed, or a result has changed.
    assert numbers() == [("1", "1")] * 2
    boards_changed(track.pk)
    assert numbers() == [("2", "2")] * 2


def test_the_organizers_baselines_and_the_team_that_made_nothing_else_are_not_counted(client: Client) -> None:
    track = make_track(slug="bytes", name="Bytes")
    organizers, both, _ = make_team(country="FI"), make_team(), make_team()
    for team in (organizers, both):
        make_submission(team, track, state=SubmissionState.SUBMITTED, submitted_at=MARCH, is_baseline=True)
    make_submission(both, track, state=SubmissionState.SUBMITTED, submitted_at=MARCH)
    found = cells(client)
    assert ["Teams", "2"] in found
    assert ["Submissions, Bytes", "1"] in found
    assert ["Countries", "0"] in found


def test_requests_for_files_are_counted_as_downloads(client: Client) -> None:
    file = Download.objects.create(
        slug="data",
        kind=DownloadKind.DATA,
        title="Data",
        license="CC-BY-4.0",
        filename="data.zip",
        size_bytes=1,
        sha256="0" * 64,
        store_key="dl/data",
    )
    for _ in range(3):
        assert client.get(file.get_absolute_url()).status_code == 302
    client.head(file.get_absolute_url())
    assert ["Downloads", "3"] in cells(client)


def test_a_team_chooses_its_country(client: Client) -> None:
    owner = make_user()
    client.force_login(owner)
    client.post("/team/create/", {"name": "Engines", "country": "FI"})
    team = Team.objects.get()
    assert "Finland" in client.get(team.get_absolute_url()).text
    client.post("/team/edit/", {"country": ""})
    assert "Finland" not in client.get(team.get_absolute_url()).text
    assert "Select a valid choice" in client.post("/team/edit/", {"country": "Atlantis"}).text


def test_an_empty_site_says_so(client: Client) -> None:
    assert "Nobody has registered yet" in client.get("/participation/").text
