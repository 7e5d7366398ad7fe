"""What was judged of a run holds for its files: whichever run has the same checkpoint or training record has no rank.

Otherwise a team could withdraw a run that was disqualified, or that failed an examination, and submit its files again.
A run token belongs to one training record, so the record's SHA-256 stands for the token too. What was judged holds in
the track, for every team, until organizers lift the disqualification or the run passes another examination.

A rejected proof can be revised, so its run may be submitted again; the rank is then withheld until a reviewer accepts.
"""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import UNACCEPTED_REVISION, Artifact, Run, Submission
from evaluator.messages.jobs import ArtifactKind, TrustLevel

JUDGED_KINDS = (ArtifactKind.CHECKPOINT, ArtifactKind.TRAINING_RECORD)
MAX_REASON = 300


def taken_off(of: str = "") -> Q:
    """Return the condition of what takes a run off its board whatever its results, as a rejected proof does.

    `of` leads to the run from the rows of a query; it is empty where these are runs.
    """
    return ~Q(**{f"{of}disqualified_because": ""}) | Q(**{f"{of}failed_level__isnull": False})


def proof_withholds(of: str = "") -> Q:
    """Return the condition that the proof of a submission, to which `of` leads, withholds the rank.

    It is rejected, or a revision of one that was, which no reviewer has accepted yet.
    """
    unaccepted = Q(**{f"{of}{name}": value for name, value in UNACCEPTED_REVISION.items()})
    return Q(**{f"{of}proof_rejected": True}) | unaccepted


def repeats_rejected(submission: Submission) -> bool:
    """Return whether a file of the submission is that of another one whose proof withholds the rank."""
    own = submission.artifacts.filter(kind__in=JUDGED_KINDS).values("upload__sha256")
    others = Artifact.objects.filter(
        proof_withholds("submission__"),
        kind__in=JUDGED_KINDS,
        upload__sha256__in=own,
        submission__track=submission.track_id,
    )
    return others.exclude(submission=submission).exists()


def judged_files(track: Track, hashes: Collection[str]) -> QuerySet[Artifact]:
    """Return the checkpoints and records with one of these SHA-256 of runs that were taken off the track's boards."""
    found = Artifact.objects.filter(
        taken_off("run__"), kind__in=JUDGED_KINDS, upload__sha256__in=hashes, submission__track=track
    )
    return found.select_related("run", "upload")


def judged_hashes(run: Run) -> list[str]:
    """Return the SHA-256 of the run's files for which a judgment holds."""
    files = run.artifacts.filter(kind__in=JUDGED_KINDS)
    return list(files.values_list("upload__sha256", flat=True))


def judgment_in_words(run: Run, noun: str) -> str:
    """Return why another run with the same file, a `noun` such as "checkpoint", has no rank."""
    if run.disqualified_because:
        entries = AuditEntry.objects.filter(
            object_type="submissions.run", object_id=str(run.pk), action="run.disqualified"
        )
        at = entries.values_list("at", flat=True).first()
        on = f" on {at:%B %-d, %Y}" if at else ""
        text = f"the same {noun} was disqualified{on}: {run.disqualified_because}"
    else:
        level = TrustLevel(run.results.failed_level or TrustLevel.REPLAYED)
        text = f"the same {noun} failed the {level.examination}: {run.results.failed_because}"
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"
