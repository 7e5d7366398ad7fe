"""How a method is cited: by its team, members who show a verified ORCID iD, and what was measured when."""

from collections.abc import Iterable
from uuid import UUID

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.timezone import localdate
from django.views.decorators.http import require_safe

from docvqa_site.accounts.models import User
from docvqa_site.accounts.orcid import address_of
from docvqa_site.evaluation.display.results import shortfall
from docvqa_site.evaluation.models import StepReport
from docvqa_site.pages.file_names import stem_of
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.submissions.views import shown_submission
from docvqa_site.teams.selectors import researchers
from docvqa_site.ui.bibtex import entry, in_latex
from docvqa_site.ui.budgets import at_budget, plain
from docvqa_site.ui.rounding import epsilon_text
from docvqa_site.ui.templatetags.ui import score, score_interval
from evaluator.messages.results import RunResults


def cited_people(submission: Submission) -> list[User]:
    """Return the members of the submission's team who show their iDs; nobody while the team is anonymous."""
    return [] if submission.anonymous else researchers(submission.team)


def entries(submission: Submission, people: Iterable[User]) -> list[tuple[str, str]]:
    """Return an entry for each scored run, after the name of its board, or one for all of a submission with fewer."""
    scored = [run for run in submission.runs.all() if run.scored_at]
    named, evaluator = list(people), evaluated_by(submission)
    if len(scored) < 2:
        return [("", bibtex(submission, named, evaluator))]
    return [(at_budget(run.budget, "{}"), bibtex(submission, named, evaluator, run)) for run in scored]


def bibtex(submission: Submission, people: Iterable[User], evaluator: str, run: Run | None = None) -> str:
    """Return the entry of a submission, whose members `people` show their iDs. Its key stays when it is renamed.

    `evaluator` is what `evaluated_by` returns.
    That of one `run` at a budget leads to its page of evidence, which an anonymous team's run hasn't, and has its
    values alone.
    """
    made = submission.submitted_at or submission.created_at
    # The only run of a board without a budget is all that its submission has: one key, one address.
    of_run = at_budget(run.budget, "-epsilon-{}", plain) if run else ""
    run = run if of_run else None
    named = [f"{user.name}, {address_of(user.orcid)}" for user in _verified(people)]
    values = measured(submission, run)
    notes = [*values, f"ORCID: {'; '.join(named)}"] if named else values
    address = submission.get_absolute_url()
    if run:
        evidence = reverse("submissions:run", args=[submission.pk, run.pk])
        address = f"{address}#run-{run.pk}" if submission.anonymous else evidence
    fields = {
        "title": f"{{{in_latex(submission.title)}}}",
        "author": f"{{{in_latex(submission.author)}}}",
        "year": str(made.year),
        "howpublished": f"PFL-DocVQA benchmark, {in_latex(submission.track.name)}",
        "version": in_latex(evaluator),
        "url": settings.SITE_URL + address,
        "urldate": localdate().isoformat(),
        "note": in_latex(". ".join(notes)),
    }
    filled = {name: value for name, value in fields.items() if value}
    return entry(f"pfl-docvqa-{str(submission.pk)[:8]}{of_run}", filled)


def measured(submission: Submission, only: Run | None = None) -> list[str]:
    """Return what was measured of each scored run, on which test set, and the status of the results, in words that any
    LaTeX sets.
    """
    scored = [run for run in submission.runs.all() if run.scored_at and only in (None, run)]
    if not scored:
        return []
    verdict = verdict_on(submission)
    statuses = [verdict.status_of(shortfall(run)) for run in scored]
    differ = len(set(statuses)) > 1
    found = []
    for run, status in zip(scored, statuses, strict=True):
        results = run.results
        epsilon = "" if results.epsilon is None else f"recomputed epsilon {epsilon_text(results.epsilon)}"
        # The number of an anonymous team's trainings would connect its submissions, and so would their joint ε.
        joint = None if submission.anonymous else results.joint_epsilon
        size = (
            "" if results.bytes_total is None else f"{results.bytes_total:,} bytes ({results.counting_label})"
        )
        values = [
            f"ANLS {score(results.anls, results.decimals)}{_interval(results)}",
            epsilon,
            "" if joint is None else f"joint epsilon {epsilon_text(joint)}",
            size,
            results.trust_label and f"trust level {results.trust_label}",
            status if differ else "",
        ]
        found.append(at_budget(run.budget, "At epsilon = {}: ", plain) + ", ".join(filter(None, values)))
    # Of the rules under which the runs were scored, as a track's test set may change.
    test_sets = dict.fromkeys(run.rules["test_set"] for run in scored if run.rules)
    return [
        *found,
        *(f"Test set: {name}" for name in test_sets),
        *([] if differ else [f"Status: {statuses[0]}"]),
    ]


def _interval(results: RunResults) -> str:
    """Return the interval of a score in words that any LaTeX sets; empty where there is none."""
    if results.anls_low is None or results.anls_high is None:
        return ""
    text = score_interval(results.anls_low, results.anls_high, results.decimals).replace("–", " to ")
    return f" (95% interval {text})"


def evaluated_by(submission: Submission) -> str:
    """Return the version of the evaluator that scored the runs, or the versions; empty before there is a score."""
    reports = StepReport.objects.filter(evaluation__run__submission=submission).order_by("received_at")
    # A later report of a step replaces an earlier one.
    rows = reports.values_list("evaluation__run", "step", "provenance__evaluator_version")
    newest = {(run, step): version for run, step, version in rows if version}
    return f"evaluator {', '.join(sorted(set(newest.values())))}" if newest else ""


@require_safe
def bibtex_file(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    submission = shown_submission(request, submission_id)
    found = entries(submission, cited_people(submission))
    return HttpResponse(
        "\n".join(f"{entry}\n" for _, entry in found),
        content_type="application/x-bibtex; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{stem_of(submission)}.bib"'},
    )


def citation(submission: Submission) -> str:
    """Return the submission as a file in the Citation File Format, whose entities may have an ORCID iD."""
    made = submission.submitted_at or submission.created_at
    people = [
        {"name": user.name, "orcid": address_of(user.orcid)} for user in _verified(cited_people(submission))
    ]
    content = {
        "cff-version": "1.2.0",
        "message": "If you use this result, please cite it.",
        "type": "dataset",
        "title": f"{submission.title}, a result of the PFL-DocVQA benchmark, {submission.track.name}",
        "authors": [{"name": submission.author}, *people],
        "abstract": ". ".join(measured(submission)),
        "version": evaluated_by(submission),
        "date-released": made.date(),
        "url": settings.SITE_URL + submission.get_absolute_url(),
    }
    content = {name: value for name, value in content.items() if value}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _verified(people: Iterable[User]) -> list[User]:
    return [user for user in people if user.orcid_verified]


@require_safe
def citation_file(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    submission = shown_submission(request, submission_id)
    return HttpResponse(citation(submission), content_type="application/yaml; charset=utf-8")
