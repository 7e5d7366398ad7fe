"""The ranks that runs had, day by day."""

from django.db import models

from portal.submissions.models import Run


class RankRecord(models.Model):
    """The rank of a run from the end of a day on, until its next record. Days on which it stayed have none."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="rank_records")
    day = models.DateField(help_text="In the site's time zone.")
    rank = models.PositiveIntegerField(null=True, help_text="None from when the run had no rank any more.")

    class Meta:
        ordering = ["run", "day"]
        constraints = [models.UniqueConstraint(fields=["run", "day"], name="one_rank_of_a_run_a_day")]

    def __str__(self) -> str:
        return f"{self.run}: {self.rank or 'no rank'} on {self.day:%Y-%m-%d}"
