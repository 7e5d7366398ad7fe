"""The page on which an announcement is written, previewed with the number of its recipients, and sent."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_http_methods

from portal.accounts.requests import UserRequest
from portal.organizers.access import for_organizers
from portal.organizers.announcements import NAMES, announce, recipients
from portal.organizers.forms import AnnouncementForm


@require_http_methods(["GET", "HEAD", "POST"])
@for_organizers("accounts.view_user")
def announcement(request: UserRequest) -> HttpResponseBase:
    """Show the form; a POST shows whom the mail would reach, and sends it once it carries their number."""
    form = AnnouncementForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "organizers/announcement.html", {"form": form})
    written, seen = form.announcement(), request.POST.get("seen", "")
    if seen and announce(written, seen, actor=request.user):
        messages.success(request, f"The announcement was sent to {seen} recipient{pluralize(seen)}.")
        return redirect("organizers:desk")
    if seen:
        messages.warning(
            request, "The number of recipients has changed in the meantime; please review it again."
        )
    reached = recipients(written.audience, written.track).count()
    context = {"form": form, "written": written, "audience": NAMES[written.audience], "reached": reached}
    return render(request, "organizers/announcement.html", context)
