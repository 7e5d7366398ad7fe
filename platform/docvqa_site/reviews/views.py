"""The reviewers' queue."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.reviews.access import for_reviewers
from docvqa_site.reviews.queue import Part, conflicts_of, queue_of


@require_safe
@for_reviewers
def queue(request: UserRequest) -> HttpResponse:
    """Show a reviewer what needs their decision, what waits for others and what is accepted."""
    sections = queue_of(request.user)
    waiting = next(section.total for section in sections if section.part == Part.NEEDS_ME)
    context = {
        "sections": sections,
        "waiting_proofs": waiting,
        "conflicts": conflicts_of(request.user),
    }
    return render(request, "reviews/queue.html", context)
