"""The outbox as organizers see it. Texts aren't shown: a mail may contain a link that opens somebody's account."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from typing_extensions import override

from docvqa_site.audit.admin import ReadOnlyAdmin
from docvqa_site.audit.mass_actions import mass_action
from docvqa_site.audit.models import record
from docvqa_site.mail.models import OutgoingMail


class DeliveryFilter(admin.SimpleListFilter):
    title = "delivery"
    parameter_name = "delivery"

    @override
    def lookups(self, _request: HttpRequest, _model_admin: object) -> list[tuple[str, str]]:
        return [("waiting", "waiting to be sent"), ("failed", "failed")]

    @override
    def queryset(self, _request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> QuerySet[OutgoingMail]:
        if self.value() not in ("waiting", "failed"):
            return queryset
        return queryset.filter(failed_at__isnull=self.value() == "waiting")


@admin.register(OutgoingMail)
class OutgoingMailAdmin(ReadOnlyAdmin[OutgoingMail]):
    """Mails that wait or have failed, which organizers may send again."""

    list_display = ("subject", "recipients", "created_at", "attempts", "due_at", "failed_at", "error")
    list_filter = (DeliveryFilter,)
    fields = list_display
    search_fields = ("subject", "recipients")
    actions = ("send_again",)

    @override
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        title = {
            "title": "Emails that wait or failed. Delivered ones are deleted, since they may contain links."
        }
        return super().changelist_view(request, {**title, **(extra_context or {})})

    def has_send_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("mail.change_outgoingmail")

    @mass_action(
        "Send again",
        effect="Each is tried again now. Links in old emails may have expired.",
        permissions=["send"],
    )
    def send_again(self, request: HttpRequest, queryset: QuerySet[OutgoingMail]) -> None:
        """Let the selected mails be tried again now, as often as new ones."""
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        for mail in queryset:
            record(request.user, "outgoingmail.sent_again", mail)
        count = queryset.update(due_at=timezone.now(), attempts=0, failed_at=None, error="")
        self.message_user(request, f"{count} emails will be sent again.", messages.SUCCESS)
