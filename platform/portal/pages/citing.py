"""How a method is cited: by its team, and by those members who show an ORCID iD that is verified."""

from collections.abc import Iterable
from uuid import UUID

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.accounts.orcid import address_of
from portal.submissions.models import Submission
from portal.submissions.views import shown_submission
from portal.teams.selectors import researchers
from portal.ui.bibtex import entry, in_latex


def cited_people(submission: Submission) -> list[User]:
    """Return the members of the submission's team who show their iDs; nobody while the team is anonymous."""
    return [] if submission.anonymous else researchers(submission.team)


def bibtex(submission: Submission, people: Iterable[User]) -> str:
    """Return the entry of a submission, whose members `people` show their iDs. Its key stays when it is renamed."""
    made = submission.submitted_at or submission.created_at
    fields = {
        "title": f"{{{in_latex(submission.title)}}}",
        "author": f"{{{in_latex(submission.author)}}}",
        "year": str(made.year),
        "howpublished": f"PFL-DocVQA benchmark, {in_latex(submission.track.name)}",
        "url": settings.SITE_URL + submission.get_absolute_url(),
    }
    if named := _verified(people):
        notes = (f"{in_latex(user.name)}, {address_of(user.orcid)}" for user in named)
        fields["note"] = f"ORCID: {'; '.join(notes)}"
    return entry(f"pfl-docvqa-{str(submission.pk)[:8]}", fields)


@require_safe
def bibtex_file(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    submission = shown_submission(request, submission_id)
    return HttpResponse(
        bibtex(submission, cited_people(submission)) + "\n",
        content_type="application/x-bibtex; charset=utf-8",
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
        "date-released": made.date(),
        "url": settings.SITE_URL + submission.get_absolute_url(),
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _verified(people: Iterable[User]) -> list[User]:
    return [user for user in people if user.orcid_verified]


@require_safe
def citation_file(request: HttpRequest, submission_id: UUID) -> HttpResponse:
    submission = shown_submission(request, submission_id)
    return HttpResponse(citation(submission), content_type="application/yaml; charset=utf-8")
