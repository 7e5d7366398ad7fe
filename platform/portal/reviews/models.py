"""Reviews of privacy proofs: each reviewer answers the checklist and accepts or rejects, with a reason."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from portal.submissions.models import Submission


class Decision(models.TextChoices):
    """A reviewer's decision on a proof."""

    PENDING = "pending", "pending"
    ACCEPTED = "accepted", "accepted"
    REJECTED = "rejected", "rejected"


class ProofReview(models.Model):
    """One reviewer's verdict on one submission's proof. `checklist` maps an item's key to yes, no or n/a."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="proof_reviews"
    )
    checklist = models.JSONField(default=dict, blank=True)
    decision = models.CharField(max_length=10, choices=Decision.choices, default=Decision.PENDING)
    reason = models.TextField(
        blank=True, help_text="Shown to the team, and on the leaderboard when rejected."
    )
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        permissions = [("review_proofs", "Can decide on privacy proofs")]
        constraints = [
            models.UniqueConstraint(fields=["submission", "reviewer"], name="one_review_per_reviewer"),
            models.CheckConstraint(
                condition=models.Q(decision="pending", decided_at__isnull=True)
                | (~models.Q(decision="pending") & models.Q(decided_at__isnull=False)),
                name="decided_reviews_have_a_time",
            ),
            models.CheckConstraint(
                condition=~models.Q(decision="rejected") | ~models.Q(reason=""),
                name="rejections_have_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reviewer} on {self.submission}: {self.decision}"
