"""The challenge that the site draws for an index of messages that are too large to be attached as a whole."""

import re

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Track
from docvqa_site.submissions import services
from docvqa_site.submissions.challenges import expected_messages
from docvqa_site.submissions.models import Artifact, IndexChallenge, Run
from docvqa_site.submissions.quota import WINDOW
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import DRAWN_ROUNDS, ArtifactKind
from evaluator.records.round_keys import replayed_rounds
from tests.docvqa_site.factories import make_run as make_drafted
from tests.docvqa_site.factories import make_submission, make_team, make_track, make_upload
from tests.docvqa_site.submissions.drafts import fill
from tests.docvqa_site.submissions.submitting import submit
from tests.evaluator.folding.made_runs import make_base, make_run

pytestmark = pytest.mark.django_db

ROUNDS = 6
NAMES = {ArtifactKind.TRANSCRIPT: "transcript.jsonl", ArtifactKind.MESSAGES: "opened_messages.bin"}


@pytest.fixture(autouse=True)
def limit(settings, few_drawn):
    """Between the messages of two rounds, and those of six."""
    settings.WHOLE_MESSAGES_BYTES = 40_000


@pytest.fixture
def made(tmp_path):
    return make_run(make_base(tmp_path / "base"), rounds=ROUNDS)


@pytest.fixture
def files(made, tmp_path):
    return made.write(tmp_path / "run")


@pytest.fixture
def index(files):
    return files[ArtifactKind.TRANSCRIPT].read_bytes()


@pytest.fixture
def run():
    return make_drafted(make_submission(track=make_track(challenges_per_day=2)))


def other_index(tmp_path, rounds=ROUNDS, codec="float32", number=0):
    """An index of another run, which is large too unless it has fewer rounds."""
    made = make_run(make_base(tmp_path / f"base{number}"), codec, rounds=rounds, chosen=2 + number)
    return made.write(tmp_path / f"other{number}")[ArtifactKind.TRANSCRIPT].read_bytes()


def uploaded(run, kind, content):
    """The run after a file of it was uploaded."""
    removed_by(run, kind, content)
    return Run.objects.get(pk=run.pk)


def removed_by(run, kind, content):
    """The names of the other files that were removed when a file was uploaded."""
    upload = make_upload(run.submission.team, content, NAMES[kind])
    Artifact.pending.create(submission=run.submission, run=run, kind=kind, upload=upload)
    return services.attach_upload(upload, run.submission.created_by).removed


def rejection(run, kind, content):
    with pytest.raises(ProblemError) as error:
        uploaded(run, kind, content)
    return error.value.problem


def opening(made, files, run):
    made.write_opened(files, replayed_rounds(run.challenge, ROUNDS, DRAWN_ROUNDS))
    return files[ArtifactKind.MESSAGES].read_bytes()


def test_the_upload_of_a_large_index_draws_rounds(run, index):
    run = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    assert re.fullmatch("[0-9a-f]{64}", run.challenge)
    found = IndexChallenge.objects.get()
    assert (found.challenge, found.team, found.track) == (
        run.challenge,
        run.submission.team,
        run.submission.track,
    )
    assert AuditEntry.objects.get(action="index.challenged").details["index_sha256"] == found.index_sha256
    assert [line.round for line in expected_messages(run).rounds] == replayed_rounds(run.challenge, ROUNDS, 3)


def test_messages_that_can_be_attached_as_a_whole_draw_nothing(run, tmp_path):
    run = uploaded(run, ArtifactKind.TRANSCRIPT, other_index(tmp_path, rounds=2))
    assert (run.challenge, IndexChallenge.objects.count()) == ("", 0)


def test_the_same_index_gets_the_same_challenge_wherever_it_comes_again(run, index):
    first = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    services.withdraw(first.submission, first.submission.created_by)
    for _ in range(3):
        again = make_drafted(make_submission(track=first.submission.track))
        assert uploaded(again, ArtifactKind.TRANSCRIPT, index).challenge == first.challenge
    assert IndexChallenge.objects.count() == 1


def test_each_track_draws_for_an_index_by_itself_as_many_rounds_as_its_rule_says(run, index):
    team = run.submission.team
    easy = make_drafted(make_submission(team, make_track(drawn_rounds=1)))
    drawn = [uploaded(one, ArtifactKind.TRANSCRIPT, index) for one in (easy, run)]
    assert [one.rounds_to_draw for one in drawn] == [1, DRAWN_ROUNDS]
    # Otherwise a team would know what its track opens before it says there which index it takes.
    assert drawn[0].challenge != drawn[1].challenge


def test_an_index_that_was_changed_after_the_draw_is_drawn_for_again(run, made, files, index, tmp_path):
    run = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    first = run.challenge
    uploaded(run, ArtifactKind.MESSAGES, opening(made, files, run))
    run = uploaded(run, ArtifactKind.TRANSCRIPT, other_index(tmp_path, number=1))
    assert run.challenge not in ("", first)
    # What was opened answers another challenge.
    assert [artifact.kind for artifact in run.artifacts.all()] == [ArtifactKind.TRANSCRIPT]
    run = uploaded(run, ArtifactKind.TRANSCRIPT, other_index(tmp_path, rounds=2, number=0))
    assert run.challenge == ""


def test_a_team_gets_so_many_draws_in_24_hours(run, index, tmp_path):
    """Otherwise it could change its index until the rounds suit it."""
    uploaded(run, ArtifactKind.TRANSCRIPT, index)
    uploaded(run, ArtifactKind.TRANSCRIPT, other_index(tmp_path, number=1))
    third = other_index(tmp_path, number=2)
    problem = rejection(run, ArtifactKind.TRANSCRIPT, third)
    assert problem.code is ErrorCode.CHALLENGE_LIMIT
    assert problem.expected == "at most 2 challenges in 24 hours"
    assert uploaded(run, ArtifactKind.TRANSCRIPT, index).challenge
    elsewhere = make_drafted(make_submission(make_team(), run.submission.track))
    assert uploaded(elsewhere, ArtifactKind.TRANSCRIPT, third).challenge
    IndexChallenge.objects.update(challenged_at=timezone.now() - WINDOW)
    assert uploaded(run, ArtifactKind.TRANSCRIPT, other_index(tmp_path, codec="nf4", rounds=60)).challenge


def test_a_file_of_other_rounds_is_rejected_by_its_size_before_it_is_sent(run, made, files, index):
    everything = files[ArtifactKind.MESSAGES].read_bytes()
    problem = rejection(run, ArtifactKind.MESSAGES, everything)
    assert (problem.code, "transcript.jsonl first" in problem.next_step) == (
        ErrorCode.TRANSCRIPT_MESSAGE,
        True,
    )
    run = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    right = opening(made, files, run)
    for wrong in (everything, right[:-1]):
        with pytest.raises(ProblemError) as error:
            services.check_head(
                run.submission,
                run,
                ArtifactKind.MESSAGES,
                filename="opened_messages.bin",
                size_bytes=len(wrong),
                head=wrong[:100],
            )
        assert error.value.problem.code is ErrorCode.TRANSCRIPT_MESSAGE
        assert error.value.problem.expected.startswith(f"{len(right)} bytes, for rounds ")
    assert uploaded(run, ArtifactKind.MESSAGES, right).artifacts.count() == 2


def test_a_challenge_keeps_its_number_of_rounds_when_the_track_changes_it(client, run, made, files, index):
    run = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    Track.objects.update(drawn_rounds=DRAWN_ROUNDS + 1)
    again = make_drafted(make_submission(track=run.submission.track))
    for one in (Run.objects.get(pk=run.pk), uploaded(again, ArtifactKind.TRANSCRIPT, index)):
        assert one.rounds_to_draw == DRAWN_ROUNDS
        assert uploaded(one, ArtifactKind.MESSAGES, opening(made, files, one)).artifacts.count() == 2
    client.force_login(run.submission.created_by)
    assert f"--drawn {DRAWN_ROUNDS}" in client.get(run.submission.get_absolute_url()).content.decode()
    submit(fill(run).submission)
    assert Run.objects.get(pk=run.pk).rules["drawn_rounds"] == DRAWN_ROUNDS
    copied = services.copy_to_draft(run.submission, run.submission.created_by)
    assert copied.runs.get().rounds_to_draw == DRAWN_ROUNDS
    # Another index is drawn for by the new rule.
    other = other_index(files[ArtifactKind.TRANSCRIPT].parent, number=1)
    assert uploaded(again, ArtifactKind.TRANSCRIPT, other).rounds_to_draw == DRAWN_ROUNDS + 1


def test_whole_messages_are_compared_with_the_index_when_they_arrive(run, tmp_path):
    made = make_run(make_base(tmp_path / "small"), rounds=2)
    written = made.write(tmp_path / "written")
    index, right = (written[kind].read_bytes() for kind in (ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES))
    run = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    flipped = right[:-1] + bytes([right[-1] ^ 1])
    for wrong, found in ((right[:-1], f"{len(right) - 1} bytes"), (flipped, "")):
        problem = rejection(run, ArtifactKind.MESSAGES, wrong)
        assert (problem.code, problem.where) == (ErrorCode.TRANSCRIPT_MESSAGE, NAMES[ArtifactKind.MESSAGES])
        assert found in problem.found
    assert uploaded(run, ArtifactKind.MESSAGES, right).artifacts.count() == 2
    # An index of messages with another length removes them, and says so.
    assert removed_by(run, ArtifactKind.TRANSCRIPT, other_index(tmp_path, rounds=1)) == [
        NAMES[ArtifactKind.MESSAGES]
    ]
    run.refresh_from_db()
    assert [artifact.kind for artifact in run.artifacts.all()] == [ArtifactKind.TRANSCRIPT]


def test_the_page_shows_the_command_after_the_upload_of_a_large_index(client, run, index):
    client.force_login(run.submission.created_by)
    page = run.submission.get_absolute_url()
    assert "pfl replay open" not in client.get(page).content.decode()
    run = uploaded(run, ArtifactKind.TRANSCRIPT, index)
    assert f"pfl replay open . --challenge {run.challenge} --drawn 3" in strip_tags(client.get(page).text)
