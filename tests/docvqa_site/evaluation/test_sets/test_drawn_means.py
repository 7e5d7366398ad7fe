"""What workers report of draws of providers: stored for the comparison of two runs, and shown to nobody."""

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic import ValidationError

from docvqa_site.boards.snapshots import Edition, snapshot_files
from docvqa_site.evaluation import models
from docvqa_site.evaluation.intake.messages import parse_report
from docvqa_site.evaluation.intake.outcomes import requeue
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.test_sets.drawn_means import shown_means
from docvqa_site.evaluation.test_sets.parts import reveal
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import DRAWS, DrawnMeans, Outcome, Step, TestSetPart
from evaluator.scoring.paired_draws import means_over_draws
from tests.docvqa_site.evaluation.messages import fresh, make_report, on_both_parts, signed
from tests.docvqa_site.factories import make_organizer, make_run, make_submission, make_track, make_user

pytestmark = pytest.mark.django_db

CLUSTERS = [("provider", str(number)) for number in range(20)]
TABLE = models.StoredMeans._meta.db_table


def means_of(seed: int, part: TestSetPart = "") -> DrawnMeans:
    clusters = [(kind, f"{part} {name}") for kind, name in CLUSTERS]
    found = means_over_draws(clusters, np.random.default_rng(seed).random(len(clusters)), part)
    assert found is not None
    return found


@pytest.fixture
def track():
    day = timedelta(days=1)
    now = timezone.now()
    return make_track(slug="bytes", test_set="secret", opens_at=now - day, closes_at=now + day)


def report_on(evaluation, **fields) -> Run:
    """Take an attempt through its steps to the report of its score, as it arrives from a worker."""
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    evaluation.refresh_from_db()
    receive_report(parse_report(signed(make_report(evaluation, Step.SCORING, **fields))))
    return fresh(evaluation.run)


def queued(track, **fields):
    run = make_run(make_submission(track=track, state="submitted", **fields), state=RunState.QUEUED)
    return dispatch.start(run)


def shown(run: Run) -> DrawnMeans | None:
    return shown_means({run.pk: run.results}).get(run.pk)


def test_what_a_worker_reports_is_stored_once_and_apart_from_what_pages_load(track) -> None:
    run = report_on(queued(track), drawn_means=[means_of(1)])
    assert shown(run) == means_of(1)
    report = models.StepReport.objects.get(step=Step.SCORING)
    assert means_of(1).draws_sha256 not in f"{report.result} {report.detail} {run.results}"
    requeue(run, actor=make_user())
    # Until it has a new score the old one counts, with its draws.
    assert shown(fresh(run)) == means_of(1)
    run = report_on(run.evaluations.get(attempt=2), drawn_means=[means_of(2)])
    assert shown(run) == means_of(2)
    requeue(run, actor=make_user())
    # A worker of an earlier version sends none, and those of other predictions are gone.
    run = report_on(run.evaluations.get(attempt=3))
    assert (run.state, shown(run)) == (RunState.SCORED, None)


def test_neither_a_fault_nor_practice_stores_any(track) -> None:
    evaluation = queued(track)
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    evaluation.refresh_from_db()
    receive_report(make_report(evaluation, Step.SCORING, Outcome.FAILED, drawn_means=[means_of(1)]))
    report_on(queued(track, practice=True, published_at=None), drawn_means=[means_of(1)])
    assert not models.StoredMeans.objects.exists()


def test_of_a_split_test_set_those_of_the_part_of_the_results_are_compared(track) -> None:
    evaluation = queued(track)
    parts = [means_of(1, "public"), means_of(2, "private")]
    run = report_on(evaluation, **on_both_parts(evaluation, 0.8, 0.6), drawn_means=parts)
    assert shown(run) == parts[0]
    track.phases.update(ends_at=timezone.now())
    assert reveal(models.TestSet.objects.get(), "The phase is over.", actor=make_user()) == ""
    assert shown(fresh(run)) == parts[1]
    few = queued(make_track(test_set="other"))
    run = report_on(few, **on_both_parts(few, 0.8, 0.6), drawn_means=[means_of(2, "private")])
    assert shown(run) is None


def test_a_report_with_other_means_than_of_all_draws_is_rejected(track) -> None:
    report = make_report(queued(track), Step.SCORING)
    for drawn in (
        [means_of(seed) for seed in range(3)],
        [means_of(1).model_copy(update={"means": bytes(2 * DRAWS + 2)})],
        [means_of(1).model_copy(update={"means": bytes(1 << 20)})],
        [means_of(1).model_copy(update={"means": b""})],
        [means_of(1).model_copy(update={"clusters": 2**40})],
    ):
        with pytest.raises(ValidationError):
            parse_report(signed(report.model_copy(update={"drawn_means": drawn})))


def test_they_are_read_by_comparisons_alone_and_shown_nowhere(track, client: Client) -> None:
    runs = [report_on(queued(track), drawn_means=[means_of(seed)]) for seed in (1, 2)]
    one = runs[0].submission
    documents = [means_of(seed).model_dump(mode="json") for seed in (1, 2)]
    secrets = [document[name] for document in documents for name in ("draws_sha256", "means")]
    compare = f"/leaderboard/bytes/compare/?method={one.pk}&method={runs[1].submission_id}"
    addresses = [
        *("/", "/leaderboard/bytes/", "/leaderboard/bytes/progress/", "/leaderboard/bytes/feed/"),
        *(f"/leaderboard/bytes.{kind}" for kind in ("csv", "json", "schema.json")),
        *("/api/v1/leaderboards", "/api/v1/leaderboards/bytes", "/leaderboard/bytes/compare/"),
        one.get_absolute_url(),
        *(f"{one.get_absolute_url()}{path}" for path in ("cite.bib", f"runs/{runs[0].pk}/")),
        f"/organize/runs/{runs[0].pk}/",
        f"/admin/evaluation/evaluation/{runs[0].evaluations.get().pk}/change/",
    ]
    client.force_login(make_organizer("organize", "view_submission", "view_evaluation"))
    for address in (*addresses, compare):
        with CaptureQueriesContext(connection) as queries:
            page = client.get(address)
        assert page.status_code == 200, address
        text = page.getvalue().decode()
        assert not any(secret in text for secret in secrets), address
        assert any(TABLE in query["sql"] for query in queries) == (address == compare), address
    assert "95%, paired" in text
    with CaptureQueriesContext(connection) as queries:
        snapshot_files([track], Edition.of("2026-11", timezone.now()))
    assert not any(TABLE in query["sql"] for query in queries)
