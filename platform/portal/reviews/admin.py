"""The read-only list of proof reviews; they are made at the reviewers' desk, `portal.reviews.desk_views`."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.reviews.checklist import CHECKLIST
from portal.reviews.models import ProofReview
from portal.reviews.selectors import visible_reviews


@admin.register(ProofReview)
class ProofReviewAdmin(admin.ModelAdmin[ProofReview]):
    """Decisions are read here. A reviewer finds those of others only where they have decided themselves."""

    list_display = ("submission", "reviewer", "decision", "decided_at", "desk")
    # Of people, those who have reviewed; participants aren't offered.
    list_filter = ("decision", "submission__track", ("reviewer", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("submission", "reviewer")
    search_fields = ("submission__title", "submission__team__name")
    fields = (
        "submission",
        "reviewer",
        "decision",
        "reason",
        "answers",
        "declares_no_conflict",
        "changes_due",
        "assigned_at",
        "due",
        "decided_at",
        "history",
        "desk",
    )
    readonly_fields = ("answers", "history", "desk")

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: ProofReview | None = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: ProofReview | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProofReview]:
        """Leave out what the visitor has a conflict of interest about, or has yet to judge alone."""
        assert isinstance(request.user, User)  # noqa: S101  (the admin lets nobody anonymous in)
        visible = visible_reviews(request.user)
        return super().get_queryset(request).filter(pk__in=visible.values("pk"))

    def has_view_permission(self, request: HttpRequest, obj: ProofReview | None = None) -> bool:
        return request.user.has_perm("reviews.review_proofs") or super().has_view_permission(request, obj)

    @admin.display(description="checklist")
    def answers(self, review: ProofReview) -> SafeString:
        """Return the checklist with the reviewer's answers and notes."""
        rows = (
            (review.checklist.get(item.key, "–"), item.question, review.notes.get(item.key, ""))
            for item in CHECKLIST
        )
        return format_html("<ul>{}</ul>", format_html_join("", "<li><strong>{}</strong> {} {}</li>", rows))

    @admin.display(description="history")
    def history(self, review: ProofReview) -> SafeString:
        """Return every decision of the reviewer on the proof."""
        entries = AuditEntry.objects.filter(object_type="reviews.proofreview", object_id=str(review.pk))
        rows = (
            (
                f"{entry.at:%Y-%m-%d %H:%M} UTC",
                entry.action.partition(".")[2],
                entry.details.get("reason", ""),
            )
            for entry in entries
        )
        return format_html("<ul>{}</ul>", format_html_join("", "<li>{}: {}. {}</li>", rows))

    @admin.display(description="reviewers' desk")
    def desk(self, review: ProofReview) -> SafeString:
        """Return the link to the page of the review."""
        address = reverse("reviews:desk", args=[review.submission_id])
        return format_html('<a href="{}">Read the proof, or decide again</a>', address)
