"""One's own notifications over the API, and which of them come by mail."""

from django.conf import settings
from ninja import Router

from docvqa_site.api.authentication import ApiRequest
from docvqa_site.api.errors import cleaned
from docvqa_site.api.responses import part_of, response_of
from docvqa_site.notifications.forms import MailForm
from docvqa_site.notifications.inbox import mark_read, notifications_of
from docvqa_site.notifications.kinds import kinds_for
from docvqa_site.notifications.models import Notification
from docvqa_site.notifications.preferences import choose_mails, mailed_kinds
from docvqa_site.paging import DEFAULT_LIMIT, ListLimit, ListOffset
from evaluator.messages.team_api import (
    MailChoice,
    NewMailChoice,
    NotificationInfo,
    NotificationPage,
    ReadUntil,
)

router = Router(tags=["notifications"])


@router.get("", response=NotificationPage, summary="List your notifications, newest first")
def list_notifications(
    request: ApiRequest, limit: ListLimit = DEFAULT_LIMIT, offset: ListOffset = 0
) -> NotificationPage:
    """Returns `limit` notifications, read and unread, starting at `offset`. Old ones are deleted."""
    found = notifications_of(request.auth)
    return NotificationPage(**part_of(found, _notification, limit=limit, offset=offset))


@router.post("/read", response={204: None}, summary="Mark notifications as read")
def read(request: ApiRequest, body: ReadUntil) -> None:
    """Marks all notifications with ids up to `until`, so that newer ones stay unread."""
    found = notifications_of(request.auth)
    mark_read(found if body.until is None else found.filter(pk__lte=body.until))


@router.get("/mail", response=MailChoice, summary="List your email settings")
def get_choice(request: ApiRequest) -> MailChoice:
    return MailChoice(kinds=mailed_kinds(request.auth), possible=kinds_for(request.auth))


@router.put("/mail", response=MailChoice, summary="Change your email settings")
def put_choice(request: ApiRequest, body: NewMailChoice) -> MailChoice:
    """Every notification also appears on the site. Emails about security, disqualifications, and new rules
    or deadlines can't be turned off.
    """
    choose_mails(request.auth, cleaned(MailForm(request.auth, {"kinds": body.kinds}))["kinds"])
    return get_choice(request)


def _notification(one: Notification) -> NotificationInfo:
    return response_of(NotificationInfo, one, url=settings.SITE_URL + one.page if one.page else "")
