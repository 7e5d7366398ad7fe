"""Runs with nearly the same weights: what is stored of them, and who sees it."""

import json

import numpy as np
import pytest
from django.test import Client

from docvqa_site.evaluation.intake.messages import parse_report
from docvqa_site.evaluation.intake.outcomes import requeue
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import NearCopy, StepReport, StoredSample
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions.models import Run, RunState
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import Outcome, Step, WeightSample
from tests.docvqa_site.evaluation.messages import make_report, signed
from tests.docvqa_site.factories import (
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    owner_of,
)

pytestmark = pytest.mark.django_db

HEADING = "Nearly identical weights"


def sample_of(seed: int, noise: float = 0.0, key_id: str = "0" * 16) -> WeightSample:
    changes = np.random.default_rng(seed).normal(size=320) + noise * np.random.default_rng(99).normal(
        size=320
    )
    return WeightSample.model_construct(key_id=key_id, per_tensor=4, changes=changes.astype("<f4").tobytes())


@pytest.fixture
def track():
    return make_track()


@pytest.fixture
def validated(track, django_capture_on_commit_callbacks):
    def validate(sample: WeightSample, team=None, run: Run | None = None, in_track=track) -> Run:
        if run is None:
            submission = make_submission(team or make_team(), in_track, state="submitted")
            evaluation = dispatch.start(make_run(submission, state=RunState.QUEUED))
        else:
            requeue(run, actor=make_user())
            evaluation = run.evaluations.get(state="queued")
        with django_capture_on_commit_callbacks(execute=True):
            receive_report(make_report(evaluation, Step.VALIDATE, sample=sample))
        return evaluation.run

    return validate


def pairs() -> set[tuple[Run, Run]]:
    return {(found.run, found.other) for found in NearCopy.objects.all()}


def test_a_near_copy_is_found_whoever_submitted_it_and_nothing_is_rejected(validated) -> None:
    first = validated(sample_of(1))
    validated(sample_of(2))
    later = validated(sample_of(1, noise=0.01))
    own = validated(sample_of(1), team=later.submission.team)
    assert pairs() == {(later, first), (own, first), (own, later)}
    exact = NearCopy.objects.get(run=own, other=first)
    assert exact.agreement == 1
    assert exact.cosine == pytest.approx(1)
    assert not StepReport.objects.exclude(outcome=Outcome.PASSED).exists()


def test_another_track_or_another_key_is_not_compared(validated) -> None:
    validated(sample_of(1))
    validated(sample_of(1), in_track=make_track())
    validated(sample_of(1, key_id="1" * 16))
    assert pairs() == set()


def test_a_run_that_is_evaluated_again_is_compared_again(validated) -> None:
    first, later = validated(sample_of(1)), validated(sample_of(1))
    Run.objects.update(state=RunState.FAILED)
    first.evaluations.update(state="failed")
    validated(sample_of(2), run=Run.objects.get(pk=first.pk))
    assert pairs() == set()
    assert StoredSample.objects.count() == 2
    assert later.near_copies.count() == 0


def test_what_arrives_from_a_worker_is_what_is_stored_and_in_no_result(validated, track) -> None:
    run = make_run(make_submission(track=track, state="submitted"), state=RunState.QUEUED)
    evaluation = dispatch.start(run)
    sample = sample_of(1)
    message = signed(make_report(evaluation, Step.VALIDATE, sample=sample))
    receive_report(parse_report(message))
    assert bytes(StoredSample.objects.get(run=run).changes) == sample.changes
    report = StepReport.objects.get(evaluation=evaluation)
    assert "changes" not in json.dumps([report.result, report.detail])


def test_the_worker_gets_the_key_for_the_validation_alone(validated, track) -> None:
    one, other = (
        dispatch.start(make_run(make_submission(track=track, state="submitted"), state=RunState.QUEUED))
        for _ in range(2)
    )
    keys = {dispatch.job(evaluation).sample_key for evaluation in (one, other)}
    assert len(keys) == 1
    assert None not in keys
    assert keys.isdisjoint({repr(dispatch.job(one))})
    receive_report(make_report(one, Step.VALIDATE))
    one.refresh_from_db()
    assert dispatch.job(one).sample_key is None


def test_organizers_see_both_runs_and_those_of_different_teams_on_their_desk(
    client: Client, validated
) -> None:
    first = validated(sample_of(1))
    own = validated(sample_of(1, noise=0.01), team=first.submission.team)
    organizer = make_organizer("organize", "view_submission")
    client.force_login(organizer)
    assert HEADING not in client.get("/organize/").text
    assert HEADING in client.get(f"/organize/runs/{own.pk}/").text
    copied = validated(sample_of(1, noise=0.01))
    desk = client.get("/organize/").text
    assert HEADING in desk
    assert "% of the sampled changes agree, cosine 0.99" in desk.replace("&nbsp;", " ")
    for run, other in ((first, copied), (copied, first)):
        page = client.get(f"/organize/runs/{run.pk}/").text
        assert f"/organize/runs/{other.pk}/" in page
    # Whoever competes decides on nothing here, and sees none of it.
    Membership.objects.create(team=first.submission.team, user=organizer)
    assert HEADING not in client.get("/organize/").text


def test_neither_team_nor_the_public_learns_of_it(client: Client, validated, mailoutbox) -> None:
    first, copied = validated(sample_of(1)), validated(sample_of(1))
    for run in (first, copied):
        for user in (owner_of(run.submission.team), make_user()):
            client.force_login(user)
            page = client.get(run.submission.get_absolute_url()).text
            assert HEADING not in page
            other = copied if run == first else first
            assert str(other.pk) not in page
    assert mailoutbox == []
