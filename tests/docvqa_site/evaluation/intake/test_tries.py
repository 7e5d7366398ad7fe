"""Lost tries: challenges that a team had drawn and that no accounted run came of, at each of its later runs."""

import pytest
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.services import cancel, evaluate_again
from docvqa_site.submissions.models import Run, RunState, RunToken
from docvqa_site.submissions.services import withdraw
from evaluator.errors import ProblemError
from evaluator.messages.jobs import CheckStatus, Outcome, Step
from tests.docvqa_site.evaluation.intake.test_accounted import account, at_accounting, check, queued_run
from tests.docvqa_site.evaluation.messages import make_accounting, make_report
from tests.docvqa_site.factories import (
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
)
from tests.docvqa_site.submissions.records import record_of
from tests.docvqa_site.submissions.test_challenges import with_record

pytestmark = pytest.mark.django_db

TRIES = "team.declared_runs"


def lost_try(team, track):
    """A challenge of the team that didn't suit it, so that it submitted nothing."""
    return make_token(team, track, record_sha256="5" * 64)


def garbage(team, track, token):
    """A queued run with the record of a lost try, which can't be accounted: its files are made up."""
    submission = make_submission(team, track, state="submitted")
    return make_run(submission, state=RunState.QUEUED, budget=4.0, challenge=token.challenge)


def tries_of(run):
    """The status of the check on a run as it is listed now, and what was found."""
    found = check(Run.objects.get(pk=run.pk), TRIES)
    return found.status, found.found


class TestCounting:
    def test_a_first_run_has_none(self, team, track):
        lost_try(make_team(), track)
        lost_try(team, make_track(BEST_ANLS_AT_BUDGET))
        assert tries_of(account(queued_run(team, track))) == (
            CheckStatus.PASSED,
            "1 accounted, 0 lost tries, 0 unused tokens, 0 declared as tuning",
        )

    def test_a_challenge_without_an_accounted_run_is_flagged_at_every_later_run(self, team, track):
        lost_try(team, track)
        runs = [account(queued_run(team, track), b"record %d" % number) for number in range(2)]
        for number, run in enumerate(runs, start=1):
            assert tries_of(run) == (
                CheckStatus.FLAGGED,
                f"{number} accounted, 1 lost try, 0 unused tokens, 0 declared as tuning",
            )

    def test_one_that_comes_later_takes_nothing_from_a_run(self, team, track, committed):
        run = account(queued_run(team, track))
        lost_try(team, track)
        make_token(team, track)
        committed(receive_report, make_report(run.evaluations.get(), Step.SCORING))
        assert tries_of(run)[0] is CheckStatus.PASSED

    def test_no_tuning_run_that_a_record_declares_excuses_a_lost_try(self, team, track):
        lost_try(team, track)
        run = account(queued_run(team, track), tuning_runs=5)
        assert tries_of(run)[0] is CheckStatus.FLAGGED

    def test_an_unused_token_is_no_lost_try_and_the_check_never_passes_with_one(self, team, track):
        for _ in range(2):
            make_token(team, track)
        assert tries_of(account(queued_run(team, track), b"first", tuning_runs=1)) == (
            CheckStatus.NO_POWER,
            "1 accounted, 0 lost tries, 2 unused tokens, 1 declared as tuning",
        )
        assert tries_of(account(queued_run(team, track), b"second", tuning_runs=2))[0] is CheckStatus.PASSED


class TestHiding:
    def test_garbage_in_the_queue_hides_no_lost_try(self, team, track):
        for _ in range(2):
            garbage(team, track, lost_try(team, track))
        lucky = account(queued_run(team, track))
        assert tries_of(lucky) == (
            CheckStatus.FLAGGED,
            "1 accounted, 2 lost tries (2 still in evaluation), 0 unused tokens, 0 declared as tuning",
        )

    def test_nor_does_garbage_of_other_trainings(self, team, track):
        lost_try(team, track)
        for _ in range(2):
            queued_run(team, track)
        assert tries_of(account(queued_run(team, track)))[0] is CheckStatus.FLAGGED

    @pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.FAILED])
    def test_the_check_is_made_again_when_garbage_leaves_the_queue(
        self, team, track, outcome, committed, settings
    ):
        settings.EVALUATION_BACKOFF_SECONDS = []
        hidden = garbage(team, track, lost_try(team, track))
        lucky = account(queued_run(team, track))
        evaluation = dispatch.start(hidden)
        for step in (Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING):
            if Run.objects.get(pk=hidden.pk).state != RunState.FAILED:
                committed(receive_report, make_report(evaluation, step, outcome))
        assert Run.objects.get(pk=hidden.pk).state == outcome
        assert tries_of(lucky) == (
            CheckStatus.FLAGGED,
            "1 accounted, 1 lost try, 0 unused tokens, 0 declared as tuning",
        )

    def test_and_when_it_is_canceled(self, team, track, committed):
        hidden = garbage(team, track, lost_try(team, track))
        dispatch.start(hidden)
        lucky = account(queued_run(team, track))
        committed(cancel, hidden.submission, actor=hidden.submission.created_by)
        assert "1 lost try," in tries_of(lucky)[1]


class TestCheckedAgain:
    def test_a_try_is_lost_no_more_when_its_own_run_is_accounted(self, team, track, committed):
        first, second = (queued_run(team, track) for _ in range(2))
        evaluation, result = at_accounting(first), make_accounting(first)
        later = account(second, b"another record")
        receive_report(make_report(later.evaluations.get(), Step.SCORING))
        flags = Run.objects.get(pk=later.pk).flagged_checks
        assert tries_of(later)[0] is CheckStatus.FLAGGED
        committed(receive_report, make_report(evaluation, Step.ACCOUNTING, result=result))
        assert Run.objects.get(pk=later.pk).flagged_checks == flags - 1
        for run, accounted in ((first, 1), (later, 2)):
            assert tries_of(run) == (
                CheckStatus.PASSED,
                f"{accounted} accounted, 0 lost tries, 0 unused tokens, 0 declared as tuning",
            )
        (entry,) = AuditEntry.objects.filter(action="run.checked_again")
        assert (entry.object_id, entry.details["status"]) == (str(later.pk), "passed")

    def test_the_tuning_runs_of_its_record_are_remembered(self, team, track, committed):
        make_token(team, track)
        run = account(queued_run(team, track), tuning_runs=1)
        committed(receive_report, make_report(run.evaluations.get(), Step.SCORING))
        assert tries_of(run) == (
            CheckStatus.PASSED,
            "1 accounted, 0 lost tries, 1 unused token, 1 declared as tuning",
        )

    def test_a_run_that_is_evaluated_again_has_the_check_once(self, team, track, committed):
        run = account(queued_run(team, track))
        committed(receive_report, make_report(run.evaluations.get(), Step.SCORING))
        again = evaluate_again(run, actor=run.submission.created_by)
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            receive_report(make_report(again, step))
        result = make_accounting(run, run_token=RunToken.objects.get(run=run).token)
        committed(receive_report, make_report(again, Step.ACCOUNTING, result=result))
        run.refresh_from_db()
        for results in (run.results, run.pending):
            assert [one.status for one in results.checks if one.id == TRIES] == [CheckStatus.PASSED]


class TestCheat:
    """A team that draws challenges until one suits it, with records whose other blocks hold a lie."""

    UNLUCKY = 3

    def drawn(self, team, track):
        """A draft with a record of a new training, and so with a challenge."""
        run = make_run(make_submission(team, track), budget=4.0)
        return with_record(run, record_of(make_token(team, track).token))

    def sent(self, run):
        """The run as it is when its draft was submitted."""
        submission = run.submission
        submission.state, submission.submitted_at = "submitted", timezone.now()
        submission.phase, submission.published_at = submission.track.phases.first(), timezone.now()
        submission.save()
        run.state, run.rules = RunState.QUEUED, submission.track.rules(4.0).model_dump(mode="json")
        run.save()
        return run

    def accounted(self, run):
        evaluation = at_accounting(run)
        token = RunToken.objects.get(challenge=run.challenge).token
        receive_report(make_report(evaluation, Step.ACCOUNTING, result=make_accounting(run, run_token=token)))
        return evaluation

    def test_every_challenge_that_did_not_suit_it_is_counted_whatever_it_does(self, team, track, committed):
        unlucky = [self.drawn(team, track) for _ in range(self.UNLUCKY)]
        lucky = self.sent(self.drawn(team, track))
        # It discards a draft, keeps another one, and sends the third while the lucky run is evaluated.
        withdraw(unlucky[0].submission, unlucky[0].submission.created_by)
        hidden = self.sent(unlucky[2])
        waiting = dispatch.start(hidden)
        committed(receive_report, make_report(self.accounted(lucky), Step.SCORING))
        status, found = tries_of(lucky)
        assert status is CheckStatus.FLAGGED
        assert found.startswith("1 accounted, 3 lost tries (1 still in evaluation),")
        # The worker finds what the lost try would have shown, and nothing is covered any more.
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            committed(receive_report, make_report(waiting, step))
        committed(receive_report, make_report(waiting, Step.ACCOUNTING, Outcome.REJECTED))
        assert Run.objects.get(pk=hidden.pk).state == RunState.REJECTED
        assert tries_of(lucky) == (
            CheckStatus.FLAGGED,
            "1 accounted, 3 lost tries, 0 unused tokens, 0 declared as tuning",
        )
        # Its next run, however honest, shows them too.
        honest = self.sent(self.drawn(team, track))
        self.accounted(honest)
        assert "3 lost tries" in tries_of(honest)[1]

    def test_the_first_challenge_is_the_only_one_that_shows_no_flag(self, team, track):
        """So its chance to pass without one is that of a single try."""
        drawn = [self.drawn(team, track) for _ in range(4)]
        for number, run in reversed(list(enumerate(drawn))):
            self.accounted(self.sent(run))
            found = tries_of(run)
            assert f"{number} lost" in found[1]
            assert (found[0] is CheckStatus.PASSED) == (number == 0)
            RunToken.objects.filter(challenge=run.challenge).update(run=None)

    def test_it_runs_out_of_challenges(self, team):
        track = make_track(BEST_ANLS_AT_BUDGET, challenges_per_day=self.UNLUCKY)
        for _ in range(self.UNLUCKY):
            self.drawn(team, track)
        with pytest.raises(ProblemError, match="E_CHALLENGE_LIMIT"):
            self.drawn(team, track)
