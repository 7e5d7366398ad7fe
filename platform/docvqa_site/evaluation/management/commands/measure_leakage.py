"""`manage.py measure_leakage SLUG`: measure the leakage of a track's ranked runs that have no figures yet."""

import time
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.examining import leakage
from docvqa_site.evaluation.models import ACTIVE_STATES, Evaluation
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import Step

POLL_S = 0.5


class Command(BaseCommand):
    help = "Queue leakage measurements for a track's ranked runs that don't have any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="a track")
        parser.add_argument(
            "--again",
            action="store_true",
            help="measure all ranked runs again, for example with another data set",
        )
        parser.add_argument(
            "--wait", action="store_true", help="wait until all queued runs have been tried once"
        )

    def handle(self, *_: object, slug: str, again: bool, wait: bool, **__: object) -> None:
        track = Track.objects.filter(slug=slug).first()
        if track is None:
            raise CommandError(f"There is no track {slug!r}.")
        if not track.leakage_set:
            raise CommandError(f"{track} has no leakage data set. Choose one in the admin area first.")
        runs = Run.objects.filter(submission__track=track, state=RunState.SCORED).order_by("pk")
        queued = sum(leakage.measure(run, again=again) for run in runs)
        self.stdout.write(
            f"{queued} run{'' if queued == 1 else 's'} queued." if queued else "Nothing to measure."
        )
        # A try that failed is repeated after a pause, which nobody waits for here.
        first_tries = Evaluation.objects.filter(
            run__submission__track=track, step=Step.LEAKAGE, state__in=ACTIVE_STATES, not_before__isnull=True
        )
        while wait and first_tries.exists():
            time.sleep(POLL_S)
