"""How the tests submit, and upload a file for a draft."""

import pytest

from docvqa_site.submissions import services
from evaluator.errors import ProblemError
from tests.docvqa_site.submissions.contents import checkpoint
from tests.docvqa_site.uploads.sending import sha

CHECKPOINT = checkpoint()


def codes(submission, now=None):
    """The codes with which the submission is rejected."""
    with pytest.raises(ProblemError) as error:
        services.submit(submission, submission.created_by, now)
    return [str(problem.code) for problem in error.value.problems]


def submit(submission, now=None):
    services.submit(submission, submission.created_by, now)
    submission.refresh_from_db()


def rejected(code):
    return pytest.raises(ProblemError, match=f"^{code}:")


def start_upload(submission, run, kind, content=CHECKPOINT, filename=None, size_bytes=None):
    suffix = {"checkpoint": "safetensors", "communication_log": "csv", "training_record": "jsonl"}.get(
        kind, "md"
    )
    return services.start_upload(
        submission,
        run,
        kind,
        submission.created_by,
        filename=filename or f"file.{suffix}",
        size_bytes=len(content) if size_bytes is None else size_bytes,
        sha256=sha(content),
    )
