"""The reviewers' queue."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from portal.accounts.requests import UserRequest
from portal.accounts.selectors import is_reviewer
from portal.reviews.queue import queue_of


@require_safe
@login_required
def queue(request: UserRequest) -> HttpResponse:
    """Show a reviewer what needs their decision, what waits for others and what is accepted."""
    if request.user.lacks_second_factor:
        messages.warning(request, "Reviewers log in with a second factor. Set one up, and the queue opens.")
        return redirect("mfa_index")
    if not is_reviewer(request.user):
        raise PermissionDenied
    return render(request, "reviews/queue.html", {"sections": queue_of(request.user)})
