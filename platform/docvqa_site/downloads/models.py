"""Downloads, the terms that some of them are under, and who has accepted which version of these."""

from typing import Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone

from docvqa_site.challenge.models import Track
from docvqa_site.licenses import EXAMPLES, validate_license


class Terms(models.Model):
    """One version of the terms of a download. Once somebody has accepted it, its text never changes."""

    title = models.CharField(max_length=120)
    version = models.CharField(max_length=20, help_text="For example, 1 or 2026-11.")
    text = models.TextField(help_text="Markdown.")
    added_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["title", "-added_at"]
        verbose_name_plural = "terms"
        constraints = [models.UniqueConstraint(fields=["title", "version"], name="one_text_for_a_version")]

    def __str__(self) -> str:
        return f"{self.title}, version {self.version}"

    def get_absolute_url(self) -> str:
        return reverse("downloads:terms", args=[self.pk])


class Acceptance(models.Model):
    """That a person has accepted a version of terms. It is never changed or deleted."""

    terms = models.ForeignKey(Terms, on_delete=models.PROTECT, related_name="acceptances")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    accepted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-accepted_at"]
        constraints = [models.UniqueConstraint(fields=["terms", "user"], name="accepted_once")]

    def __str__(self) -> str:
        return f"{self.terms}, accepted by {self.user}"


class DownloadKind(models.TextChoices):
    """What a download is for, in the order of the page."""

    DATA = "data", "Data"
    WEIGHTS = "weights", "Base weights"
    KIT = "kit", "Starter kit"
    NOTEBOOK = "notebook", "Notebooks"


class Downloads(models.QuerySet["Download"]):
    def offered(self) -> Self:
        """Return those that visitors may fetch: a file for drafts of tracks alone isn't among them."""
        of_tracks = Track.with_drafts.filter(downloads=models.OuterRef("pk"))
        is_hidden = models.Exists(of_tracks) & ~models.Exists(of_tracks.filter(is_draft=False))
        return self.filter(~is_hidden, is_offered=True)

    def for_track(self, track: Track) -> Self:
        """Return those of the track and those of all tracks; those of a draft, as its participants will see them."""
        mine = models.Q(tracks=track) | models.Q(tracks__isnull=True)
        return self.filter(mine, is_offered=True)


class Download(models.Model):
    """One file that visitors may fetch. Its bytes are in the store and never change; those of a `link` are elsewhere.

    Of a link, the size and the hash are what its organizers state: 0 and empty where they don't.
    """

    slug = models.SlugField(max_length=80, unique=True)
    kind = models.CharField(max_length=10, choices=DownloadKind.choices)
    title = models.CharField(max_length=120)
    summary = models.CharField(max_length=300, blank=True)
    license = models.CharField(max_length=80, validators=[validate_license], help_text=EXAMPLES)
    license_url = models.URLField(blank=True)
    terms = models.ForeignKey(
        Terms,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="downloads",
        help_text="Required before downloading the file. Blank: no terms.",
    )
    tracks = models.ManyToManyField(
        Track,
        blank=True,
        related_name="downloads",
        help_text="The tracks that the download is for. None selected: all tracks.",
    )
    link = models.URLField(
        blank=True, max_length=500, help_text="Where the file is, if it isn't in this site's store."
    )
    position = models.PositiveSmallIntegerField(default=0)
    is_offered = models.BooleanField(default=True, help_text="Listed and available for download.")
    filename = models.CharField(max_length=200)
    size_bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True, validators=[RegexValidator(r"^[0-9a-f]{64}$")])
    store_key = models.CharField(max_length=300, blank=True)
    added_at = models.DateTimeField(default=timezone.now)
    times_sent = models.PositiveBigIntegerField(
        default=0,
        editable=False,
        help_text="How often the file was requested; a resumed request counts again.",
    )

    objects = Downloads.as_manager()

    class Meta:
        ordering = ["position", "slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["store_key"], condition=~models.Q(store_key=""), name="files_have_different_keys"
            ),
            models.CheckConstraint(
                condition=models.Q(link="") ^ models.Q(store_key=""), name="a_download_is_a_file_or_a_link"
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        """Return the address that sends the file; its name is the last part, as installers expect."""
        return reverse("downloads:file", args=[self.slug, self.filename])

    @property
    def host(self) -> str:
        """Where a link leads; empty of a file."""
        return urlsplit(self.link).netloc
