"""The desk's first page, the failed runs that are queued again from it, and announcements."""

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.evaluation.services import requeue_failed
from docvqa_site.organizers.access import FORM, POST, for_organizers
from docvqa_site.organizers.announcements import Announcement, announce, recipients
from docvqa_site.organizers.desk import desk_of
from docvqa_site.organizers.failures import failed_with
from docvqa_site.organizers.forms import AnnouncementForm
from evaluator.errors.codes import ErrorCode


@for_organizers()
def desk(request: UserRequest) -> HttpResponseBase:
    desk = desk_of(request.user)
    return render(request, "organizers/desk.html", {"desk": desk, "waiting_proofs": desk["own_reviews"]})


@for_organizers("evaluation.change_evaluation", methods=POST)
def queue_failed(request: UserRequest, code: str) -> HttpResponseBase:
    if code not in set(ErrorCode):
        raise Http404
    queued = requeue_failed(failed_with(code, organized_tracks(request.user)), actor=request.user)
    level = messages.SUCCESS if queued else messages.WARNING
    messages.add_message(request, level, f"{len(queued)} failed run{pluralize(queued)} queued again.")
    return redirect("organizers:desk")


@for_organizers("accounts.view_user", methods=FORM)
def announcement(request: UserRequest) -> HttpResponseBase:
    """Show the form; a POST shows whom the mail would reach, and sends it once it carries their number."""
    form = AnnouncementForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "organizers/announcement.html", {"form": form})
    written, seen = Announcement(**form.cleaned_data), request.POST.get("seen", "")
    if seen and announce(written, seen, actor=request.user):
        messages.success(request, f"The announcement was sent to {seen} recipient{pluralize(seen)}.")
        return redirect("organizers:desk")
    if seen:
        messages.warning(
            request, "The number of recipients has changed in the meantime; please review it again."
        )
    reached = recipients(written.audience, written.track).count()
    context = {"form": form, "written": written, "reached": reached}
    return render(request, "organizers/announcement.html", context)
