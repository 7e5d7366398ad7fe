"""Wherever a result is shown, a visitor finds how far to trust it; one word means one thing there."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.messages.jobs import TrustLevel
from tests.docvqa_site.factories import make_run, make_submission, make_track, make_user

pytestmark = pytest.mark.django_db
GUIDE = 'href="/docs/roles/reader/"'


@pytest.fixture
def run() -> Run:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="privacy", budgets=[1, 4], required_reviews=1)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    ProofReview.objects.create(
        submission=submission,
        reviewer=make_user(is_staff=True),
        decision=Decision.ACCEPTED,
        decided_at=timezone.now(),
    )
    return make_run(
        submission,
        state=RunState.SCORED,
        budget=4.0,
        epsilon=3.0,
        accountant="pld",
        trust_level=TrustLevel.RECOMPUTED,
        checks=[{"id": "record.rounds", "status": "passed", "found": "30 rounds recorded"}],
    )


def pages_with_results(run: Run) -> list[str]:
    board = reverse("leaderboard:track", args=["privacy"])
    return [
        "/",
        reverse("leaderboard:index"),
        board,
        f"{board}?epsilon=4",
        run.submission.get_absolute_url(),
        reverse("submissions:run", args=[run.submission_id, run.pk]),
    ]


def test_every_page_with_results_leads_to_how_to_judge_one(client: Client, run: Run) -> None:
    documents = ["/docs/faq/", "/docs/trust-levels/", "/docs/leaderboards/"]
    addresses = [*pages_with_results(run), *documents]
    assert [address for address in addresses if GUIDE not in client.get(address).text] == []


def test_an_accepted_proof_is_never_called_verified(client: Client, run: Run) -> None:
    """Verification is what examinations show of the training."""
    texts = {address: client.get(address).text for address in pages_with_results(run)}
    badges = r'<span class="badge badge-verified">(?:#\d+, )?([^<]+)<'
    shown = {address: set(re.findall(badges, text)) for address, text in texts.items()}
    assert {label for labels in shown.values() for label in labels} == {"proof accepted"}
    track_page = client.get(run.submission.track.get_absolute_url()).text
    for text in [*texts.values(), track_page]:
        assert re.findall(r"[^.>]*\b(?:is|are|best|only) verified\b[^.<]*", text, re.I) == []
