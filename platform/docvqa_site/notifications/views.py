"""A person's notifications, the choice of mails, and the page that a mail's unsubscribe link leads to."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.notifications.forms import MailForm
from docvqa_site.notifications.inbox import mark_read, notifications_of
from docvqa_site.notifications.kinds import OFFICIAL
from docvqa_site.notifications.preferences import choose_mails, read_link_token, turn_off
from docvqa_site.ui.paging import page_of

PAGE_LENGTH = 20


@never_cache
@login_required
@require_safe
def inbox(request: UserRequest) -> HttpResponse:
    """List the user's notifications, newest first, beside the choice of mails. Looking marks none as read."""
    page = page_of(notifications_of(request.user), PAGE_LENGTH, request.GET.get("page"))
    newest = notifications_of(request.user).order_by("-pk").values_list("pk", flat=True).first()
    context = {"page": page, "newest": newest, "form": MailForm(request.user), "official": OFFICIAL}
    return render(request, "notifications/list.html", context)


@login_required
@require_POST
def read(request: UserRequest) -> HttpResponse:
    """Mark as read what the page listed; what has arrived since stays unread."""
    until = request.POST.get("until", "")
    if until.isascii() and until.isdecimal() and len(until) < 19:
        mark_read(notifications_of(request.user).filter(pk__lte=int(until)))
        messages.success(request, "The notifications have been marked as read.")
    return redirect("notifications:list")


@login_required
@require_POST
def open_one(request: UserRequest, notification_id: int) -> HttpResponse:
    chosen = notifications_of(request.user).filter(pk=notification_id)
    notification = get_object_or_404(chosen)
    mark_read(chosen)
    return redirect(notification.page or "notifications:list")


@login_required
@require_POST
def choose(request: UserRequest) -> HttpResponse:
    form = MailForm(request.user, request.POST)
    if form.is_valid():
        choose_mails(request.user, form.cleaned_data["kinds"])
        messages.success(request, "Your email settings have been saved.")
    return redirect("notifications:list")


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether mails of a kind should end, which a POST does; the link's signature is the permission (RFC 8058).

    A mail program sends the POST without a session, as often as it likes. A GET changes nothing: programs look at links
    before a person does.
    """
    found = read_link_token(token)
    if found is None:
        raise Http404("no link of this site")
    user, kind = found
    if request.method == "POST":
        turn_off(user, kind, by="link")
    context = {"kind": kind, "is_done": request.method == "POST", "official": OFFICIAL}
    return render(request, "notifications/unsubscribe.html", context)
