"""Resumable uploads: a file goes into the store in parts; the site only ever sees its name, size and hashes."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from docvqa_site.teams.models import Team


class UploadState(models.TextChoices):
    """The state of an upload; `docvqa_site.uploads.states` says what may follow what."""

    OPEN = "open", "open"
    COMPLETED = "completed", "completed"
    ABORTED = "aborted", "aborted"
    EXPIRED = "expired", "expired"


class Upload(models.Model):
    """One file on its way into the store, or in it.

    It belongs to a team, or, without one, to the organizers, until they offer it for download. `store_upload` is the
    store's own name for the unfinished upload; empty until the first part is about to be sent.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="uploads", null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    filename = models.CharField(max_length=200)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    part_size_bytes = models.PositiveBigIntegerField()
    state = models.CharField(max_length=10, choices=UploadState.choices, default=UploadState.OPEN)
    store_key = models.CharField(max_length=300, unique=True)
    # Some servers' names for uploads are long.
    store_upload = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(
        null=True, blank=True, help_text="When the store confirmed that nothing is left of the upload."
    )

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.filename} ({self.state})"

    @property
    def parts_total(self) -> int:
        return max(1, -(-self.size_bytes // self.part_size_bytes))

    def part_size(self, number: int) -> int:
        """Return the size in bytes that part `number` (from 1) must have."""
        if number < self.parts_total:
            return self.part_size_bytes
        return self.size_bytes - (self.parts_total - 1) * self.part_size_bytes


class SignedPart(models.Model):
    """The SHA-256 that an address for a part was last signed for, while the upload is open.

    Some servers verify a part's SHA-256 and want it again when the upload is completed, but don't list it.
    """

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="signed_parts")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "number"], name="one_hash_for_a_part")]

    def __str__(self) -> str:
        return f"part {self.number} of {self.upload}"
