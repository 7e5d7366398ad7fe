"""`pfl submissions` against the real site."""

import json

import pytest
from django.utils import timezone

from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run, RunState
from docvqa_site.teams.models import Team
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import SCORES, make_run, make_submission
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import failing, passing


@pytest.fixture(autouse=True)
def access(site: LiveSite, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PFL_SITE", site.url)
    monkeypatch.setenv("PFL_TOKEN", token)


def scored(team: Team, title: str, bytes_total: int, anls: float = 0.85) -> Run:
    submission = make_submission(team, Track.objects.get(slug="track-1"), state="submitted", title=title)
    results = {**SCORES, "anls": anls, "bytes_total": bytes_total}
    return make_run(submission, state=RunState.SCORED, scored_at=timezone.now(), **results)


def test_it_lists_scores_and_ranks_of_the_own_team(team: Team) -> None:
    scored(team, "Small", 1000)
    scored(team, "Large", 2000)
    make_submission(team, Track.objects.get(slug="track-1"), title="Begun")
    printed = passing("submissions").splitlines()
    assert [line.split("  ", 1)[1] for line in printed if "track-1" in line] == [
        "track-1  Begun (draft, not submitted)",
        f"track-1  Large (submitted, {timezone.now():%Y-%m-%d})",
        f"track-1  Small (submitted, {timezone.now():%Y-%m-%d})",
    ]
    assert [line.strip() for line in printed if "ANLS" in line] == [
        "run: scored, ANLS 0.8500, 2,000 bytes, #2 of 2",
        "run: scored, ANLS 0.8500, 1,000 bytes, #1 of 2",
    ]


def test_one_is_shown_by_the_first_digits_of_its_id_with_rank_and_address(team: Team, site: LiveSite) -> None:
    run = scored(team, "Small", 1000)
    printed = passing("submissions", str(run.submission_id)[:8])
    assert printed.splitlines()[-1] == f"run: #1 of 1 · {site.url}/submissions/{run.submission_id}/"
    assert json.loads(passing("submissions", str(run.submission_id), "--json"))["runs"][0]["rank"] == 1
    assert "pfl submissions" in failing("submissions", "zzzz")


def test_a_rank_under_review_says_so(team: Team) -> None:
    submission = make_submission(team, Track.objects.get(slug="track-2"), state="submitted", title="Private")
    results = {**SCORES, "epsilon": 0.9}
    make_run(submission, budget=1.0, state=RunState.SCORED, scored_at=timezone.now(), **results)
    assert "#1 of 1, under review" in passing("submissions")
    assert "#1 of 1, under review" in passing("submissions", str(submission.pk))


def test_watching_ends_with_the_reason_why_a_run_has_no_rank(team: Team) -> None:
    scored(team, "Weak", 1000, anls=0.1)
    listed = passing("submissions")
    assert "run: scored, ANLS 0.1000, 1,000 bytes, no rank: ANLS 0.1000 is below the threshold" in listed
    printed = passing("submissions", "--watch")
    assert "run: not ranked: ANLS 0.1000 is below the threshold" in printed.splitlines()[-1]
    Run.objects.update(state=RunState.REJECTED, scored_at=None, results=RunResults())
    assert "run: rejected" in failing("submissions", "--watch", status=1)
    submission = str(Run.objects.get().submission_id)[:8]
    assert f"run: rejected; `pfl submissions {submission}` shows why" in passing("submissions")
