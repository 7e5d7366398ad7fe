"""The ranks that runs had, day by day, and the final results of phases that are closed."""

import gzip

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from docvqa_site.challenge.models import Phase
from docvqa_site.submissions.models import Run
from docvqa_site.ui.bibtex import entry, in_latex


def published_by() -> str:
    """Return the author of what the organizers publish."""
    return settings.ORGANIZERS or "The organizers of the PFL-DocVQA benchmark"


class RankRecord(models.Model):
    """The rank of a run from the end of a day on, until its next record. Days on which it stayed have none."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="rank_records")
    day = models.DateField(help_text="In the site's time zone.")
    rank = models.PositiveIntegerField(null=True, help_text="Empty once the run no longer had a rank.")

    class Meta:
        ordering = ["run", "day"]
        constraints = [models.UniqueConstraint(fields=["run", "day"], name="one_rank_of_a_run_a_day")]

    def __str__(self) -> str:
        return f"{self.run}: {self.rank or 'no rank'} on {self.day:%Y-%m-%d}"


class FinalResults(models.Model):
    """The results of a phase as they were when organizers closed it. Its files never change.

    `standings` are the first ranks of each board, which its page shows; the files have all rows.
    """

    slug = models.SlugField("name", max_length=60, unique=True, help_text="The last part of the address.")
    title = models.CharField(max_length=120)
    phase = models.ForeignKey(Phase, on_delete=models.PROTECT, related_name="final_results")
    made_at = models.DateTimeField(default=timezone.now)
    standings = models.JSONField(default=list)
    doi = models.CharField(
        "DOI",
        max_length=100,
        blank=True,
        help_text="For example, 10.5281/zenodo.1234567, once the files are archived there.",
    )

    class Meta:
        ordering = ["-made_at", "-pk"]
        verbose_name_plural = "final results"

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("results:detail", args=[self.slug])

    @property
    def corrected(self) -> "FinalResults | None":
        """The earlier final results of the phase that these correct; None where they are the first."""
        return FinalResults.objects.filter(phase=self.phase_id, pk__lt=self.pk).order_by("-pk").first()

    @property
    def bibtex(self) -> str:
        """How to cite it, as a BibTeX entry."""
        fields = {
            "title": f"{{{in_latex(self.title)}}}",
            "author": f"{{{in_latex(published_by())}}}",
            "year": str(self.made_at.year),
            "howpublished": "Final results, PFL-DocVQA benchmark",
            "url": settings.SITE_URL + self.get_absolute_url(),
        }
        if earlier := self.corrected:
            fields["note"] = f"Corrects {settings.SITE_URL}{earlier.get_absolute_url()}"
        if self.doi:
            fields["doi"] = in_latex(self.doi)
        return entry(f"pfl-docvqa-{self.slug}", fields)


def newest_results() -> "models.QuerySet[FinalResults]":
    """Return the final results of all phases, without those that a correction has replaced."""
    newer = FinalResults.objects.filter(phase=models.OuterRef("phase")).order_by("-made_at", "-pk")
    found = FinalResults.objects.filter(pk=models.Subquery(newer.values("pk")[:1]))
    return found.select_related("phase__track")


class FrozenFile(models.Model):
    """One file of final results, compressed in the database, so that a backup of it has them all."""

    results = models.ForeignKey(FinalResults, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=100)
    sha256 = models.CharField("SHA-256", max_length=64)
    size_bytes = models.PositiveBigIntegerField()
    compressed = models.BinaryField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["results", "name"], name="one_frozen_file_of_a_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.compressed)
