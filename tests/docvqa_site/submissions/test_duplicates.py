"""The same checkpoint twice in a track: who is rejected, when, and in which words."""

import pytest

from docvqa_site.submissions import services
from docvqa_site.submissions.models import RunState
from docvqa_site.uploads.models import Upload
from evaluator.errors import ProblemError
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.api.caller import Caller
from tests.docvqa_site.factories import (
    make_artifact,
    make_run,
    make_submission,
    make_team,
    make_track,
    owner_of,
)
from tests.docvqa_site.submissions.contents import checkpoint
from tests.docvqa_site.submissions.drafts import fill, make_private_track
from tests.docvqa_site.submissions.submitting import codes, rejected, start_upload, submit
from tests.docvqa_site.uploads.sending import sha

pytestmark = pytest.mark.django_db

CHECKPOINT = checkpoint()


def make(track, team=None, content=CHECKPOINT, budget=None, **fields):
    submission = make_submission(team, track, **fields)
    run = fill(make_run(submission, budget=budget), leave_out=[ArtifactKind.CHECKPOINT])
    make_artifact(run, ArtifactKind.CHECKPOINT, content, "model.safetensors")
    return submission


def empty_draft(track, team=None, **fields):
    submission = make_submission(team, track, **fields)
    return submission, make_run(submission)


def problem_of_upload(submission, run):
    with pytest.raises(ProblemError) as error:
        start_upload(submission, run, "checkpoint", CHECKPOINT)
    return error.value.problem


class TestWhenTheUploadIsCreated:
    """The SHA-256 is known then, and nothing of the file is sent."""

    def test_a_team_is_told_which_submission_of_its_own_has_the_file(self):
        track, team = make_track(), make_team()
        first = make(track, team, title="FedAvg, seed 7")
        submit(first)
        problem = problem_of_upload(*empty_draft(track, team))
        assert problem.code == "E_SUBMISSION_DUPLICATE"
        assert "as “FedAvg, seed 7”" in problem.message
        assert first.get_absolute_url() in problem.next_step
        assert Upload.objects.count() == first.artifacts.count()

    def test_the_file_of_another_team_isn_t_named_and_another_seed_is_advised(self):
        track, owner = make_track(), make_team(name="The Secret Team")
        first = make(track, owner)
        submit(first)
        problem = problem_of_upload(*empty_draft(track))
        assert "identical to one that another team has submitted" in problem.message
        assert "seed" in problem.next_step
        for secret in ("Secret Team", str(first.pk), first.title):
            assert secret not in str(problem)

    def test_a_practice_submission_takes_it(self):
        track = make_track()
        submit(make(track))
        submission, run = empty_draft(track, practice=True)
        assert start_upload(submission, run, "checkpoint").state == "open"

    def test_an_api_client_can_ask_before_it_opens_a_draft(self, client):
        track, team = make_track(), make_team()
        api = Caller(client, owner_of(team))
        address = f"tracks/{track.slug}/checkpoints/{sha(CHECKPOINT)}"
        assert api.get(address) == {"problems": []}
        submit(make(track))
        (problem,) = api.get(address)["problems"]
        assert problem["code"] == "E_SUBMISSION_DUPLICATE"


class TestWhenItIsSubmitted:
    def test_an_earlier_checkpoint_of_the_same_team_is_rejected(self):
        track, team = make_track(), make_team()
        submit(make(track, team))
        assert codes(make(track, team)) == ["E_SUBMISSION_DUPLICATE"]

    def test_it_may_be_submitted_to_another_track(self):
        team = make_team()
        submit(make(make_track(), team))
        submit(make(make_track(), team))

    def test_a_draft_takes_nothing_from_others(self):
        track = make_track()
        make(track)
        submit(make(track))

    @pytest.mark.parametrize("ending", [RunState.REJECTED, RunState.FAILED])
    def test_it_may_come_again_after_it_was_not_scored(self, ending):
        track, team = make_track(), make_team()
        first = make(track, team)
        submit(first)
        first.runs.update(state=ending)
        submit(make(track, team))

    def test_what_was_withdrawn_may_come_again_from_its_own_team_only(self):
        track, team = make_track(), make_team()
        first = make(track, team)
        submit(first)
        services.withdraw(first, first.created_by)
        assert codes(make(track)) == ["E_SUBMISSION_DUPLICATE"]
        submit(make(track, team))

    def test_two_runs_of_one_submission_are_two_checkpoints(self):
        submission = make_submission(track=make_private_track())
        make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
        for budget in (1.0, 4.0):
            run = fill(make_run(submission, budget=budget), leave_out=[ArtifactKind.CHECKPOINT])
            make_artifact(run, ArtifactKind.CHECKPOINT, b"the same weights", "model.safetensors")
        with rejected("E_SUBMISSION_DUPLICATE") as error:
            submit(submission)
        assert "Another run of this submission" in str(error.value)

    def test_practice_may_repeat_a_checkpoint_and_takes_none_from_others(self):
        track, team = make_track(), make_team()
        submit(make(track, practice=True))
        submit(make(track, team))
        submit(make(track, team, practice=True))
