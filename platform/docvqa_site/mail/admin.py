"""The mails as organizers see them. Texts aren't shown: a mail may contain a link that opens somebody's account."""

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from typing_extensions import override

from docvqa_site.audit.admin import ReadOnlyAdmin
from docvqa_site.audit.hiding import hidden_from
from docvqa_site.audit.mass_actions import mass_action
from docvqa_site.audit.models import record
from docvqa_site.mail.models import WAITING, OutgoingMail

STATES = {
    "waiting": WAITING,
    "delivered": Q(delivered_at__isnull=False),
    "failed": Q(failed_at__isnull=False),
}
OF_OTHERS = "You are on a team, so delivered emails to other people aren't listed."
OF_PROOFS = (
    "Delivered emails about proofs aren't listed, since there are proofs that you may still have to judge, or have a "
    "conflict of interest about."
)


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    @override
    def lookups(self, _request: HttpRequest, _model_admin: object) -> list[tuple[str, str]]:
        return [(name, name) for name in STATES]

    @override
    def queryset(self, _request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> QuerySet[OutgoingMail]:
        return queryset.filter(STATES.get(self.value() or "", Q()))


def _hidden(reader: Any) -> tuple[Q | None, str]:
    """Return which delivered mails are hidden, as in the audit trail, and a note that says so; None and "" if none."""
    if hasattr(reader, "membership"):
        return ~Q(recipients=[reader.email]), OF_OTHERS
    if hidden_from(reader) is not None:
        return Q(about_review=True), OF_PROOFS
    return None, ""


@admin.register(OutgoingMail)
class OutgoingMailAdmin(ReadOnlyAdmin[OutgoingMail]):
    """Mails and what became of them. Organizers may send those again that weren't delivered."""

    list_display = (
        "subject",
        "to",
        "state",
        "created_at",
        "delivered_at",
        "attempts",
        "next_attempt",
        "error",
    )
    list_filter = (StateFilter,)
    empty_value_display = "–"
    ordering = ("-created_at", "-pk")
    fields = (*list_display[:-1], "failed_at", "error")
    search_fields = ("subject", "recipients")
    actions = ("send_again",)

    @admin.display(description="to")
    def to(self, mail: OutgoingMail) -> str:
        return ", ".join(mail.recipients)

    @admin.display(ordering="due_at")
    def next_attempt(self, mail: OutgoingMail) -> datetime | None:
        return mail.due_at if mail.state == "waiting" else None

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[OutgoingMail]:
        hidden, _ = _hidden(request.user)
        mails = super().get_queryset(request)
        return mails if hidden is None else mails.exclude(STATES["delivered"] & hidden)

    @override
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        _, note = _hidden(request.user)
        return super().changelist_view(request, {"subtitle": note or None, **(extra_context or {})})

    def has_send_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("mail.change_outgoingmail")

    @mass_action(
        "Send again",
        effect="Each that was not delivered is tried again now. Links in old emails may have expired.",
        permissions=["send"],
    )
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> None:
        """Let the selected mails be tried again now, as often as new ones. A delivered one has no text any more."""
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        undelivered = queryset.filter(delivered_at=None)
        for mail in undelivered:
            record(request.user, "outgoingmail.sent_again", mail)
        count = undelivered.update(due_at=timezone.now(), attempts=0, failed_at=None, error="")
        self.message_user(request, f"{count} emails will be sent again.", messages.SUCCESS)
