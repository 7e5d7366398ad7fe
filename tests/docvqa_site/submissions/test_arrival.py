"""What is checked of a file when it arrives, and what happens to one that is rejected."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from docvqa_site.challenge.references import WEIGHTS
from docvqa_site.submissions import arrival, services
from docvqa_site.submissions.models import Artifact
from docvqa_site.uploads.models import UploadState
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.file_api import HEAD_BYTES
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_token, make_upload
from tests.docvqa_site.submissions.contents import LOG, checkpoint
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.submissions.records import annex_for, record_of
from tests.evaluator.folding import made_runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run()


@pytest.fixture
def private_run():
    return make_run(make_submission(make_team(), make_private_track()), budget=1.0)


@pytest.fixture
def references(settings, tmp_path):
    """The base weights of every track: one tensor of seven bytes."""
    settings.REFERENCES_FOLDER = tmp_path / "references"
    folder = settings.REFERENCES_FOLDER / "vt5-tiny"
    folder.mkdir(parents=True)
    (folder / WEIGHTS).write_bytes(checkpoint(bytes(7)))


def arrive(run, kind, content, filename="file.bin"):
    upload = make_upload(run.submission.team, content, filename)
    of_run = None if kind is ArtifactKind.PRIVACY_PROOF else run
    Artifact.pending.create(submission=run.submission, run=of_run, kind=kind, upload=upload)
    return services.finish_upload(upload, run.submission.created_by)


def problems(run, kind, content, filename="file.bin"):
    with pytest.raises(ProblemError) as error:
        arrive(run, kind, content, filename)
    return [(problem.code, problem.where) for problem in error.value.problems]


class TestCheckpoint:
    def test_the_names_and_shapes_of_the_base_weights_are_accepted(self, run, references):
        assert arrive(run, ArtifactKind.CHECKPOINT, checkpoint()).run == run

    def test_every_tensor_that_is_unlike_the_base_weights_is_named(self, run, references):
        assert problems(run, ArtifactKind.CHECKPOINT, checkpoint(b"four")) == [
            (ErrorCode.CHECKPOINT_SHAPE, "tensor x")
        ]
        assert problems(run, ArtifactKind.CHECKPOINT, checkpoint(name="y")) == [
            (ErrorCode.CHECKPOINT_MISSING_TENSOR, "tensor x"),
            (ErrorCode.CHECKPOINT_EXTRA_TENSOR, "tensor y"),
        ]

    def test_without_base_weights_the_header_is_checked_alone(self, run):
        arrive(run, ArtifactKind.CHECKPOINT, checkpoint(name="whatever"))
        assert (
            problems(run, ArtifactKind.CHECKPOINT, b"\x80\x02 a pickle")[0][0] == ErrorCode.CHECKPOINT_FORMAT
        )

    def test_a_file_that_ends_early_is_rejected(self, run):
        assert problems(run, ArtifactKind.CHECKPOINT, checkpoint()[:-1])[0][0] == ErrorCode.CHECKPOINT_OFFSETS

    def test_no_more_than_a_header_is_read(self, run, monkeypatch):
        monkeypatch.setattr(arrival, "MAX_HEADER_BYTES", 20)
        header = (2**20).to_bytes(8, "little") + b"{" + b" " * 2**20
        upload = make_upload(run.submission.team, header)
        Artifact.pending.create(submission=run.submission, run=run, kind="checkpoint", upload=upload)
        found = arrival.arrival_of(upload)
        assert found is not None
        assert len(found.head) == arrival.PREFIX_BYTES


class TestLog:
    def test_its_columns_and_rows_are_checked(self, run):
        arrive(run, ArtifactKind.COMMUNICATION_LOG, LOG)
        assert problems(run, ArtifactKind.COMMUNICATION_LOG, b"round,bytes\n1,2\n") == [
            (ErrorCode.LOG_COLUMNS, "line 1")
        ]
        assert problems(run, ArtifactKind.COMMUNICATION_LOG, LOG + b"1,-1,99,5\n") == [
            (ErrorCode.LOG_PARTY, "line 3")
        ]

    def test_of_a_long_one_the_whole_lines_at_the_beginning_are_read(self, run, monkeypatch):
        monkeypatch.setitem(arrival.HEAD_BYTES, ArtifactKind.COMMUNICATION_LOG, len(LOG) + 3)
        arrive(run, ArtifactKind.COMMUNICATION_LOG, LOG + b"2,-1,0,5\nlater nonsense")


class TestRecord:
    @pytest.fixture
    def token(self, private_run):
        return make_token(private_run.submission.team, private_run.submission.track).token

    def test_one_that_a_key_of_the_team_signed_is_accepted(self, private_run, token):
        arrive(private_run, ArtifactKind.TRAINING_RECORD, record_of(token))

    def test_the_key_must_be_the_teams(self, private_run, token):
        record = record_of(token, key=Ed25519PrivateKey.generate())
        assert problems(private_run, ArtifactKind.TRAINING_RECORD, record) == [
            (ErrorCode.RECORD_KEY, "public_key")
        ]

    def test_a_changed_line_is_named(self, private_run, token):
        record = record_of(token).replace(b'"bytes_up":0', b'"bytes_up":1')
        assert problems(private_run, ArtifactKind.TRAINING_RECORD, record) == [
            (ErrorCode.RECORD_CHAIN, "line 2, h")
        ]

    def test_of_a_very_long_one_the_first_line_is_read(self, private_run, token, monkeypatch):
        record = record_of(token)
        monkeypatch.setitem(arrival.HEAD_BYTES, ArtifactKind.TRAINING_RECORD, len(record) - 1)
        arrive(private_run, ArtifactKind.TRAINING_RECORD, record)


def test_a_proof_that_is_no_pdf_is_rejected(private_run):
    arrive(private_run, ArtifactKind.PRIVACY_PROOF, b"%PDF-1.7 ...", "proof.pdf")
    assert problems(private_run, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.pdf") == [
        (ErrorCode.ARTIFACT_KIND, "proof.pdf")
    ]
    with pytest.raises(ProblemError, match=r"rename a Markdown file to \.md"):
        arrive(private_run, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.pdf")


def test_a_codec_that_is_no_text_is_rejected(run):
    arrive(run, ArtifactKind.CODEC_FILE, b"import numpy\n", "transcript_codec.py")
    for content in (b"\x80\x04 a pickle", b"text\0"):
        assert problems(run, ArtifactKind.CODEC_FILE, content, "transcript_codec.py") == [
            (ErrorCode.ARTIFACT_KIND, "transcript_codec.py")
        ]


def test_the_index_of_messages_is_read_when_it_arrives(run, tmp_path):
    made = made_runs.make_run(made_runs.make_base(tmp_path / "base")).write(tmp_path / "run")
    index = made[ArtifactKind.TRANSCRIPT].read_bytes()
    arrive(run, ArtifactKind.TRANSCRIPT, index, "transcript.jsonl")
    without_end = b"".join(index.splitlines(True)[:-1])
    for content in (without_end, b"federated_round\n"):
        ((code, _),) = problems(run, ArtifactKind.TRANSCRIPT, content, "transcript.jsonl")
        assert code == ErrorCode.TRANSCRIPT_FORMAT


class TestBeginning:
    """What the site says of a file's first bytes, before it has the file."""

    def found(self, run, kind, head, size_bytes=None, filename="model.safetensors"):
        size_bytes = len(head) if size_bytes is None else size_bytes
        try:
            services.check_head(
                run.submission, run, kind, filename=filename, size_bytes=size_bytes, head=head
            )
        except ProblemError as error:
            return [(problem.code, problem.where) for problem in error.problems]
        return []

    def test_a_checkpoint_of_another_shape_is_rejected_by_its_header(self, run, references):
        wrong = checkpoint(bytes(600_000))
        head = wrong[:HEAD_BYTES]
        assert self.found(run, "checkpoint", head, len(wrong)) == [(ErrorCode.CHECKPOINT_SHAPE, "tensor x")]
        assert self.found(run, "checkpoint", checkpoint()) == []

    def test_a_header_that_is_longer_than_the_beginning_is_left_for_later(self, run):
        header = (2**20).to_bytes(8, "little") + b"{" + b" " * 1000
        assert self.found(run, "checkpoint", header, 2**21) == []

    def test_the_first_rows_of_a_log_decide(self, run):
        rows = LOG + b"1,-1,99,5\n" + b"1,-1,0,5\n" * 1000
        assert self.found(run, "communication_log", rows[:500], len(rows), "log.csv") == [
            (ErrorCode.LOG_PARTY, "line 3")
        ]

    def test_an_annex_must_answer_the_challenge(self, private_run):
        private_run.challenge = "cd" * 32
        annex = annex_for("ab" * 32)
        assert self.found(private_run, "training_annex", annex, filename="annex.jsonl") == [
            (ErrorCode.RECORD_CHALLENGE, "line 1, challenge")
        ]

    def test_files_of_counted_bytes_have_limits_and_places_where_bytes_can_be_counted(self, run, private_run):
        sizes = {"transcript": 4 * 2**20, "messages": 12_001 * 10**6, "codec_file": 64_000}
        names = {"transcript": "transcript.jsonl", "messages": "messages.bin", "codec_file": "codec.py"}
        for kind, size in sizes.items():
            assert self.found(run, kind, b"", size, names[kind]) == []
            assert self.found(run, kind, b"", size + 1, names[kind]) == [
                (ErrorCode.ARTIFACT_SIZE, names[kind])
            ]
            assert self.found(private_run, kind, b"", size, names[kind]) == [
                (ErrorCode.ARTIFACT_KIND, "a run")
            ]

    def test_without_its_beginning_name_and_size_are_checked(self, run):
        assert self.found(run, "checkpoint", b"", 100) == []
        assert self.found(run, "checkpoint", b"", 100, "model.pt") == [(ErrorCode.ARTIFACT_KIND, "model.pt")]


def test_a_rejected_file_is_removed_and_the_one_before_stays(run, django_capture_on_commit_callbacks):
    first = arrive(run, ArtifactKind.COMMUNICATION_LOG, LOG)
    with django_capture_on_commit_callbacks(execute=True):
        problems(run, ArtifactKind.COMMUNICATION_LOG, b"round,bytes\n")
    assert [artifact.pk for artifact in run.artifacts.all()] == [first.pk]
    rejected = run.submission.team.uploads.exclude(pk=first.upload_id).get()
    assert (rejected.state, rejected.removed_at is None) == (UploadState.ABORTED, False)
    assert not Artifact.pending.exists()


def test_an_annex_for_another_challenge_is_not_kept(private_run):
    assert problems(private_run, ArtifactKind.TRAINING_ANNEX, annex_for("5" * 64))[0][0] == (
        ErrorCode.RECORD_CHALLENGE
    )
    assert not private_run.submission.team.uploads.exclude(state=UploadState.ABORTED).exists()


@pytest.mark.parametrize(("kind", "words"), [("settings", "settings file"), ("method_file", "method file")])
def test_a_wrong_type_is_named_by_the_place_of_the_file(private_run, kind, words):
    with pytest.raises(ProblemError, match=f"This file type isn't accepted as the {words}"):
        services.check_head(
            private_run.submission, private_run, kind, filename="x.zip", size_bytes=1, head=b"x"
        )
