"""The page on which a team appeals against a disqualification, and reads the answer."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.reviews.forms import AppealForm
from docvqa_site.reviews.run_appeals import appeal, may_appeal
from docvqa_site.reviews.threads import is_of_team
from docvqa_site.submissions.models import Run


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def run_appeal(request: UserRequest, run_id: UUID) -> HttpResponse:
    """Show the reason, take the appeal and show the answer. Other teams and runs never disqualified get 404."""
    run = get_object_or_404(Run.objects.select_related("submission__team", "submission__track"), pk=run_id)
    appeals = list(run.appeals.all())
    if not is_of_team(run.submission, request.user) or not (run.disqualified_because or appeals):
        raise Http404
    form = AppealForm(request.POST or None, label="Why the disqualification is wrong")
    if form.is_valid():
        try:
            appeal(run, form.cleaned_data["text"], author=request.user)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, "Your appeal has been filed. An organizer will look at the run again.")
            return redirect("reviews:run_appeal", run.pk)
    context = {
        "run": run,
        "submission": run.submission,
        "appeals": appeals,
        "may_appeal": may_appeal(run),
        "form": form,
    }
    return render(request, "reviews/run_appeal.html", context, status=422 if form.is_bound else 200)
