"""The challenge that the site draws for a training record, and the token that it binds to that record."""

import re

import pytest
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.evaluation.models import Evaluation
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions import services
from docvqa_site.submissions.models import Artifact, Run, RunState, RunToken
from docvqa_site.submissions.quota import WINDOW
from docvqa_site.teams.models import Membership, PastMembership
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, Step
from tests.docvqa_site.factories import (
    make_artifact,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_upload,
    make_user,
)
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.submissions.records import annex_for, key_of, record_of
from tests.docvqa_site.submissions.test_submission_races import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def track():
    return make_private_track()


@pytest.fixture
def token(team, track):
    return make_token(team, track)


@pytest.fixture
def run(team, track):
    return drafted(team, track)


def drafted(team, track):
    return make_run(make_submission(team, track), budget=1.0)


def uploaded(run, kind, content):
    """The run after a file of it was uploaded."""
    submission = run.submission
    upload = make_upload(submission.team, content, f"{kind}.jsonl")
    Artifact.pending.create(submission=submission, run=run, kind=kind, upload=upload)
    services.finish_upload(upload, submission.created_by)
    return Run.objects.get(pk=run.pk)


def with_record(run, content):
    return uploaded(run, ArtifactKind.TRAINING_RECORD, content)


def with_annex(run, content):
    return uploaded(run, ArtifactKind.TRAINING_ANNEX, content)


def next_after(token):
    """When the challenge of this token counts no more."""
    (drawn,) = RunToken.objects.filter(pk=token.pk).values_list("challenged_at", flat=True)
    assert drawn is not None
    return drawn + WINDOW


def rejection(upload, run, content):
    with pytest.raises(ProblemError) as error:
        upload(run, content)
    return error.value.problem


class TestRecord:
    def test_its_upload_draws_a_challenge_and_binds_the_token(self, run, token):
        run = with_record(run, record_of(token.token))
        token.refresh_from_db()
        assert re.fullmatch("[0-9a-f]{64}", run.challenge)
        assert token.challenge == run.challenge
        assert token.record_sha256 == run.artifacts.get().upload.sha256
        assert token.run is None
        assert token.issued_at < token.challenged_at < timezone.now()
        entry = AuditEntry.objects.get(action="run_token.challenged")
        assert entry.details == {"run": str(run.pk), "record_sha256": token.record_sha256}

    def test_every_token_has_a_challenge_of_its_own(self, team, track):
        runs = [with_record(drafted(team, track), record_of(make_token(team, track).token)) for _ in range(3)]
        assert len({run.challenge for run in runs}) == 3

    def test_the_same_record_gets_the_same_challenge_wherever_it_comes_again(self, run, team, track, token):
        record = record_of(token.token)
        first = with_record(run, record)
        assert with_record(first, record).challenge == first.challenge
        services.withdraw(first.submission, first.submission.created_by)
        assert with_record(drafted(team, track), record).challenge == first.challenge
        assert RunToken.objects.get().challenge == first.challenge

    def test_another_record_never_gets_the_token_and_the_first_one_stays(self, run, team, track, token):
        first = with_record(run, record_of(token.token))
        stored = first.artifacts.get()
        problem = rejection(with_record, first, record_of(token.token, b"other rest"))
        assert problem.code is ErrorCode.RECORD_TOKEN
        assert stored.upload.sha256 in problem.expected
        assert "train again" in problem.next_step
        assert first.artifacts.get() == stored
        services.withdraw(first.submission, first.submission.created_by)
        elsewhere = drafted(team, track)
        assert rejection(with_record, elsewhere, record_of(token.token, b"2")).code is ErrorCode.RECORD_TOKEN
        assert not elsewhere.artifacts.exists()

    def test_who_tries_records_gets_one_challenge(self, run, token):
        challenges, rejected = set(), 0
        for number in range(50):
            try:
                challenges.add(with_record(run, record_of(token.token, b"%d" % number)).challenge)
            except ProblemError:
                rejected += 1
        assert (len(challenges), rejected) == (1, 49)

    def test_a_token_of_others_is_not_bound(self, run, team, track):
        foreign = make_token(make_team(), track)
        elsewhere = make_token(team, make_private_track())
        for text in (foreign.token, elsewhere.token, "invented-by-ourselves", None):
            record = record_of(text, key=key_of(team))
            assert rejection(with_record, run, record).code is ErrorCode.RECORD_TOKEN
        assert not RunToken.objects.exclude(record_sha256="").exists()

    @pytest.mark.parametrize(
        "content", [b"", b"\n", b"not JSON\n", b'{"type":"end"}\n', b"x" * 2**21, b"[" * 2**20]
    )
    def test_what_is_no_record_is_rejected(self, run, content):
        assert rejection(with_record, run, content).code is ErrorCode.RECORD_FORMAT
        assert not run.artifacts.exists()

    def test_a_changed_first_line_is_rejected(self, run, token):
        forged = record_of(token.token).replace(b'"claimed_epsilon":8', b'"claimed_epsilon":1')
        assert rejection(with_record, run, forged).code is ErrorCode.RECORD_CHAIN


class TestLimit:
    """How many challenges a team gets in a day."""

    @pytest.fixture
    def track(self):
        return make_private_track(challenges_per_day=2)

    def test_a_team_gets_so_many_in_24_hours_and_reads_when_the_next_one_is_possible(self, team, track):
        tokens = [make_token(team, track) for _ in range(3)]
        for token in tokens[:2]:
            with_record(drafted(team, track), record_of(token.token))
        when = next_after(tokens[0])
        run = drafted(team, track)
        problem = rejection(with_record, run, record_of(tokens[2].token))
        assert (problem.code, problem.where) == (ErrorCode.CHALLENGE_LIMIT, track.slug)
        assert problem.expected == "at most 2 challenges in 24 hours"
        assert f"possible on {when:%B %-d at %H:%M} UTC" in problem.next_step
        assert RunToken.objects.get(pk=tokens[2].pk).challenge == ""
        assert not run.artifacts.exists()
        # A day later, the same record is taken.
        RunToken.objects.filter(challenged_at__isnull=False).update(challenged_at=timezone.now() - WINDOW)
        assert with_record(run, record_of(tokens[2].token)).challenge

    def test_a_record_that_has_a_challenge_is_always_taken(self, team, track):
        records = [record_of(make_token(team, track).token) for _ in range(2)]
        runs = [with_record(drafted(team, track), record) for record in records]
        assert with_record(drafted(team, track), records[0]).challenge == runs[0].challenge

    def test_other_teams_and_other_tracks_have_challenges_of_their_own(self, team, track):
        for _ in range(2):
            make_token(team, track, record_sha256="5" * 64)
        for other, elsewhere in ((make_team(), track), (team, make_private_track(challenges_per_day=2))):
            run = drafted(other, elsewhere)
            assert with_record(run, record_of(make_token(other, elsewhere).token)).challenge

    def test_people_bring_along_what_they_used_in_another_team(self, track):
        person = make_user()
        before = make_team(person)
        for _ in range(2):
            make_token(before, track, record_sha256="5" * 64)
        Membership.objects.filter(user=person).delete()
        PastMembership.objects.create(
            team=before, user=person, joined_at=timezone.now() - WINDOW, left_at=timezone.now()
        )
        after = make_team(person)
        run = drafted(after, track)
        problem = rejection(with_record, run, record_of(make_token(after, track).token))
        assert problem.code is ErrorCode.CHALLENGE_LIMIT

    @pytest.mark.django_db(transaction=True)
    def test_records_that_come_at_once_draw_no_more(self, team, track):
        def upload(token):
            run, record = drafted(team, track), record_of(token.token)
            return lambda: with_record(run, record)

        tokens = [make_token(team, track) for _ in range(5)]
        assert at_once(*[upload(token) for token in tokens]) == ["E_CHALLENGE_LIMIT"] * 3
        assert RunToken.objects.exclude(challenge="").count() == 2

    def test_a_draft_says_when_the_next_one_is_possible(self, client, team, track):
        run = drafted(team, track)
        client.force_login(run.submission.created_by)
        page = run.submission.get_absolute_url()
        assert "challenges of the past 24 hours" not in client.get(page).text
        tokens = [make_token(team, track, record_sha256="5" * 64) for _ in range(2)]
        when = next_after(tokens[0])
        text = client.get(page).text
        assert "used all 2 challenges of the past 24 hours" in text
        assert f"{when:%H:%M} UTC on {when:%B %-d}" in text


class TestAnnex:
    def test_it_must_answer_the_challenge_of_the_record(self, run, token):
        run = with_record(run, record_of(token.token))
        problem = rejection(with_annex, run, annex_for("5" * 64))
        assert (problem.code, problem.expected) == (ErrorCode.RECORD_CHALLENGE, run.challenge)
        assert "pfl privacy annex" in problem.next_step
        with_annex(run, annex_for(run.challenge))
        assert run.artifacts.count() == 2

    def test_it_comes_after_the_record(self, run):
        problem = rejection(with_annex, run, annex_for("5" * 64))
        assert problem.code is ErrorCode.RECORD_CHALLENGE
        assert "the training record" in problem.expected

    def test_what_is_no_annex_is_rejected(self, run, token):
        run = with_record(run, record_of(token.token))
        for content in (b"", b"not JSON\n", record_of(token.token)):
            assert rejection(with_annex, run, content).code is ErrorCode.RECORD_ANNEX

    def test_another_record_takes_the_place_of_both(self, run, team, track, token):
        run = with_record(run, record_of(token.token))
        with_annex(run, annex_for(run.challenge))
        other = with_record(run, record_of(make_token(team, track).token))
        assert other.challenge != run.challenge
        assert [artifact.kind for artifact in other.artifacts.all()] == [ArtifactKind.TRAINING_RECORD]


def test_the_page_shows_the_challenge_and_the_command_after_the_records_upload(client, run, token):
    client.force_login(run.submission.created_by)
    before = client.get(run.submission.get_absolute_url()).content.decode()
    assert "Upload the training record first" in before
    places = [
        before.index(f'data-kind="{kind}"') for kind in ("training_record", "training_annex", "checkpoint")
    ]
    assert places == sorted(places)
    run = with_record(run, record_of(token.token))
    after = client.get(run.submission.get_absolute_url()).content.decode()
    assert re.search(rf"<pre [^>]*data-copy[^>]*><code>.*annex</span> .*>--challenge {run.challenge}<", after)
    assert "then select it here" in after
    make_artifact(run, ArtifactKind.TRAINING_ANNEX)
    after = client.get(run.submission.get_absolute_url()).content.decode()
    assert "then select it here" not in after
    assert "delete the run&#x27;s <code>vectors</code> folder" in after


def test_the_job_carries_the_challenge_of_the_run():
    run = make_run(make_submission(track=make_private_track()), state=RunState.QUEUED, budget=4.0)
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"record", "record.jsonl")
    job = dispatch.job(Evaluation.objects.create(run=run, attempt=1, step=Step.ACCOUNTING))
    assert job.challenge == run.challenge
