"""Reviews of privacy proofs: what each reviewer answered and decided, messages between them and the team, appeals."""

from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone
from typing_extensions import override

from docvqa_site.submissions.models import Run, Submission


class Decision(models.TextChoices):
    """A reviewer's decision on a proof."""

    PENDING = "pending", "pending"
    ACCEPTED = "accepted", "accepted"
    CHANGES_REQUESTED = "changes_requested", "changes requested"
    REJECTED = "rejected", "rejected"


# The column of a submission that counts its reviewers with each decision.
COUNTED_IN = {
    Decision.ACCEPTED: "acceptances",
    Decision.REJECTED: "rejections",
    Decision.CHANGES_REQUESTED: "change_requests",
}
# The counts of a proposal to reject: no other reviewer has decided.
LONE_REJECTION = {"acceptances": 0, "rejections": 1, "change_requests": 0}


class ProofReview(models.Model):
    """One reviewer's part in the review of one submission's proof: assigned, in draft, or decided.

    Attributes:
        checklist: The answers behind the decision: yes, no or n/a by an item's key.
        notes: The reviewer's notes behind the decision, by an item's key; the team reads them.
        draft: What the reviewer has written since, a `docvqa_site.reviews.drafts.Draft`; None if nothing.
        changes_due: By when the team is asked to revise the proof.
        declares_no_conflict: Whether the reviewer stated, with the decision, that they have no conflict of interest.
        due: Until when an assigned reviewer is asked to decide.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="proof_reviews"
    )
    checklist = models.JSONField(default=dict, blank=True)
    notes = models.JSONField(default=dict, blank=True)
    decision = models.CharField(max_length=20, choices=Decision.choices, default=Decision.PENDING)
    reason = models.TextField(blank=True, help_text="Shown to the team and, if rejected, on the leaderboard.")
    changes_due = models.DateField(null=True, blank=True)
    declares_no_conflict = models.BooleanField(default=False)
    draft = models.JSONField(null=True, blank=True)
    drafted_at = models.DateTimeField(null=True, blank=True)
    assigned_at = models.DateTimeField(null=True, blank=True)
    due = models.DateField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        verbose_name = "proof decision"
        permissions = [("review_proofs", "Can decide on privacy proofs")]
        constraints = [
            models.UniqueConstraint(fields=["submission", "reviewer"], name="one_review_per_reviewer"),
            models.CheckConstraint(
                condition=models.Q(decision="pending", decided_at__isnull=True)
                | (~models.Q(decision="pending") & models.Q(decided_at__isnull=False)),
                name="decided_reviews_have_a_time",
            ),
            models.CheckConstraint(
                condition=~models.Q(decision__in=["rejected", "changes_requested"]) | ~models.Q(reason=""),
                name="objections_have_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reviewer} on {self.submission}"

    @override
    def save(self, *, update_fields: Collection[str] | None = None, **options: Any) -> None:  # type: ignore[override]
        """Store the review, and with a decision how many reviewers of the submission have made each."""
        # A new review without a decision changes no count, and must not wait for whoever decides at this moment.
        counts = not (self._state.adding and self.decision == Decision.PENDING)
        with transaction.atomic():
            super().save(update_fields=update_fields, **options)
            if counts and (update_fields is None or "decision" in update_fields):
                _count_decisions(self.submission_id)

    @override
    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Remove the review, and count those that are left."""
        with transaction.atomic():
            removed = super().delete(*args, **options)
            _count_decisions(self.submission_id)
        return removed

    @property
    def is_decided(self) -> bool:
        """Whether the reviewer has decided on the newest version of the proof."""
        return self.decision != Decision.PENDING


def _count_decisions(submission: UUID) -> None:
    """Store with a submission how many reviewers have made each decision on its proof."""
    # Locked before the decisions are read: what another reviewer decides meanwhile is counted after this.
    Submission.objects.select_for_update(no_key=True).get(pk=submission)
    decisions = ProofReview.objects.filter(submission=submission)
    found = Counter(decisions.values_list("decision", flat=True))
    counts: dict[str, Any] = {column: found[decision] for decision, column in COUNTED_IN.items()}
    if counts != LONE_REJECTION:
        # It was contradicted, confirmed or taken back. Another one would have to wait again.
        counts["rejection_stands"] = False
    Submission.objects.filter(pk=submission).update(**counts)


class Recusal(models.Model):
    """Why one person doesn't review one proof, by their own word.

    Whoever has no time, or not the knowledge, may still take the review later. Of a conflict of interest the person
    sees nothing of the proof any more; who coordinates the review reads every decision, and makes none.
    """

    class Why(models.TextChoices):
        """What keeps a reviewer from deciding."""

        CONFLICT = "conflict", "I have a conflict of interest"
        TIME = "time", "I don't have the time"
        FIELD = "field", "It isn't my field"
        COORDINATION = "coordination", "I'm coordinating this review and won't make a decision"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="recusals")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="recusals")
    why = models.CharField(max_length=20, choices=Why.choices)
    text = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "person"], name="one_recusal_per_person"),
        ]

    def __str__(self) -> str:
        return f"{self.person} on {self.submission}: {self.why}"

    @property
    def is_liftable(self) -> bool:
        """Whether the person may be allowed to review the proof again: not if they may have read every decision."""
        return self.why != self.Why.COORDINATION


class Proof(Submission):
    """A submission as the administration lists it to those who review or coordinate: by its privacy proof."""

    class Meta:
        proxy = True
        verbose_name = "privacy proof"


class ReviewMessage(models.Model):
    """A message about a proof, from a reviewer to the team or back. `item` is a checklist item's key, or empty."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="review_messages")
    item = models.CharField(max_length=40, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_team = models.BooleanField()
    text = models.TextField()
    # Whether the other side got a mail about it, and not only about an earlier one.
    is_mailed = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return f"{'team' if self.by_team else 'reviewer'} on {self.submission}"


class Appeal(models.Model):
    """The one appeal that a team may make against the rejection of a submission's proof."""

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="appeal")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"appeal on {self.submission}"


class RunAppeal(models.Model):
    """A team's appeal against the disqualification of a run, one for each reason, and the organizers' answer.

    Attributes:
        reason: That of the disqualification.
        answer: Empty until an organizer has answered.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="appeals")
    reason = models.CharField(max_length=300)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)
    answer = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["run", "reason"], name="one_appeal_against_a_disqualification"),
            models.CheckConstraint(
                condition=models.Q(answer="", answered_at__isnull=True)
                | (~models.Q(answer="") & models.Q(answered_at__isnull=False)),
                name="answered_appeals_have_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"appeal on {self.run}"
