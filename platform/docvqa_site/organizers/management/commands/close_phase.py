"""`manage.py close_phase TRACK PHASE`: what the organizers' desk does on the page *Close this phase*."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from docvqa_site.challenge.models import Phase
from docvqa_site.organizers import closing
from docvqa_site.organizers.forms import ResultsForm


class Command(BaseCommand):
    help = "Freeze the results of a phase that has ended, publish them under /results/, and announce them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("track", help="its part of the address, such as track-1")
        parser.add_argument("phase", help="the name of the phase")
        parser.add_argument("--slug", required=True, help="the results' part of the address")
        parser.add_argument("--title", required=True)
        parser.add_argument(
            "--text",
            default="",
            help="a further paragraph of the announcement, in Markdown; of a correction, its reason",
        )
        parser.add_argument("--check", action="store_true", help="only list what prevents closing")

    def handle(self, *_: object, track: str, phase: str, check: bool = False, **fields: object) -> None:
        found = Phase.objects.select_related("track").filter(track__slug=track, name=phase).first()
        if found is None:
            raise CommandError(f"The track {track} has no phase “{phase}”.")
        seen = closing.version_of(found)
        conditions = closing.conditions(found, timezone.now())
        for condition in conditions:
            self.stdout.write(f"{'ok   ' if condition.is_met else 'open '} {condition.text}")
            for obstacle in condition.obstacles:
                self.stdout.write(f"        {obstacle.text}")
        if not closing.is_ready(conditions):
            raise CommandError("The phase can't be closed yet.")
        if check:
            return
        form = ResultsForm(
            {name: fields[name] for name in ("slug", "title", "text")},
            is_correction=found.final_results.exists(),
        )
        if not form.is_valid():
            raise CommandError(form.errors.as_text())
        results = closing.close_phase(found, closing.Publication(**form.cleaned_data), seen=seen, actor=None)
        self.stdout.write(f"Published at {results.get_absolute_url()}")
