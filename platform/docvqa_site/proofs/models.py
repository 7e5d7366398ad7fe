"""What was made of proofs that are PDF files: their pages as images and text."""

from django.db import models
from django.utils import timezone

from docvqa_site.uploads.models import Upload


class DrawingState(models.TextChoices):
    """How far the pages of a PDF are drawn. One that has failed is never tried again."""

    WAITING = "waiting", "waiting"
    READY = "ready", "ready"
    FAILED = "failed", "failed"


class Drawing(models.Model):
    """The pages of one PDF. `problem` is an `evaluator.errors.Problem` when it failed.

    `tries` counts how often drawing was begun since the last page that came out of it. Whoever draws has it for
    themselves until `claimed_until`.
    """

    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, related_name="drawing")
    state = models.CharField(max_length=10, choices=DrawingState.choices, default=DrawingState.WAITING)
    problem = models.JSONField(default=dict, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    claimed_until = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at"]
        indexes = [
            models.Index(
                fields=["created_at"], condition=models.Q(state="waiting"), name="drawings_that_wait"
            )
        ]

    def __str__(self) -> str:
        return f"pages of {self.upload}"


class Page(models.Model):
    """One page: its image, WebP of this size in pixels, is in the store at `store_key`."""

    drawing = models.ForeignKey(Drawing, on_delete=models.CASCADE, related_name="pages")
    number = models.PositiveSmallIntegerField()
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    size_bytes = models.PositiveIntegerField(help_text="Of its image.")
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["drawing", "number"], name="pages_of_a_drawing_are_numbered")
        ]

    def __str__(self) -> str:
        return f"page {self.number} of {self.drawing}"

    @property
    def store_key(self) -> str:
        """Where its image is in the store; `drawing.upload` is needed for it."""
        return page_key(self.drawing.upload, self.number)


def page_key(upload: Upload, number: int) -> str:
    """Return where the image of a page is in the store: drawn again, it replaces what a killed process has left."""
    return f"{upload.store_key}-page-{number}"


class CitedCode(models.Model):
    """What the front matter of a Markdown proof says about code, as it was read from the file once.

    `files` has pairs of a path and a SHA-256, in their order; `text_sha256` is of the text below.
    """

    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, related_name="cited_code")
    commit = models.CharField(max_length=40, blank=True)
    method = models.CharField(max_length=100, blank=True)
    text_sha256 = models.CharField(max_length=64)
    files = models.JSONField(default=list, blank=True)

    def __str__(self) -> str:
        return f"code cited in {self.upload}"
