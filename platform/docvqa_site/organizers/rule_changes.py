"""Changes of what a track's evaluator applies and of its texts: what each would do, in sentences.

Submitted runs keep the rules of the time of their submission, so these change nothing that is on a board. What they
mean is for teams that have trained by the old rules and not submitted yet, and for comparing runs of both.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import unified_diff
from typing import Any

from django.db.models import Q
from django.template.defaultfilters import pluralize

from docvqa_site.challenge.models import (
    ACCOUNTANTS,
    ADJACENCIES,
    FIRST_DOWNLOADS,
    SAMPLING_RULES,
    Registration,
    RegistrationState,
    Track,
)
from docvqa_site.evaluation.models import TestSet
from docvqa_site.sizes import exact_size
from docvqa_site.submissions.models import (
    Artifact,
    IndexChallenge,
    Run,
    RunState,
    RunToken,
    Submission,
    SubmissionState,
)
from docvqa_site.submissions.quota import WINDOW
from docvqa_site.ui.rounding import power_of_ten

# The rules that the evaluator applies, and the texts, with their public names.
EVALUATED = {
    "reference": "Base weights",
    "trainable": "Trainable parameters",
    "test_set": "Test set",
    "clients": "Clients",
    "max_rounds": "Maximum rounds",
    "first_download": "First download",
    "max_checkpoint_bytes": "Maximum checkpoint size",
    "delta": "δ",
    "sampling_rule": "Sampling rule",
    "accountant": "Accountant",
    "adjacency": "Adjacency",
    "providers_per_client": "Training providers per client",
    "drawn_rounds": "Random rounds recomputed",
    "challenges_per_day": "Challenges per team in 24 hours",
}
TEXTS = {
    "summary": "Summary",
    "description": "Rules text",
    "registration_questions": "Registration questions",
}
REGISTRATION = {"registration": "Before a team may submit"}
# What teams accept when they submit from then on.
LICENSE = {"submission_license": "License of submissions"}
# What a submission must have from then on.
CODE = {"requires_code": "Description and code required"}
# By what leakage is measured from then on; no rank depends on it.
LEAKAGE = {"leakage_set": "Leakage set", "leakage_split": "Split of the leakage set"}
NAMES = {**TEXTS, **REGISTRATION, **LICENSE, **CODE, **EVALUATED, **LEAKAGE}
CHOICES: Mapping[str, Mapping[Any, str]] = {
    "registration": dict(Registration.choices),
    "first_download": dict(FIRST_DOWNLOADS),
    "sampling_rule": dict(SAMPLING_RULES),
    "accountant": dict(ACCOUNTANTS),
    "adjacency": dict(ADJACENCIES),
}
ACCOUNTED = ("delta", "sampling_rule", "accountant", "adjacency")
# What a training aims at, before its files are uploaded.
TRAINED_FOR = ("reference", "trainable", "clients", "max_rounds", "providers_per_client", *ACCOUNTED)


def named(name: str, value: Any) -> object:
    """Return the value of such a rule as a public note has it."""
    match name:
        case "delta":
            return power_of_ten(value)
        case "submission_license" | "leakage_set":
            return value or "none"
        case "max_checkpoint_bytes":
            return exact_size(value)
        case "trainable":
            return ", ".join(value.split()) or "all"
        case "providers_per_client":
            return value or "not checked"
        case _:
            return CHOICES[name][value] if name in CHOICES else value


def text_difference(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """Return the lines of each text that were removed and added, with those around them; empty if none changes."""
    return "\n\n".join(
        "\n".join([f"{TEXTS[name]}:", *_changed_lines(old, new)])
        for name, (old, new) in changes.items()
        if name in TEXTS
    )


def _changed_lines(old: str, new: str) -> list[str]:
    """Return the lines that differ as programs show them, without the names of files and the numbers of lines."""
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[3:]
    return ["…" if line.startswith("@@ ") else line for line in lines]


def text_note(name: str, old: str, new: str) -> str:
    """Return the public note about a text that changes."""
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:]
    counts = {
        done: sum(line.startswith(sign) for line in lines)
        for done, sign in (("added", "+"), ("removed", "-"))
    }
    found = [f"{count} line{pluralize(count)} {done}" for done, count in counts.items() if count]
    return f"{TEXTS[name]}: {', '.join(found)}."


def sentences(track: Track, changes: Mapping[str, tuple[Any, Any]], now: datetime) -> Iterable[str]:
    """Yield what the changes mean for what was submitted, for drafts and trainings, and for the workers."""
    if changes.keys() & EVALUATED.keys():
        yield from _of_runs(track, changes)
    if changes.keys() & set(TRAINED_FOR):
        yield from _of_trainings(track)
    if "registration" in changes:
        yield from _of_registration(track, changes["registration"][1])
    if "submission_license" in changes:
        yield "Submissions keep the license that their teams accepted; new ones get this one."
    if "requires_code" in changes:
        yield (
            "Drafts without a description and code can't be submitted; what was submitted stays."
            if changes["requires_code"][1]
            else "Drafts can be submitted without a description or code."
        )
    if changes.keys() & LEAKAGE.keys():
        yield (
            "Leakage that was measured stays. Runs that are scored from now on are measured by the new choice; ranks "
            "don't depend on it."
        )
    if "test_set" in changes:
        new = changes["test_set"][1]
        if not TestSet.objects.filter(name=new).exists():
            yield f"No run has been scored on {new} yet: make sure that every worker has test_sets/{new}."
    if "reference" in changes:
        yield f"Every worker needs references/{changes['reference'][1]}, and the Data page should offer it."
    if "challenges_per_day" in changes:
        yield from _of_challenges(track, changes["challenges_per_day"], now)


def _of_runs(track: Track, changes: Mapping[str, Any]) -> Iterable[str]:
    runs = Run.objects.filter(submission__track=track)
    made = runs.filter(submission__state=SubmissionState.SUBMITTED)
    scored, pending = made.exclude(scored_at=None).count(), made.filter(scored_at=None)
    waiting = pending.filter(state__in=[RunState.QUEUED, RunState.RUNNING]).count()
    kinds = {
        f"{scored} scored run{pluralize(scored)}": scored,
        f"{waiting} run{pluralize(waiting)} in evaluation": waiting,
    }
    if found := [words for words, count in kinds.items() if count]:
        yield (
            f"{' and '.join(found)} will keep the rules under which they were submitted, even if they are re-evaluated."
        )
    if scored and "test_set" in changes:
        yield "Their scores stay on the boards, next to scores on the new test set."
    if scored and changes.keys() & set(ACCOUNTED):
        yield "Their ε stays on the boards, next to ε under the new rules."
    if scored and "first_download" in changes:
        yield "Their bytes stay on the boards, next to bytes under the new rule."


def _of_trainings(track: Track) -> Iterable[str]:
    found = Submission.objects.filter(track=track, state=SubmissionState.DRAFT)
    filled = Artifact.objects.filter(submission__in=found).values("submission").distinct().count()
    files = (
        f"; {filled} already {pluralize(filled, 'has,have')} files, which may be rejected" if filled else ""
    )
    if drafts := found.count():
        yield f"{drafts} draft{pluralize(drafts)} will be evaluated under the new rules{files}."
    if tokens := RunToken.objects.filter(track=track, record_sha256="").count():
        yield f"{tokens} unused run token{pluralize(tokens)} may belong to training runs under the old rules."


def _of_registration(track: Track, new: str) -> Iterable[str]:
    """Yield whom the admission of teams keeps from submitting, or no longer does."""
    waiting = track.registrations.filter(state=RegistrationState.WAITING).count()
    if new == Registration.NONE:
        yield "Every team can submit, whether it has registered or not, unless it was declined."
        return
    drafts = Submission.objects.filter(track=track, state=SubmissionState.DRAFT)
    admitted = track.registrations.filter(state=RegistrationState.ADMITTED)
    teams = drafts.exclude(team__in=admitted.values("team")).values("team").distinct().count()
    admission = " and is admitted" if new == Registration.APPROVAL else ""
    if teams:
        yield (
            f"{teams} team{pluralize(teams)} with a draft can't submit it, or get a run token, until the team "
            f"registers{admission}."
        )
    if waiting:
        yield f"{waiting} team{pluralize(waiting)} still wait{pluralize(waiting, 's,')} for an organizer to admit it."


def _of_challenges(track: Track, limits: tuple[int, int], now: datetime) -> Iterable[str]:
    recent = Q(track=track, challenged_at__gt=now - WINDOW)
    drawn = (
        model.objects.filter(recent).values_list("team", flat=True) for model in (RunToken, IndexChallenge)
    )
    teams = [team for of_model in drawn for team in of_model]
    over = sum(teams.count(team) >= limits[1] for team in set(teams))
    if over:
        yield f"{over} team{pluralize(over)} couldn't get another challenge now."
