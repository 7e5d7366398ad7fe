"""Drafts that are ready to be submitted, for the tests to change."""

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.submissions.required import SUFFIXES
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_challenge,
    make_run,
    make_submission,
    make_track,
    numbers,
)


def fill(run, leave_out=()):
    """Give the run every file that its track asks for, each with content of its own."""
    if run.submission.track.kind.is_accounted:
        run.challenge = make_challenge()
        run.save()
    for kind in run.submission.track.kind.run_artifacts:
        if kind not in leave_out:
            make_artifact(run, kind, f"content {next(numbers)}".encode(), kind + SUFFIXES[kind][0])
    return run


def make_complete_draft(team=None, track=None, **fields):
    """One run, or in a privacy track two of them and the proof."""
    submission = make_submission(team, track, **fields)
    if not submission.track.kind.needs_proof:
        fill(make_run(submission))
        return submission
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
    for budget in (1.0, 8.0):
        fill(make_run(submission, budget=budget))
    return submission


def make_private_track(**fields):
    return make_track(BEST_ANLS_AT_BUDGET, **fields)
