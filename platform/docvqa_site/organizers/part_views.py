"""The scores on both parts of a test set, for organizers; and revealing the private one."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.evaluation.test_sets.parts import reveal
from docvqa_site.organizers.access import FORM, for_organizers
from docvqa_site.organizers.desk import split_test_sets
from docvqa_site.organizers.forms import RevealForm
from docvqa_site.organizers.parts import both_parts, mean_difference
from docvqa_site.reviews.selectors import judgeable_submissions
from docvqa_site.ui.paging import page_of

PAGE_LENGTH = 100


@for_organizers("challenge.change_track", "submissions.view_submission", methods=FORM)
def test_set(request: UserRequest, name: str) -> HttpResponseBase:
    """Show what revealing the private part does; a POST that carries what was shown reveals it."""
    found = next((one for one in split_test_sets(request.user) if one.name == name), None)
    if found is None:
        raise Http404("no such test set")
    parts, form = both_parts(found, timezone.now()), RevealForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if request.POST.get("seen") != parts.preview.digest:
            messages.warning(request, "The effect has changed in the meantime; please review it again.")
        elif problem := reveal(found, form.cleaned_data["reason"], actor=request.user):
            messages.error(request, problem)
        else:
            messages.success(
                request, "The private part has been revealed. The change is listed on the track pages."
            )
            return redirect("organizers:test_set", name)
    elif request.method == "POST":
        messages.error(
            request, "Nothing was revealed. Please confirm, and give a reason of at most 300 characters."
        )
    # What an organizer whose own team competes mustn't know.
    judged = set(judgeable_submissions(request.user).values_list("pk", flat=True))
    rows = [row for row in parts.rows if row.public.entry.submission in judged]
    context: dict[str, Any] = {
        "parts": parts,
        "test_set": found,
        "form": form,
        "page": page_of(rows, PAGE_LENGTH, request.GET.get("page")),
        "hidden": len(parts.rows) - len(rows),
        # Of these rows only: that of all would give away those that are hidden.
        "mean_difference": mean_difference(rows),
    }
    return render(request, "organizers/test_set.html", context)
