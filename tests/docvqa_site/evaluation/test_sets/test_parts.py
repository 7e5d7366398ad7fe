"""Public and private scores: what is stored before and after the private part is revealed."""

from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.audit.versions import boards_versions
from docvqa_site.challenge.models import RuleChange
from docvqa_site.evaluation import models
from docvqa_site.evaluation.intake.outcomes import requeue
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.test_sets.parts import private_scores, reveal
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.notifications.preferences import turn_off
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import Outcome, SplitIdentity, Step
from tests.docvqa_site.evaluation.messages import fresh, make_report, on_both_parts
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_track, make_user, owner_of

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture
def track():
    return make_track(test_set="secret", opens_at=timezone.now() - DAY, closes_at=timezone.now() + DAY)


def close(track):
    track.phases.update(ends_at=timezone.now())


def report_scores(evaluation, public, private, **fields):
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    evaluation.refresh_from_db()
    receive_report(
        make_report(evaluation, Step.SCORING, **on_both_parts(evaluation, public, private, **fields))
    )
    return fresh(evaluation.run)


def scored(track, public=0.8, private=0.61734, submission=None, **fields) -> Run:
    run = make_run(submission or make_submission(track=track, state="submitted"), state=RunState.QUEUED)
    return report_scores(dispatch.start(run), public, private, **fields)


def revealed(track):
    close(track)
    test_set = models.TestSet.objects.get()
    assert reveal(test_set, "The phase is over.", actor=make_user()) == ""
    return test_set


def test_results_are_those_on_the_public_part_until_the_private_one_is_revealed(track) -> None:
    run = scored(track)
    assert (run.state, run.results.anls, run.results.public_anls) == (RunState.SCORED, 0.8, None)
    assert "0.617" not in run.results.model_dump_json()
    assert private_scores([run.pk])[run.pk].anls == 0.61734
    version = boards_versions([track.pk])
    revealed(track)
    run = fresh(run)
    assert (run.results.anls, run.results.public_anls) == (0.6173, 0.8)
    assert (run.results.anls_low, run.results.anls_high) == (0.567, 0.668)
    assert (run.anls, run.results.bytes_total) == (0.6173, 6000)
    assert boards_versions([track.pk]) != version
    assert RuleChange.objects.get().reason == "The phase is over."
    assert AuditEntry.objects.get(action="test_set.revealed").details["runs"] == 1


def test_what_is_scored_after_that_has_both_at_once(track) -> None:
    scored(track)
    revealed(track)
    run = scored(track, 0.7, 0.5)
    assert (run.results.anls, run.results.public_anls) == (0.5, 0.7)


def test_a_run_that_is_evaluated_again_is_revealed_with_its_newest_scores(track) -> None:
    run = scored(track)
    requeue(run, actor=make_user())
    # While the new attempt has no score, the old one counts.
    assert private_scores([run.pk])[run.pk].anls == 0.61734
    report_scores(run.evaluations.get(attempt=2), 0.82, 0.7)
    revealed(track)
    assert (fresh(run).results.anls, fresh(run).results.public_anls) == (0.7, 0.82)


def test_a_run_that_is_evaluated_again_after_that_keeps_no_public_score_of_an_earlier_attempt(track) -> None:
    run = scored(track)
    revealed(track)
    requeue(run, actor=make_user())
    run = report_scores(run.evaluations.get(attempt=2), 0.9, 0.65)
    assert (run.results.anls, run.results.public_anls) == (0.65, 0.9)


def test_each_team_with_a_score_is_notified_once_and_by_mail_if_it_wants(track) -> None:
    other = make_track(test_set="secret", name="The other one")
    team, quiet = make_team(), make_team()
    scored(track, submission=make_submission(team, track, state="submitted"))
    scored(other, submission=make_submission(team, other, state="submitted"))
    scored(track, submission=make_submission(quiet, track, state="submitted"))
    turn_off(owner_of(quiet), Kind.RESULTS, by="page")
    make_submission(track=track, state="submitted")
    close(other)
    Notification.objects.all().delete()
    mail.outbox.clear()
    revealed(track)
    found = Notification.objects.order_by("user")
    assert [one.user for one in found] == [owner_of(team), owner_of(quiet)]
    assert found[0].subject == f"Final scores: {track} and The other one"
    assert "The phase is over." in found[0].text
    assert found[0].page == "/submissions/"
    assert [message.to for message in mail.outbox] == [[owner_of(team).email]]


def test_the_rules_say_what_will_be_revealed_when_and_that_it_was(track, client: Client) -> None:
    assert "Public and private scores" not in client.get(track.get_absolute_url()).text
    scored(track)
    page = " ".join(client.get(track.get_absolute_url()).text.split())
    assert "about 60% of the questions" in page
    assert "the ANLS, its interval and the accuracy of every scored run on the private part" in page
    assert "once, after submissions close, on <time" in page
    make_track(test_set="secret", name="The other one")
    page = " ".join(client.get(track.get_absolute_url()).text.split())
    assert "for this track and The other one together, after submissions to all of them close." in page
    models.TestSet.objects.update(revealed_at=timezone.now())
    assert "organizers revealed the private part" in client.get(track.get_absolute_url()).text


def test_nothing_is_revealed_while_a_track_on_the_test_set_takes_submissions(track) -> None:
    other = make_track(test_set="secret", name="The open one")
    run = scored(track)
    close(track)
    problem = reveal(models.TestSet.objects.get(), "", actor=make_user())
    assert problem.startswith("The open one is still open")
    assert fresh(run).results.anls == 0.8
    close(other)
    assert reveal(models.TestSet.objects.get(), "", actor=make_user()) == ""
    assert "has already been revealed" in reveal(models.TestSet.objects.get(), "", actor=make_user())
    assert fresh(run).results.public_anls == 0.8


@pytest.mark.parametrize(
    "split", [None, SplitIdentity(sha256="6" * 64, private_fraction=0.4)], ids=["none", "another"]
)
def test_scores_on_another_split_than_the_first_are_a_fault_that_says_what_to_do(track, split) -> None:
    scored(track)
    run = scored(track, split=split)
    assert run.state != RunState.SCORED
    report = models.StepReport.objects.get(evaluation__run=run, step=Step.SCORING)
    assert report.outcome == Outcome.FAILED
    assert "Give the worker the others' split.json" in report.operator_trace
    assert report.detail is None


def test_a_result_that_is_not_that_on_the_public_part_is_a_fault(track) -> None:
    run = make_run(make_submission(track=track, state="submitted"), state=RunState.QUEUED)
    evaluation = dispatch.start(run)
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    fields = on_both_parts(evaluation, 0.8, 0.6)
    whole = fields["result"].model_copy(update={"anls": 0.7})
    receive_report(make_report(evaluation, Step.SCORING, **{**fields, "result": whole}))
    assert "isn't that on the public part" in models.StepReport.objects.get(step=Step.SCORING).operator_trace


def test_the_entry_of_a_revealed_test_set_can_not_be_deleted(client: Client, track) -> None:
    scored(track)
    client.force_login(make_user(is_staff=True, is_superuser=True))
    address = reverse("admin:evaluation_testset_delete", args=[models.TestSet.objects.get().pk])
    assert client.get(address).status_code == 200
    revealed(track)
    assert client.post(address, {"post": "yes"}).status_code == 403
    assert models.TestSet.objects.exists()
