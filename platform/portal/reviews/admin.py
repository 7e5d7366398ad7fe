"""Proof reviews for the organizers: what needs one's review, the review itself, and past decisions."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from portal.accounts.models import User
from portal.accounts.requests import UserRequest
from portal.audit.models import AuditEntry
from portal.evaluation.results import EPSILON_COLUMNS
from portal.evaluation.status import statuses
from portal.reviews.checklist import CHECKLIST
from portal.reviews.evidence import evidence_on
from portal.reviews.forms import ReviewForm
from portal.reviews.models import Decision, ProofReview
from portal.reviews.selectors import reviewable_submissions, verdict_on
from portal.reviews.services import decide, may_review
from portal.submissions.models import Submission


@admin.register(ProofReview)
class ProofReviewAdmin(admin.ModelAdmin[ProofReview]):
    """Decisions are read here and made on a page of their own, by `services.decide`."""

    list_display = ("submission", "reviewer", "decision", "decided_at")
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
        "decided_at",
        "history",
        "review_page",
    )
    readonly_fields = ("answers", "history", "review_page")
    change_list_template = "admin/reviews/reviews.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("submission/<uuid:submission_id>/", view(self.review_view), name="reviews_review"),
            *super().get_urls(),
        ]

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: ProofReview | None = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: ProofReview | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProofReview]:
        """Leave out what the visitor has a conflict of interest about."""
        assert isinstance(request.user, User)  # noqa: S101  (the admin lets nobody anonymous in)
        return super().get_queryset(request).filter(submission__in=reviewable_submissions(request.user))

    def has_view_permission(self, request: HttpRequest, obj: ProofReview | None = None) -> bool:
        return request.user.has_perm("reviews.review_proofs") or super().has_view_permission(request, obj)

    @admin.display(description="checklist")
    def answers(self, review: ProofReview) -> SafeString:
        """Return the checklist with the reviewer's answers."""
        rows = ((review.checklist.get(item.key, "–"), item.question) for item in CHECKLIST)
        return format_html("<ul>{}</ul>", format_html_join("", "<li><strong>{}</strong> {}</li>", rows))

    @admin.display(description="history")
    def history(self, review: ProofReview) -> SafeString:
        """Return every decision of the reviewer on the proof."""
        entries = AuditEntry.objects.filter(object_type="reviews.proofreview", object_id=str(review.pk))
        rows = (
            (f"{entry.at:%Y-%m-%d %H:%M} UTC", entry.action.partition(".")[2], entry.details["reason"])
            for entry in entries
        )
        return format_html("<ul>{}</ul>", format_html_join("", "<li>{}: {}. {}</li>", rows))

    @admin.display(description="proof and checklist")
    def review_page(self, review: ProofReview) -> SafeString:
        """Return the link to the page of the review."""
        address = reverse("admin:reviews_review", args=[review.submission_id])
        return format_html('<a href="{}">Read the proof, or decide again</a>', address)

    def review_view(self, request: UserRequest, submission_id: UUID) -> HttpResponse:
        """Show one proof beside the checklist, and record the decision on it."""
        self._require_reviewer(request.user)
        submission = get_object_or_404(
            Submission.objects.select_related("team", "track").prefetch_related("runs", "reviews__reviewer"),
            pk=submission_id,
            track__ranking="anls",
        )
        if rejection := may_review(submission, request.user):
            title = "You can't review this proof"
            return self._page(request, "admin/reviews/rejected.html", title, status=403, rejection=rejection)
        own = next((review for review in submission.reviews.all() if review.reviewer == request.user), None)
        form = ReviewForm(request.POST or None, initial=own.checklist if own else None)
        if request.method == "POST" and form.is_valid():
            try:
                self._decide(submission, form, request.user)
            except ValidationError as error:
                form.add_error(None, error)
            else:
                self.message_user(request, f"Your decision on {submission} is recorded.", messages.SUCCESS)
                return redirect("reviews:queue")
        runs = statuses(submission.runs.all())
        return self._page(
            request,
            "admin/reviews/review.html",
            f"Privacy proof of {submission}",
            submission=submission,
            runs=runs,
            groups=form.groups(evidence_on(submission, runs)),
            epsilon_columns=EPSILON_COLUMNS,
            is_insider=True,
            proof=submission.proof(),
            earlier_proofs=submission.artifacts.filter(superseded_at__isnull=False).order_by("-version"),
            verdict=verdict_on(submission),
            own=own,
            has_decided=own is not None and own.decision != Decision.PENDING,
            form=form,
        )

    @staticmethod
    def _decide(submission: Submission, form: ReviewForm, actor: User) -> None:
        decision = Decision(form.cleaned_data["decision"])
        decide(submission, decision, form.cleaned_data["reason"], form.answers(), actor=actor)

    @staticmethod
    def _require_reviewer(user: User) -> None:
        if not user.has_perm("reviews.review_proofs"):
            raise PermissionDenied

    def _page(
        self, request: UserRequest, template: str, title: str, *, status: int = 200, **context: Any
    ) -> HttpResponse:
        return render(
            request,
            template,
            {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context},
            status=status,
        )
