"""Whose record it is: the team's keys and tokens at the accounting, one run and many at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.boards import stored_boards
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.display.results import column_epsilons
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import EvaluationState, StepReport
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.services import evaluate_again
from docvqa_site.submissions.models import Run, RunState, RunToken
from docvqa_site.submissions.services import withdraw
from docvqa_site.teams.keys import revoke_key
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.events import Gaussian
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.jobs import ArtifactKind, Check, CheckStatus, Outcome, Step, TrustLevel
from tests.docvqa_site.evaluation.messages import make_accounting, make_report
from tests.docvqa_site.factories import (
    change_results,
    make_challenge,
    make_key,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
)

pytestmark = pytest.mark.django_db

RECORD = b"the record of one training"


def queued_run(team, track, **fields):
    submission = make_submission(team, track, state="submitted", **fields)
    return make_run(submission, state=RunState.QUEUED, budget=4.0)


def at_accounting(run):
    """The run's evaluation, its accounting next."""
    evaluation = dispatch.start(run)
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    return evaluation


def account(run, record=RECORD, **changes):
    """Take the accounting of a queued run; the run after it."""
    evaluation = at_accounting(run)
    receive_report(make_report(evaluation, Step.ACCOUNTING, result=make_accounting(run, record, **changes)))
    return Run.objects.get(pk=run.pk)


def problems(run):
    report = StepReport.objects.filter(evaluation__run=run, step=Step.ACCOUNTING).latest("received_at")
    return [problem["code"] for problem in report.problems]


def check(run, name):
    return next(check for check in run.results.checks if check.id == name)


class TestKey:
    def test_a_record_that_a_key_of_the_team_signed_is_accepted(self, team, track):
        run = account(queued_run(team, track))
        assert run.state == RunState.RUNNING
        assert run.results.epsilon == 3.9

    def test_no_other_key_will_do(self, team, track):
        revoked = make_key(team)
        revoke_key(revoked, by=revoked.added_by)
        for key in ("0" * 64, make_key(make_team()).public_key, revoked.public_key):
            run = account(queued_run(team, track), public_key=key)
            assert (run.state, problems(run), run.results.epsilon) == (
                RunState.REJECTED,
                ["E_RECORD_KEY"],
                None,
            )
        assert not RunToken.objects.filter(run__isnull=False).exists()

    def test_what_a_key_signed_stays_when_it_is_revoked(self, team, track):
        run = account(queued_run(team, track))
        key = team.keys.get()
        revoke_key(key, by=key.added_by)
        evaluation = run.evaluations.get()
        receive_report(make_report(evaluation, Step.SCORING))
        assert Run.objects.get(pk=run.pk).state == RunState.SCORED

    def test_problems_of_token_and_key_are_reported_at_once(self, team, track):
        run = account(queued_run(team, track), public_key="0" * 64, run_token=None)
        assert problems(run) == ["E_RECORD_KEY", "E_RECORD_TOKEN"]


class TestLinkage:
    @pytest.mark.parametrize("status", [CheckStatus.FLAGGED, CheckStatus.NO_POWER])
    def test_a_run_that_nothing_ties_to_its_sums_is_scored_without_a_rank(self, team, track, status):
        run = account(queued_run(team, track), checks=[Check(id="record.linkage", status=status)])
        receive_report(make_report(run.evaluations.get(), Step.SCORING))
        run.refresh_from_db()
        (row,) = list(stored_boards(track)[1])
        assert (run.state, row.rank) == (RunState.SCORED, None)
        assert row.short_reason == f"unbound (linkage: {status.replace('_', ' ')})"
        change_results(run, trust_level=TrustLevel.REPLAYED)
        (row,) = list(stored_boards(track)[1])
        assert row.rank == 1


class TestToken:
    def test_the_run_has_it_from_then_on(self, team, track):
        token = make_token(team, track)
        run = account(queued_run(team, track), run_token=token.token)
        assert run.token == token
        assert run.token.record_sha256 == run.artifacts.get(kind=ArtifactKind.TRAINING_RECORD).upload.sha256
        entry = AuditEntry.objects.get(action="run_token.claimed")
        assert entry.details == {"run": str(run.pk), "before": None}

    def test_no_token_of_others_will_do(self, team, track):
        foreign = make_token(make_team(), track)
        elsewhere = make_token(team, make_track(BEST_ANLS_AT_BUDGET))
        for token in (None, "", "invented-by-ourselves", foreign.token, elsewhere.token):
            run = account(queued_run(team, track), run_token=token)
            assert (run.state, problems(run)) == (RunState.REJECTED, ["E_RECORD_TOKEN"])
        assert not RunToken.objects.filter(run__isnull=False).exists()

    def test_a_run_that_is_evaluated_again_keeps_it(self, team, track):
        run = account(queued_run(team, track))
        token = run.token
        receive_report(make_report(run.evaluations.get(), Step.SCORING))
        again = evaluate_again(run, actor=run.submission.created_by)
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            receive_report(make_report(again, step))
        result = make_accounting(run, run_token=token.token)
        receive_report(make_report(again, Step.ACCOUNTING, result=result))
        assert Run.objects.get(pk=run.pk).token == token
        assert Run.objects.get(pk=run.pk).state == RunState.RUNNING

    @pytest.mark.parametrize("state", [RunState.QUEUED, RunState.RUNNING, RunState.SCORED])
    def test_no_second_run_gets_it_while_the_first_makes_use_of_it(self, team, track, state):
        first = account(queued_run(team, track))
        first.state, first.scored_at = state, timezone.now() if state == RunState.SCORED else None
        change_results(first, anls=0.5, trust_level=TrustLevel.RECOMPUTED)
        second = account(queued_run(team, track), run_token=first.token.token)
        assert (second.state, problems(second)) == (RunState.REJECTED, ["E_RECORD_TOKEN"])
        assert RunToken.objects.get(run__isnull=False).run == first

    @pytest.mark.parametrize("end", ["rejected", "failed", "withdrawn"])
    def test_the_same_training_may_come_again_when_its_run_is_over(self, team, track, end):
        first = account(queued_run(team, track))
        if end == "withdrawn":
            withdraw(first.submission, first.submission.created_by)
        else:
            Run.objects.filter(pk=first.pk).update(state=end)
        second = account(queued_run(team, track), run_token=first.token.token)
        assert second.state == RunState.RUNNING
        assert RunToken.objects.get().run == second

    def test_a_run_for_practice_never_has_it_and_leaves_its_releases(self, team, track):
        practice = {"practice": True, "published_at": None}
        account(queued_run(team, track, **practice))
        token = RunToken.objects.get()
        assert (token.run, len(token.events)) == (None, 1)
        second = account(queued_run(team, track), run_token=token.token)
        third = account(queued_run(team, track, **practice), run_token=token.token)
        assert (second.state, third.state) == (RunState.RUNNING, RunState.RUNNING)
        assert RunToken.objects.get().run == second

    def test_another_training_never_gets_it(self, team, track):
        first = account(queued_run(team, track))
        Run.objects.filter(pk=first.pk).update(state=RunState.REJECTED)
        second = account(queued_run(team, track), b"another record", run_token=first.token.token)
        assert (second.state, problems(second)) == (RunState.REJECTED, ["E_RECORD_TOKEN"])

    def test_the_challenge_that_was_answered_must_be_the_tokens(self, team, track):
        run = queued_run(team, track)
        evaluation, result = at_accounting(run), make_accounting(run)
        Run.objects.filter(pk=run.pk).update(challenge=make_challenge())
        receive_report(make_report(evaluation, Step.ACCOUNTING, result=result))
        assert (Run.objects.get(pk=run.pk).state, problems(run)) == (RunState.REJECTED, ["E_RECORD_TOKEN"])

    def test_a_run_that_lost_its_token_to_a_later_one_is_never_scored_again(self, team, track):
        first = account(queued_run(team, track))
        token = first.token.token
        receive_report(make_report(first.evaluations.get(), Step.SCORING, Outcome.REJECTED))
        second = account(queued_run(team, track), run_token=token)
        again = evaluate_again(first, actor=first.submission.created_by)
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            receive_report(make_report(again, step))
        result = make_accounting(first, run_token=token)
        receive_report(make_report(again, Step.ACCOUNTING, result=result))
        assert Run.objects.get(pk=first.pk).state == RunState.REJECTED
        assert RunToken.objects.get().run == second

    def test_a_rejection_names_what_was_expected_and_changes_nothing_else(self, team, track):
        run = account(queued_run(team, track), run_token="invented-by-ourselves")
        report = StepReport.objects.get(evaluation__run=run, step=Step.ACCOUNTING)
        (problem,) = report.problems
        assert (problem["where"], problem["found"]) == ("run_token", "invented-by-ourselves")
        assert "pfl token" in problem["next_step"]
        assert report.outcome == Outcome.REJECTED
        assert run.evaluations.get().state == EvaluationState.REJECTED
        assert (
            run.results.epsilon,
            run.results.joint_epsilon,
            [check.id for check in run.results.checks],
        ) == (
            None,
            None,
            ["log.directions", "log.message_sizes"],
        )


class TestEpsilon:
    def test_the_rules_say_which_rdp_bound_is_shown(self, team, track):
        track.sampling_rule, track.accountant = SamplingRule.PRODUCT, Accountant.RDP
        track.save()
        run = account(queued_run(team, track))
        assert [row.epsilon for row in column_epsilons(run.results)] == [3.9, 3.1, None]


class TestJointEpsilon:
    def test_one_training_costs_what_it_costs(self, team, track):
        run = account(queued_run(team, track), events=[Gaussian(effective_noise_multiplier=1)])
        assert run.results.joint_runs == 1
        assert run.results.joint_epsilon == pytest.approx(4.3772, abs=0.01)

    def test_trainings_add_up_also_when_withdrawn_or_resubmitted(self, team, track):
        half = [Gaussian(effective_noise_multiplier=2**0.5)]
        first = account(queued_run(team, track), events=half)
        withdraw(first.submission, first.submission.created_by)
        account(queued_run(make_team(), track), events=half)
        account(queued_run(team, make_track(BEST_ANLS_AT_BUDGET)), events=half)
        second = account(queued_run(team, track), b"another record", events=half)
        assert second.results.joint_runs == 2
        assert second.results.joint_epsilon == pytest.approx(4.3772, abs=0.01)
        again = account(queued_run(team, track), run_token=first.token.token, events=half)
        assert (again.results.joint_runs, again.results.joint_epsilon) == (2, second.results.joint_epsilon)
        assert "2 training runs" in check(again, "team.joint_epsilon").found

    def test_evaluating_a_run_again_takes_nothing_from_the_others(self, team, track):
        first = account(queued_run(team, track))
        receive_report(make_report(first.evaluations.get(), Step.SCORING))
        evaluate_again(first, actor=first.submission.created_by)
        assert account(queued_run(team, track), b"another record").results.joint_runs == 2

    def test_the_check_says_why_trainings_were_not_composed(self, team, track):
        account(queued_run(team, track))
        other = [Gaussian(effective_noise_multiplier=1, adjacency="replace")]
        run = account(queued_run(team, track), b"another record", events=other)
        assert (run.state, run.results.joint_runs, run.results.joint_epsilon) == (RunState.RUNNING, 2, None)
        found = check(run, "team.joint_epsilon")
        assert found.status is CheckStatus.FLAGGED
        assert "one adjacency" in found.found

    def test_a_hundred_trainings_are_not_composed(self, team, track):
        events = [Gaussian(effective_noise_multiplier=4).model_dump(mode="json")]
        for _ in range(51):
            make_token(team, track, run=make_run(make_submission(team, track), budget=4.0), events=events)
        run = account(queued_run(team, track))
        assert (run.results.joint_runs, run.results.joint_epsilon) == (52, None)
        assert "at most 51" in check(run, "team.joint_epsilon").found

    def test_nor_are_too_many_different_rounds(self, team, track):
        events = [Gaussian(effective_noise_multiplier=1 + number / 1000) for number in range(257)]
        run = account(queued_run(team, track), events=events)
        assert run.results.joint_epsilon is None
        assert "different rounds" in check(run, "team.joint_epsilon").found


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_runs_that_come_with_one_token_at_once_one_gets_it(self, team, track):
        token = make_token(team, track).token
        runs = [queued_run(team, track) for _ in range(4)]
        reports = [
            make_report(
                at_accounting(run), Step.ACCOUNTING, result=make_accounting(run, RECORD, run_token=token)
            )
            for run in runs
        ]
        together = threading.Barrier(len(reports))

        def take(report):
            together.wait()
            try:
                receive_report(report)
            finally:
                connection.close()

        with ThreadPoolExecutor(len(reports)) as threads:
            list(threads.map(take, reports))
        states = sorted(Run.objects.values_list("state", flat=True))
        assert states == [RunState.REJECTED] * 3 + [RunState.RUNNING]
        assert RunToken.objects.get().run.state == RunState.RUNNING
        rejected = Run.objects.filter(state=RunState.REJECTED)
        assert [problems(run) for run in rejected] == [["E_RECORD_TOKEN"]] * 3
