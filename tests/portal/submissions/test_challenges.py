"""The challenge that the site draws for a training record, and the token that it binds to that record."""

import re

import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind, Step
from portal.audit.models import AuditEntry
from portal.evaluation.models import Evaluation
from portal.evaluation.queue import dispatch
from portal.submissions import services
from portal.submissions.models import Artifact, Run, RunState, RunToken
from tests.portal.factories import (
    make_artifact,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_upload,
)
from tests.portal.submissions.drafts import make_private_track
from tests.portal.submissions.records import annex_for, key_of, record_of

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
    run = with_record(run, record_of(token.token))
    after = client.get(run.submission.get_absolute_url()).content.decode()
    assert f"pfl privacy annex RUN --challenge {run.challenge}" in after


def test_the_job_carries_the_challenge_of_the_run():
    run = make_run(make_submission(track=make_private_track()), state=RunState.QUEUED, budget=4.0)
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"record", "record.jsonl")
    job = dispatch.job(Evaluation.objects.create(run=run, attempt=1, step=Step.ACCOUNTING))
    assert job.challenge == run.challenge
