"""The problems that prevent a draft from being submitted, which its page lists and `submit` raises."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from docvqa_site.challenge.models import Track
from docvqa_site.challenge.registering import registration_problems
from docvqa_site.submissions.code import missing_code, missing_description, runs_without_code
from docvqa_site.submissions.draft_files import place_of_file
from docvqa_site.submissions.duplicates import duplicates_in
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.submissions.proof_versions import MAX_GAPS, proof_problems
from docvqa_site.submissions.publication import visibility_problems
from docvqa_site.submissions.selectors import quota_of
from docvqa_site.ui.budgets import at_budget, plain
from docvqa_site.uploads.models import UploadState
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.gaps import gaps_in
from evaluator.messages.jobs import ArtifactKind

# The ids of the parts of a draft's page.
DESCRIPTION, FILES = "describe", "files"


@dataclass(frozen=True)
class ToDo:
    """A problem of a draft, and the id of the part of its page where the team solves it; empty if there is none."""

    problem: Problem
    place: str = ""

    @property
    def advice(self) -> str:
        """What to do; empty for a missing file, since its place takes it."""
        return "" if self.problem.code == ErrorCode.ARTIFACT_MISSING else self.problem.next_step


def problems_of(submission: Submission, now: datetime) -> list[Problem]:
    """Return everything that is missing or wrong. Certain only under the locks that `submit` takes."""
    return [one.problem for one in to_dos_of(submission, now)]


def to_dos_of(submission: Submission, now: datetime) -> list[ToDo]:
    """Return everything that is missing or wrong, with its place on the draft's page."""
    return [
        *map(ToDo, _closed(submission.track, now)),
        *map(ToDo, registration_problems(submission.team, submission.track)),
        *map(ToDo, _visibility(submission, now)),
        *_missing(submission),
        *_not_described(submission),
        *_unfit_to_read(submission),
        *(ToDo(problem, FILES) for problem in duplicates_in(submission)),
        *map(ToDo, _over_quota(submission, now)),
    ]


def no_such_budget(track: Track, budget: float | None) -> ProblemError:
    """Return the error for a budget that the track has no board for."""
    return ProblemError.of(
        ErrorCode.SUBMISSION_BUDGET,
        expected=" or ".join(map(_budget, track.run_budgets())),
        found=_budget(budget),
    )


def _budget(budget: float | None) -> str:
    return at_budget(budget, "ε = {}", plain) or "no budget"


def _closed(track: Track, now: datetime) -> list[Problem]:
    if not (reason := track.closed_because(now)):
        return []
    message = f"The track is not accepting submissions right now. {reason}"
    return [Problem.of(ErrorCode.TRACK_CLOSED, message=message)]


def _visibility(submission: Submission, now: datetime) -> list[Problem]:
    phase = submission.track.phase_at(now)
    return visibility_problems(submission, phase) if phase else []


def _not_described(submission: Submission) -> list[ToDo]:
    found = []
    if problem := missing_description(submission):
        found.append(ToDo(problem, DESCRIPTION))
    if problem := missing_code(submission):
        run = next(iter(runs_without_code(submission)), None)
        found.append(ToDo(problem, place_of_file(run, ArtifactKind.SETTINGS) if run else DESCRIPTION))
    return found


def description_gaps(submission: Submission) -> list[Problem]:
    """Return the first gaps that the team has left in the description; none for practice, which nobody reads."""
    if submission.practice:
        return []
    return list(islice(gaps_in(submission.description, "description", then="save the description"), MAX_GAPS))


def _unfit_to_read(submission: Submission) -> list[ToDo]:
    """Return gaps that the team has left, and why reviewers couldn't see the proof.

    Nobody reads a practice submission.
    """
    if submission.practice:
        return []
    proof, place = submission.proof(), place_of_file(None, ArtifactKind.PRIVACY_PROOF)
    return [
        *(ToDo(problem, DESCRIPTION) for problem in description_gaps(submission)),
        *(ToDo(problem, place) for problem in (proof_problems(proof.upload) if proof else ())),
    ]


def _missing(submission: Submission) -> list[ToDo]:
    track, runs = submission.track, list(submission.runs.all())
    no_runs = ProblemError.of(
        ErrorCode.SUBMISSION_INCOMPLETE, message=_add_a_run(track), expected="at least one run", found="none"
    ).problems
    stored = submission.artifacts.filter(upload__state=UploadState.COMPLETED)
    present = set(stored.values_list("run", "kind"))
    roles: list[tuple[Run | None, ArtifactKind]] = [(None, kind) for kind in submission.required_proofs]
    roles += [(run, kind) for run in runs for kind in track.kind.run_artifacts]
    missing = [
        ToDo(
            Problem.of(
                ErrorCode.ARTIFACT_MISSING,
                message=f"The {kind.replace('_', ' ')} is missing.",
                where=run.label if run else "for all runs",
            ),
            place_of_file(run, kind),
        )
        for run, kind in roles
        if (run and run.pk, kind) not in present
    ]
    unknown = [
        ToDo(no_such_budget(track, run.budget).problem)
        for run in runs
        if run.budget not in track.run_budgets()
    ]
    return [*([] if runs else (ToDo(problem, FILES) for problem in no_runs)), *missing, *unknown]


def _add_a_run(track: Track) -> str:
    """Return what to do about a submission without a run."""
    budgets = list(filter(None, track.board_names()))
    choices = " or ".join([", ".join(budgets[:-1]), budgets[-1]] if len(budgets) > 1 else budgets)
    return f"Add at least one run (ε = {choices})." if choices else "Add a run."


def _over_quota(submission: Submission, now: datetime) -> list[Problem]:
    quota = quota_of(submission.team, submission.track, now, practice=submission.practice)
    if quota.next_slot is None:
        return []
    return ProblemError.of(
        ErrorCode.SUBMISSION_QUOTA,
        expected=f"at most {quota.limit} {'practice ' if submission.practice else ''}submissions in 24 hours",
        next_step=f"The next slot is free on {quota.next_slot:%B %-d at %H:%M} UTC. Submissions that fail "
        "because of a platform fault don't count.",
    ).problems
