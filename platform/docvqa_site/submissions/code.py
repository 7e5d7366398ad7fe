"""The description and the code of a method, which some tracks require: a link to a commit, or files of each run."""

import re
from urllib.parse import urlsplit

from django.db.models import QuerySet

from docvqa_site.submissions.models import Artifact, Run, Submission
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import ArtifactKind

CODE_KINDS = (ArtifactKind.SETTINGS, ArtifactKind.METHOD_FILE)
# A whole hash anywhere in a link, or the beginning of one where hosts of code have it.
COMMIT = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])|/(?:commits?|tree|blob|raw|archive|src)/[0-9a-f]{7,40}(?=[/.]|$)"
)
# Their addresses name one version, too.
ARCHIVES = ("doi.org", "archive.softwareheritage.org")


def names_commit(link: str) -> bool:
    """Return whether a link leads to one version of code: a commit, or an archived one."""
    parts = urlsplit(link)
    return parts.hostname in ARCHIVES or bool(COMMIT.search(f"{parts.path}?{parts.query}".rstrip("?/")))


def code_files(submission: Submission) -> QuerySet[Artifact]:
    """Return the settings and method files of the submission's runs, in the order of the runs."""
    found = submission.artifacts.filter(kind__in=CODE_KINDS).select_related("run", "upload")
    return found.order_by("run__budget", "kind")


def needs_code(submission: Submission) -> bool:
    """Return whether the track requires a description and code of it, which practice needs not."""
    return submission.track.requires_code and not submission.practice


def missing_description(submission: Submission) -> Problem | None:
    """Return the problem of a submission without a description, where its track requires one for a rank."""
    if not needs_code(submission) or submission.description.strip():
        return None
    return Problem.of(
        ErrorCode.SUBMISSION_INCOMPLETE,
        message="The description of the method is missing.",
        expected="what the method does and how it protects the providers",
        next_step="Edit the draft's description, or use `pfl submit --description`.",
    )


def missing_code(submission: Submission) -> Problem | None:
    """Return the problem of a submission without code, where its track requires code for a rank."""
    if not needs_code(submission) or names_commit(submission.code_url):
        return None
    if submission.runs.exists() and not runs_without_code(submission):
        return None
    return Problem.of(
        ErrorCode.SUBMISSION_INCOMPLETE,
        message="The code of the method is missing.",
        expected="a link to a commit, or settings.yaml or the method's file attached to every run",
        found=submission.code_url or "no link",
        next_step="Attach the files, or link to a commit: on the draft's page, under “Edit the description”, or with "
        "`pfl submit --code-url https://…/commit/…`.",
    )


def runs_without_code(submission: Submission) -> list[Run]:
    """Return the runs that have neither settings nor a method file."""
    with_files = set(code_files(submission).values_list("run", flat=True))
    return [run for run in submission.runs.all() if run.pk not in with_files]
