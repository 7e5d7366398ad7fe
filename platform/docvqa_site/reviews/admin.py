"""Proofs and the decisions on them in the administration: the same service and the same form as at the desk."""

from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import is_reviewer, organizer_of
from docvqa_site.audit.admin import ReadOnlyAdmin
from docvqa_site.evaluation.display.status import statuses
from docvqa_site.proofs.named_code import named_code
from docvqa_site.reviews import tallies
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.deciding import confirmation, take_decision
from docvqa_site.reviews.drafts import draft_of, version_of
from docvqa_site.reviews.eligibility import may_organize, review_barred_because
from docvqa_site.reviews.evidence import facts_on
from docvqa_site.reviews.forms import ReviewForm, initial_of
from docvqa_site.reviews.models import Decision, Proof, ProofReview, Recusal
from docvqa_site.reviews.selectors import (
    appealed,
    assignments,
    disclosed_submissions,
    is_settled,
    reviewable_submissions,
    sees_decisions,
    too_few_asked,
    verdict_on,
    visible_reviews,
    waits_for_reviewers,
)
from docvqa_site.reviews.timeline import timeline
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.submissions.selectors import is_scored
from docvqa_site.ui.templatetags.ui import at
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.states import ResultStatus

# The states of a proof, by whom it waits for, and what they are called.
VERIFIED = tallies.verified(F("track__required_reviews"))
STATES: dict[str, tuple[str, Callable[[], Q]]] = {
    # Before what it is a part of: a list names the first state that a proof is in.
    "appealed": ("rejected, appeal open", appealed),
    "reviewers": ("waits for reviewers", waits_for_reviewers),
    "verified": (ResultStatus.VERIFIED.label, lambda: VERIFIED),
    "rejected": ("rejected", tallies.rejected),
    "team": (
        "waits for the team",
        lambda: Q(change_requests__gt=0, rejections=0) & ~VERIFIED & ~tallies.rejected(),
    ),
}


# The states in which nobody is expected to act.
SETTLED = [words for key, (words, _) in STATES.items() if key in ("verified", "rejected")]
# What is said of a reviewer who stepped aside.
ASIDE = {
    Recusal.Why.CONFLICT: "stepped aside: conflict",
    Recusal.Why.TIME: "stepped aside: no time",
    Recusal.Why.FIELD: "stepped aside: not their field",
    Recusal.Why.COORDINATION: "coordinates the review",
}


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    @override
    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [(key, words) for key, (words, _) in STATES.items()]

    @override
    def queryset(self, _request: HttpRequest, queryset: QuerySet[Proof]) -> QuerySet[Proof]:
        known = STATES.get(self.value() or "")
        return queryset.filter(known[1]()) if known else queryset


class AssignmentFilter(admin.SimpleListFilter):
    title = "assignment"
    parameter_name = "assignment"

    @override
    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [("mine", "assigned to me"), ("few", "too few assigned"), ("overdue", "overdue")]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Proof]) -> QuerySet[Proof]:
        match self.value():
            case "mine":
                own = assignments().filter(reviewer=organizer_of(request))
                return queryset.filter(pk__in=own.values("submission"))
            case "few":
                return queryset.filter(waits_for_reviewers(), too_few_asked())
            case "overdue":
                late = assignments().filter(due__lt=timezone.now().date())
                return queryset.filter(waits_for_reviewers(), pk__in=late.values("submission"))
        return queryset


@admin.register(Proof)
class ProofAdmin(ReadOnlyAdmin[Proof]):
    """The proofs that the visitor has no conflict of interest about, those first that wait for reviewers."""

    class Media:
        css = {"all": ["reviews/admin.css"]}

    # What leads on comes first: the administration scrolls a wide table sideways.
    list_display = (
        "title",
        "desk",
        "team",
        "state_",
        "decided",
        "due",
        "assignees",
        "sent",
        "versions",
        "track",
    )
    list_display_links = ("title",)
    empty_value_display = "–"
    list_filter = (StateFilter, AssignmentFilter, "track")
    search_fields = ("title", "team__name")

    @override
    def get_list_display(self, request: HttpRequest) -> Any:
        """Leave out the desk for those who may not review."""
        reviews = isinstance(request.user, User) and is_reviewer(request.user)
        return [name for name in self.list_display if reviews or name != "desk"]

    @override
    def get_ordering(self, _request: HttpRequest) -> tuple[str, ...]:
        return ("place", "submitted_at")

    @override
    def has_view_permission(self, request: HttpRequest, obj: Proof | None = None) -> bool:
        user = organizer_of(request)
        return is_reviewer(user) or may_organize(user)

    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return isinstance(request.user, User) and self.has_view_permission(request)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Proof]:
        user = organizer_of(request)
        conflicts = Conflicts(user)
        judged = reviewable_submissions(user, conflicts).filter(is_scored(), state=SubmissionState.SUBMITTED)
        place = [
            When(condition(), then=Value(number)) for number, (_, condition) in enumerate(STATES.values())
        ]
        proofs = Q(
            artifacts__kind=ArtifactKind.PRIVACY_PROOF, artifacts__state__in=["attached", "superseded"]
        )
        found = Proof.objects.filter(pk__in=judged.values("pk")).select_related("team", "track")
        return found.annotate(
            place=Case(*place, default=Value(len(place)), output_field=IntegerField()),
            version=Count("artifacts", filter=proofs),
            # A first version is sent with its submission, after its upload.
            sent_at=Greatest(
                Coalesce(Max("artifacts__created_at", filter=proofs), F("published_at")), F("published_at")
            ),
            is_disclosed=Exists(disclosed_submissions(user, conflicts).filter(pk=OuterRef("pk"))),
        ).prefetch_related("reviews__reviewer")

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Proof], search_term: str
    ) -> tuple[QuerySet[Proof], bool]:
        """Find proofs by the names of those who are assigned to them, too."""
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        named = ProofReview.objects.filter(assigned_at__isnull=False, reviewer__name__icontains=search_term)
        return found | queryset.filter(pk__in=named.values("submission")), may_repeat

    @admin.display(description="state", ordering="place")
    def state_(self, proof: Any) -> str:
        words = [*(words for words, _ in STATES.values()), "under review"]
        return words[int(proof.place)]

    @admin.display(description="versions")
    def versions(self, proof: Any) -> int:
        return int(proof.version)

    @admin.display(description="sent", ordering="sent_at")
    def sent(self, proof: Any) -> str:
        """Return when reviewers got the version under review."""
        return at(proof.sent_at)

    @admin.display(description="due")
    def due(self, proof: Proof) -> date | None:
        """Return the first day by which somebody was asked to decide, while a decision is needed."""
        if self.state_(proof) in SETTLED:
            return None
        return min((one.due for one in proof.reviews.all() if one.due and not one.is_decided), default=None)

    @admin.display(description="assigned to")
    def assignees(self, proof: Proof) -> str:
        """Return who is to decide; of a proof that needs no decision, nobody."""
        if self.state_(proof) in SETTLED:
            return self.empty_value_display
        return ", ".join(str(one.reviewer) for one in proof.reviews.all() if one.assigned_at) or "nobody"

    @admin.display(description="decisions")
    def decided(self, proof: Any) -> str:
        """Return how many reviewers have decided; nothing to those who have yet to judge alone."""
        if not proof.is_disclosed:
            return "hidden until you decide"
        return (
            f"{sum(one.is_decided for one in proof.reviews.all())} ({proof.track.required_reviews} required)"
        )

    @admin.display(description="desk")
    def desk(self, proof: Proof) -> SafeString:
        address = reverse("reviews:desk", args=[proof.pk])
        return format_html('<a class="to-desk" href="{}">Open the desk</a>', address)

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Give the table the width of the list of models beside it, which has little else for reviewers."""
        wide = {"title": "Privacy proofs", "is_nav_sidebar_enabled": False}
        return super().changelist_view(request, {**wide, **(extra_context or {})})

    @override
    def change_view(  # type: ignore[override]
        self, request: UserRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the proof with its timeline, and record the decision that is posted."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        key = _key(object_id)
        proof = self.get_queryset(request).filter(pk=key).first() if key else None
        if proof is None:
            if key and is_reviewer(request.user):
                # It explains to reviewers why a proof isn't theirs to read.
                return redirect("reviews:desk", key)
            raise Http404
        conflicts = Conflicts(request.user)
        barred = review_barred_because(proof, request.user, conflicts)
        own = proof.reviews.filter(reviewer=request.user).first()
        newest = proof.proof()
        draft = draft_of(own, version_of(newest))
        form = ReviewForm(request.POST or None, initial=initial_of(draft))
        if request.method == "POST":
            if barred:
                raise PermissionDenied(barred)
            if review := take_decision(request, proof, form):
                self.message_user(request, confirmation(review))
                return redirect("admin:reviews_proof_changelist")
        sees = sees_decisions(proof, request.user, conflicts)
        runs = statuses(proof.runs.all())
        context = {
            **self.admin_site.each_context(request),
            "title": f"Privacy proof of {proof}",
            "opts": self.opts,
            "original": proof,
            "submission": proof,
            "newest": newest,
            "cited": named_code(newest.upload) if newest else None,
            "facts": {
                name: getattr(self, name)(proof) for name in ("state_", "sent", "due", "assignees", "decided")
            },
            "verdict": verdict_on(proof) if sees else None,
            "timeline": timeline(proof, request.user) if sees else [],
            "recusals": proof.recusals.select_related("person"),
            "barred": barred,
            "may_assign": may_organize(request.user) and not is_settled(proof),
            "reviews": is_reviewer(request.user),
            "form": form,
            "places": form.places() if form.is_bound else [],
            "unconfirmed": draft.unconfirmed,
            "closing": form.closing(has_decided=own is not None and own.is_decided),
            "runs": runs,
            "recorded": facts_on(proof, runs, newest),
            "is_insider": True,
        }
        status = 422 if form.is_bound else 200
        return TemplateResponse(request, "admin/reviews/proof/change_form.html", context, status=status)


def _key(written: str) -> UUID | None:
    try:
        return UUID(written)
    except ValueError:
        return None


@admin.register(ProofReview)
class ProofReviewAdmin(ReadOnlyAdmin[ProofReview]):
    """Who reviews what, and what they decided, as far as the visitor may read it. Proofs lead here."""

    list_display = ("submission", "reviewer", "progress", "decided_at", "proof")
    # Of people, those who have reviewed; participants aren't offered.
    list_filter = ("decision", "submission__track", ("reviewer", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("submission", "reviewer")
    search_fields = ("submission__title", "submission__team__name")
    # Not the submission and the reviewer themselves: they would link to what reviewers may not open.
    fields = (
        "method",
        "by",
        "progress",
        "explanation",
        "answers",
        "declares_no_conflict",
        "changes_due",
        "assigned_at",
        "due",
        "decided_at",
        "proof",
    )
    readonly_fields = ("method", "by", "progress", "explanation", "answers", "proof")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ProofReview]:
        """Leave out what the visitor has a conflict of interest about, or has yet to judge alone, and drafts."""
        user = organizer_of(request)
        aside = Recusal.objects.filter(submission=OuterRef("submission"), person=OuterRef("reviewer"))
        found = super().get_queryset(request).filter(pk__in=visible_reviews(user).values("pk"))
        found = found.annotate(aside=Subquery(aside.values("why")[:1]))
        if may_organize(user):
            return found
        begun = Q(decision=Decision.PENDING, assigned_at__isnull=True, aside__isnull=True)
        return found.exclude(begun & ~Q(reviewer=user))

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        title = {"title": "Each reviewer's latest decision"}
        return super().changelist_view(request, {**title, **(extra_context or {})})

    @override
    def has_view_permission(self, request: HttpRequest, obj: ProofReview | None = None) -> bool:
        return request.user.has_perm("reviews.review_proofs") or super().has_view_permission(request, obj)

    @admin.display(description="submission")
    def method(self, review: ProofReview) -> str:
        return str(review.submission)

    @admin.display(description="decision", ordering="decision")
    def progress(self, review: Any) -> str:
        """Return the decision; without one, how far the reviewer is."""
        if review.is_decided:
            return str(review.get_decision_display())
        if review.aside:
            return ASIDE[Recusal.Why(review.aside)]
        return "assigned" if review.assigned_at else "drafting" if review.draft is not None else "not decided"

    @admin.display(description="reviewer")
    def by(self, review: ProofReview) -> str:
        return str(review.reviewer)

    @admin.display(description="explanation for the team")
    def explanation(self, review: ProofReview) -> str:
        return review.reason

    @admin.display(description="checklist")
    def answers(self, review: ProofReview) -> SafeString:
        """Return the checklist with the reviewer's answers and notes."""
        rows = (
            (review.checklist.get(item.key, "–"), item.question, review.notes.get(item.key, ""))
            for item in CHECKLIST
        )
        return format_html("<ul>{}</ul>", format_html_join("", "<li><strong>{}</strong> {} {}</li>", rows))

    @admin.display(description="proof")
    def proof(self, review: ProofReview) -> SafeString:
        address = reverse("admin:reviews_proof_change", args=[review.submission_id])
        return format_html('<a href="{}">History of the proof</a>', address)
