"""Unresolved challenges, of which no accounted run came, at each later run of the team."""

import pytest
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.ordering import ranks_of
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.services import cancel, evaluate_again
from docvqa_site.organizers.desk import doubtful_logs
from docvqa_site.submissions.models import IndexChallenge, Run, RunState, RunToken, Submission
from docvqa_site.submissions.services import accept_log, withdraw
from docvqa_site.submissions.states import move_run
from docvqa_site.submissions.token_fates import fates_of
from docvqa_site.submissions.unresolved_challenges import challenges_against, outcomes_before
from docvqa_site.teams.models import Membership
from docvqa_site.teams.services import create_team, leave
from evaluator.errors import ProblemError
from evaluator.messages.jobs import CheckStatus, Outcome, Step
from evaluator.records.check_table import DRAWN_INDEXES
from tests.docvqa_site.evaluation.intake.test_accounted import account, at_accounting, check, queued_run
from tests.docvqa_site.evaluation.messages import RESULTS, make_accounting, make_report
from tests.docvqa_site.factories import (
    make_challenge,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_user,
    numbers,
)
from tests.docvqa_site.submissions.records import record_of
from tests.docvqa_site.submissions.test_challenges import with_record

pytestmark = pytest.mark.django_db

TRIES = "team.declared_runs"


def unresolved_challenge(team, track):
    """A challenge of the team that didn't suit it, so that it submitted nothing."""
    return make_token(team, track, record_sha256="5" * 64)


def drawn_index(team, track):
    """The challenge of an index that the team has uploaded."""
    number = next(numbers)
    return IndexChallenge.objects.create(
        team=team, track=track, index_sha256=f"{number:064x}", challenge=make_challenge(), drawn_rounds=3
    )


def founded_by_a_member_of(team):
    """The next team of somebody who leaves this one."""
    person = make_user()
    Membership.objects.create(team=team, user=person, joined_at=team.created_at)
    leave(person)
    return create_team(person, f"Second try {next(numbers)}")


def rank_of(run):
    return ranks_of(run.submission.track, run.budget, [run.pk]).get(run.pk)


def garbage(team, track, token):
    """A queued run with the record of an unresolved challenge, which can't be accounted: its files are made up."""
    submission = make_submission(team, track, state="submitted")
    return make_run(submission, state=RunState.QUEUED, budget=4.0, challenge=token.challenge)


def outcome_of(run):
    """The status of the check on a run as it is listed now, and what was found."""
    found = check(Run.objects.get(pk=run.pk), TRIES)
    return found.status, found.found


class TestCounting:
    def test_a_first_run_has_none(self, team, track):
        unresolved_challenge(make_team(), track)
        unresolved_challenge(team, make_track(BEST_ANLS_AT_BUDGET))
        assert outcome_of(account(queued_run(team, track))) == (
            CheckStatus.PASSED,
            "1 training run accounted for, 0 unresolved challenges, 0 unused tokens, "
            "0 training runs declared as tuning",
        )

    def test_a_challenge_without_an_accounted_run_is_flagged_at_every_later_run(self, team, track):
        unresolved_challenge(team, track)
        runs = [account(queued_run(team, track), b"record %d" % number) for number in range(2)]
        for number, run in enumerate(runs, start=1):
            assert outcome_of(run) == (
                CheckStatus.FLAGGED,
                f"{number} training run{'s' * (number > 1)} accounted for, 1 unresolved challenge, 0 unused tokens, "
                "0 training runs declared as tuning",
            )

    def test_one_that_comes_later_takes_nothing_from_a_run(self, team, track, committed):
        run = account(queued_run(team, track))
        unresolved_challenge(team, track)
        make_token(team, track)
        committed(receive_report, make_report(run.evaluations.get(), Step.SCORING))
        assert outcome_of(run)[0] is CheckStatus.PASSED

    def test_no_tuning_run_that_a_record_declares_excuses_an_unresolved_challenge(self, team, track):
        unresolved_challenge(team, track)
        run = account(queued_run(team, track), tuning_runs=5)
        assert outcome_of(run)[0] is CheckStatus.FLAGGED

    def test_an_unused_token_is_no_unresolved_challenge_and_the_check_never_passes_with_one(
        self, team, track
    ):
        for _ in range(2):
            make_token(team, track)
        assert outcome_of(account(queued_run(team, track), b"first", tuning_runs=1)) == (
            CheckStatus.NO_POWER,
            "1 training run accounted for, 0 unresolved challenges, 2 unused tokens, 1 training run declared as tuning",
        )
        assert outcome_of(account(queued_run(team, track), b"second", tuning_runs=2))[0] is CheckStatus.PASSED


class TestHiding:
    def test_garbage_in_the_queue_hides_no_unresolved_challenge(self, team, track):
        for _ in range(2):
            garbage(team, track, unresolved_challenge(team, track))
        lucky = account(queued_run(team, track))
        assert outcome_of(lucky) == (
            CheckStatus.FLAGGED,
            "1 training run accounted for, 2 unresolved challenges (2 still in evaluation), 0 unused tokens, "
            "0 training runs declared as tuning",
        )

    def test_nor_does_garbage_of_other_trainings(self, team, track):
        unresolved_challenge(team, track)
        for _ in range(2):
            queued_run(team, track)
        assert outcome_of(account(queued_run(team, track)))[0] is CheckStatus.FLAGGED

    @pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.FAILED])
    def test_the_check_is_made_again_when_garbage_leaves_the_queue(
        self, team, track, outcome, committed, settings
    ):
        settings.EVALUATION_BACKOFF_SECONDS = []
        hidden = garbage(team, track, unresolved_challenge(team, track))
        lucky = account(queued_run(team, track))
        evaluation = dispatch.start(hidden)
        for step in (Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING):
            if Run.objects.get(pk=hidden.pk).state != RunState.FAILED:
                committed(receive_report, make_report(evaluation, step, outcome))
        assert Run.objects.get(pk=hidden.pk).state == outcome
        assert outcome_of(lucky) == (
            CheckStatus.FLAGGED,
            "1 training run accounted for, 1 unresolved challenge, 0 unused tokens, 0 training runs declared as tuning",
        )

    def test_and_when_it_is_canceled(self, team, track, committed):
        hidden = garbage(team, track, unresolved_challenge(team, track))
        dispatch.start(hidden)
        lucky = account(queued_run(team, track))
        committed(cancel, hidden.submission, actor=hidden.submission.created_by)
        assert "1 unresolved challenge," in outcome_of(lucky)[1]


class TestOtherTeams:
    def test_who_leaves_a_team_brings_its_unresolved_challenges_along(self, team, track, committed):
        lost = unresolved_challenge(team, track)
        run = account(queued_run(founded_by_a_member_of(team), track))
        assert outcome_of(run) == (
            CheckStatus.FLAGGED,
            "1 training run accounted for, 1 unresolved challenge (1 from members' other teams), 0 unused tokens, "
            "0 training runs declared as tuning",
        )
        assert list(challenges_against(run.submission)) == [lost]
        # The flag goes as soon as the team that they left has the run accounted.
        late = make_run(
            make_submission(team, track, state="submitted"), state=RunState.QUEUED, challenge=lost.challenge
        )
        lost.run = late
        lost.save()
        committed(move_run, late, RunState.REJECTED)
        assert outcome_of(run)[0] is CheckStatus.PASSED

    def test_and_the_joint_privacy_loss(self, team, track):
        account(queued_run(team, track), b"before")
        run = account(queued_run(founded_by_a_member_of(team), track), b"after")
        assert run.results.joint_runs == 2

    def test_what_a_team_does_before_they_join_or_after_they_leave_is_not_theirs(self, team, track):
        unresolved_challenge(team, track)
        person = make_user()
        Membership.objects.create(team=team, user=person)
        leave(person)
        unresolved_challenge(team, track)
        assert (
            outcome_of(account(queued_run(create_team(person, "Elsewhere"), track)))[0] is CheckStatus.PASSED
        )

    def test_who_joins_after_the_draw_brings_nothing(self, team, track):
        unresolved_challenge(make_team(person := make_user()), track)
        token = make_token(team, track, record_sha256="6" * 64)
        leave(person)
        Membership.objects.create(team=team, user=person)
        assert outcomes_before(token).unresolved == 0

    def test_the_team_explains_only_its_own(self, client, team, track):
        lost = unresolved_challenge(team, track)
        next_team = founded_by_a_member_of(team)
        own = unresolved_challenge(next_team, track)
        draft = make_submission(next_team, track)
        client.force_login(draft.created_by)
        html = client.get(draft.get_absolute_url()).content.decode()
        assert (own.token in html, lost.token in html) == (True, False)


class TestPractice:
    PRACTICE = {"practice": True, "published_at": None}

    def test_a_record_that_was_only_for_practice_is_an_unresolved_challenge_until_it_is_submitted_for_a_rank(
        self, team, track, committed
    ):
        first = account(queued_run(team, track, **self.PRACTICE), b"practiced")
        later = account(queued_run(team, track), b"for a rank")
        assert outcome_of(later) == (
            CheckStatus.FLAGGED,
            "1 training run accounted for, 1 unresolved challenge, 0 unused tokens, 0 training runs declared as tuning",
        )
        token = RunToken.objects.get(challenge=first.challenge)
        (fate,) = fates_of([token])
        assert fate.is_unresolved
        assert fate.words.startswith("unresolved challenge: its record was submitted for practice only")
        assert later.results.joint_runs == 2
        committed(account, queued_run(team, track), b"practiced", run_token=token.token)
        assert outcome_of(later)[0] is CheckStatus.PASSED

    def test_one_in_evaluation_for_practice_covers_no_unresolved_challenge(self, team, track):
        lost = unresolved_challenge(team, track)
        hidden = garbage(team, track, lost)
        Submission.objects.filter(pk=hidden.submission_id).update(**self.PRACTICE)
        assert "still in evaluation" not in outcome_of(account(queued_run(team, track)))[1]

    def test_the_team_reads_so_before_it_submits(self, client, team, track):
        draft = make_submission(team, track, practice=True)
        client.force_login(draft.created_by)
        html = client.get(draft.get_absolute_url()).content.decode()
        assert "challenge flags all later runs of the team until the same record is submitted" in html


class TestIndexes:
    """Indexes of messages, of which the site draws rounds. The team may drop one whose rounds don't suit it."""

    @pytest.fixture
    def track(self):
        return make_track(anls_threshold=0.5)

    @pytest.fixture
    def evaluated(self, team, track, committed):
        def evaluate(index, team=team, counting="counted"):
            submission = make_submission(team, track, state="submitted")
            run = make_run(submission, state=RunState.QUEUED, challenge=index.challenge)
            evaluation = dispatch.start(run)
            counted = RESULTS[Step.COMMUNICATION].model_copy(
                update={
                    "counting": counting,
                    "rounds_folded": 3 if counting == "counted" else 0,
                    "checks": [],
                }
            )
            for step in (Step.VALIDATE, Step.COMMUNICATION, Step.SCORING):
                given = {"result": counted} if step is Step.COMMUNICATION else {}
                committed(receive_report, make_report(evaluation, step, **given))
                evaluation.refresh_from_db()
            return Run.objects.get(pk=run.pk)

        return evaluate

    def test_one_without_a_counted_run_withholds_the_rank_until_an_organizer_accepts(
        self, team, track, evaluated
    ):
        for _ in range(2):
            drawn_index(team, track)
        run = evaluated(drawn_index(team, track))
        check_ = check(run, DRAWN_INDEXES.id)
        assert (check_.status, check_.found) == (CheckStatus.FLAGGED, "2 unresolved challenges")
        assert rank_of(run) is None
        assert "check team.drawn_indexes flagged the run" in shortfall(run).sentence
        assert list(doubtful_logs(Submission.objects.all(), [track])) == [run]
        accept_log(run, make_user())
        assert rank_of(run) == 1

    def test_a_first_one_and_those_after_counted_runs_are_ranked(self, team, track, evaluated):
        drawn_index(make_team(), track)
        drawn_index(team, make_track())
        runs = [evaluated(drawn_index(team, track)) for _ in range(2)]
        drawn_index(team, track)
        assert [check(run, DRAWN_INDEXES.id).status for run in runs] == [CheckStatus.PASSED] * 2
        assert [rank_of(run) for run in runs] == [1, 2]

    def test_a_declared_run_has_no_such_check_and_counts_for_no_index(self, team, track, evaluated):
        declared = evaluated(drawn_index(team, track), counting="declared")
        assert DRAWN_INDEXES.id not in [one.id for one in declared.results.checks]
        assert check(evaluated(drawn_index(team, track)), DRAWN_INDEXES.id).status is CheckStatus.FLAGGED

    def test_the_flag_goes_when_the_run_of_the_earlier_index_is_counted(self, team, track, evaluated):
        first, second = (drawn_index(team, track) for _ in range(2))
        later = evaluated(second)
        assert rank_of(later) is None
        evaluated(first)
        later.refresh_from_db()
        assert (check(later, DRAWN_INDEXES.id).status, later.results.log_flag) == (CheckStatus.PASSED, "")
        assert rank_of(later) is not None

    def test_an_index_that_was_first_drawn_for_another_team_counts_the_challenges_of_both(
        self, team, track, evaluated
    ):
        accomplice = make_team()
        for one in (team, accomplice, team):
            drawn_index(one, track)
        run = evaluated(drawn_index(accomplice, track), team)
        found = check(run, DRAWN_INDEXES.id)
        assert (found.status, found.found) == (
            CheckStatus.FLAGGED,
            "3 unresolved challenges, an index that was first drawn for another team",
        )
        assert rank_of(run) is None

    def test_it_is_flagged_without_an_unresolved_challenge_too(self, team, track, evaluated):
        run = evaluated(drawn_index(team, track), make_team())
        assert (
            check(run, DRAWN_INDEXES.id).found
            == "0 unresolved challenges, an index that was first drawn for another team"
        )
        assert rank_of(run) is None

    def test_one_that_was_counted_for_practice_is_lost_until_it_is_for_a_rank(self, team, track, evaluated):
        first, second = (drawn_index(team, track) for _ in range(2))
        practiced = evaluated(first)
        Submission.objects.filter(pk=practiced.submission_id).update(practice=True, published_at=None)
        later = evaluated(second)
        assert (check(later, DRAWN_INDEXES.id).status, rank_of(later)) == (CheckStatus.FLAGGED, None)
        evaluated(first)
        assert check(Run.objects.get(pk=later.pk), DRAWN_INDEXES.id).status is CheckStatus.PASSED

    def test_who_leaves_a_team_brings_its_unresolved_challenges_along(self, team, track, evaluated):
        lost = drawn_index(team, track)
        next_team = founded_by_a_member_of(team)
        run = evaluated(drawn_index(next_team, track), next_team)
        assert check(run, DRAWN_INDEXES.id).found == "1 unresolved challenge"
        evaluated(lost)
        assert check(Run.objects.get(pk=run.pk), DRAWN_INDEXES.id).status is CheckStatus.PASSED


class TestCheckedAgain:
    def test_a_try_is_lost_no_more_when_its_own_run_is_accounted(self, team, track, committed):
        first, second = (queued_run(team, track) for _ in range(2))
        evaluation, result = at_accounting(first), make_accounting(first)
        later = account(second, b"another record")
        receive_report(make_report(later.evaluations.get(), Step.SCORING))
        flags = Run.objects.get(pk=later.pk).flagged_checks
        assert outcome_of(later)[0] is CheckStatus.FLAGGED
        committed(receive_report, make_report(evaluation, Step.ACCOUNTING, result=result))
        assert Run.objects.get(pk=later.pk).flagged_checks == flags - 1
        for run, accounted in ((first, 1), (later, 2)):
            assert outcome_of(run) == (
                CheckStatus.PASSED,
                f"{accounted} training run{'s' * (accounted > 1)} accounted for, 0 unresolved challenges, "
                "0 unused tokens, 0 training runs declared as tuning",
            )
        (entry,) = AuditEntry.objects.filter(action="run.checked_again")
        assert (entry.object_id, entry.details["status"]) == (str(later.pk), "passed")

    def test_the_tuning_runs_of_its_record_are_remembered(self, team, track, committed):
        make_token(team, track)
        run = account(queued_run(team, track), tuning_runs=1)
        committed(receive_report, make_report(run.evaluations.get(), Step.SCORING))
        assert outcome_of(run) == (
            CheckStatus.PASSED,
            "1 training run accounted for, 0 unresolved challenges, 1 unused token, 1 training run declared as tuning",
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
        status, found = outcome_of(lucky)
        assert status is CheckStatus.FLAGGED
        assert found.startswith(
            "1 training run accounted for, 3 unresolved challenges (1 still in evaluation),"
        )
        # The worker finds what the unresolved challenge would have shown, and nothing is covered any more.
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            committed(receive_report, make_report(waiting, step))
        committed(receive_report, make_report(waiting, Step.ACCOUNTING, Outcome.REJECTED))
        assert Run.objects.get(pk=hidden.pk).state == RunState.REJECTED
        assert outcome_of(lucky) == (
            CheckStatus.FLAGGED,
            "1 training run accounted for, 3 unresolved challenges, 0 unused tokens, "
            "0 training runs declared as tuning",
        )
        # Its next run, however honest, shows them too.
        honest = self.sent(self.drawn(team, track))
        self.accounted(honest)
        assert "3 unresolved challenges" in outcome_of(honest)[1]

    def test_the_first_challenge_is_the_only_one_that_shows_no_flag(self, team, track):
        """So its chance to pass without one is that of a single try."""
        drawn = [self.drawn(team, track) for _ in range(4)]
        for number, run in reversed(list(enumerate(drawn))):
            self.accounted(self.sent(run))
            found = outcome_of(run)
            assert f"{number} unresolved" in found[1]
            assert (found[0] is CheckStatus.PASSED) == (number == 0)
            RunToken.objects.filter(challenge=run.challenge).update(run=None)

    def test_it_runs_out_of_challenges(self, team):
        track = make_track(BEST_ANLS_AT_BUDGET, challenges_per_day=self.UNLUCKY)
        for _ in range(self.UNLUCKY):
            self.drawn(team, track)
        with pytest.raises(ProblemError, match="E_CHALLENGE_LIMIT"):
            self.drawn(team, track)
