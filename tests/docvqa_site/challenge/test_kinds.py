"""Every kind of track works everywhere, by its value alone."""

import csv
import io
import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import BEST_ANLS, RANKINGS, Ranking
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.services import create_submission
from evaluator.messages.api import TrackInfo
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_track, make_user

pytestmark = pytest.mark.django_db

every_kind = pytest.mark.parametrize("kind", RANKINGS.values(), ids=list(RANKINGS))


def track_with_runs(kind: Ranking) -> Track:
    """A track with two runs of equal scores, one with fewer bytes, and one that needs a low threshold."""
    track = make_track(kind, slug="track", anls_threshold=0.5, budgets=[4.0])
    runs = {"Wide": (0.9, 300), "Narrow": (0.9, 200), "Low": (0.4, 100)}
    for title, (anls, bytes_total) in runs.items():
        submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
        make_run(
            submission,
            state=RunState.SCORED,
            budget=track.run_budgets()[0],
            anls=anls,
            bytes_total=bytes_total,
            epsilon=3.0,
        )
    return track


ORDER = {"bytes": ["Narrow", "Wide"], "anls": ["Narrow", "Wide", "Low"], "score": ["Narrow", "Wide", "Low"]}


@every_kind
def test_boards_exports_and_the_api_have_the_order_of_the_kind(client: Client, kind: Ranking) -> None:
    track, expected = track_with_runs(kind), ORDER[kind.key]
    page = client.get(reverse("leaderboard:track", args=["track"]), {"epsilon": track.board_names()[0]}).text
    assert [page.index(f">{title}</a>") for title in expected] == sorted(
        page.index(f">{title}</a>") for title in expected
    )
    assert track.kind.sentence(track.limits()) in page
    assert track.kind.ties in page
    rows = csv.DictReader(io.StringIO(client.get(reverse("leaderboard:csv", args=["track"])).text))
    assert [row["method"] for row in rows if row["rank"]] == expected
    exported = client.get(reverse("leaderboard:json", args=["track"])).json()
    assert [row["method"] for row in exported["boards"][0]["rows"] if row["rank"]] == expected
    asked = client.get("/api/v1/leaderboards/track").json()
    assert [row["method"] for row in asked["boards"][0]["rows"] if row["rank"]] == expected
    printed = StringIO()
    call_command("leaderboard", "track", stdout=printed)
    assert [line.split()[1] for line in printed.getvalue().splitlines() if line[:1].isdigit()] == expected


@every_kind
def test_the_pages_of_a_track_say_how_it_ranks(client: Client, kind: Ranking) -> None:
    track = track_with_runs(kind)
    page = client.get(track.get_absolute_url()).text
    assert track.kind.ties in page
    assert f"pfl check save/{track.slug} --base base --track {track.slug}" in strip_tags(page)
    for address in ("/", reverse("leaderboard:index"), "/tracks/"):
        assert track.name in client.get(address).text
    assert "Narrow" in client.get("/").text
    progress = client.get(reverse("leaderboard:progress", args=["track"])).text
    assert f"{kind.best} so far" in progress


@every_kind
def test_a_snapshot_of_the_kind_verifies_itself(tmp_path: Path, kind: Ranking) -> None:
    track_with_runs(kind)
    folder = tmp_path / "snapshot"
    call_command("freeze", str(folder), name="one", stdout=StringIO())
    command = [sys.executable, "-I", "-S", str(folder / "verify.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout
    file = folder / "snapshot.json"
    content = json.loads(file.read_text())
    assert content["tracks"][0]["rule"]["order"] == list(kind.rule.order)


@every_kind
def test_the_api_sends_the_rule_to_programs(client: Client, kind: Ranking) -> None:
    track_with_runs(kind)
    user = make_user()
    client.force_login(user)
    (found,) = [TrackInfo.model_validate(one) for one in client.get("/api/v1/tracks").json()]
    assert (found.ranking, found.rule) == (kind.key, kind.rule)


def test_a_draft_without_a_constraint_has_one_run_with_a_checkpoint_and_a_log() -> None:
    user = make_user()
    submission = create_submission(make_team(user), user, make_track(BEST_ANLS), title="One")
    assert [run.budget for run in submission.runs.all()] == [None]
    assert submission.track.rules(None).privacy is None


def test_an_organizer_adds_a_track_without_a_constraint_by_a_file(tmp_path: Path) -> None:
    tracks = tmp_path / "tracks.json"
    entry = {
        "slug": "open",
        "name": "Open",
        "summary": "Any score.",
        "description": "Rules.",
        "ranking": "score",
        "reference": "vt5-tiny",
        "test_set": "demo",
    }
    tracks.write_text(json.dumps([entry]))
    call_command("load_tracks", "--publish", str(tracks), stdout=StringIO())
    assert Track.objects.get().kind is BEST_ANLS


def test_the_words_of_each_kind() -> None:
    limits = {"anls_threshold": 0.8242, "budget": None}
    assert {key: f"{kind.sentence(limits)} {kind.ties}" for key, kind in RANKINGS.items()} == {
        "bytes": "Runs whose ANLS is at least 0.8242 are ranked by bytes of communication, fewest first. Ties go to "
        "the run with higher ANLS, then to the earlier submission.",
        "anls": "Runs whose recomputed ε is within the budget are ranked by ANLS, highest first. Ties go to the run "
        "with fewer bytes of communication, then to the earlier submission.",
        "score": "Runs are ranked by ANLS, highest first. Ties go to the run with fewer bytes of communication, then "
        "to the earlier submission.",
    }


@pytest.mark.parametrize(
    ("key", "upload"), [("bytes", "new transcript of a large run"), ("anls", "new training record")]
)
def test_the_page_of_a_track_names_the_upload_that_uses_a_challenge(
    client: Client, key: str, upload: str
) -> None:
    page = client.get(track_with_runs(RANKINGS[key]).get_absolute_url()).text
    assert f"Each {upload} triggers one:" in page
