from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from typing_extensions import override

from docvqa_site.challenge.definitions import (
    DEFAULT_DEFINITIONS,
    Override,
    overridden,
    read_definitions,
    save_tracks,
)
from docvqa_site.challenge.models import Track
from evaluator.errors import ProblemError


class Command(BaseCommand):
    help = "Bring the tracks in line with a file, the competition's own unless another one is named."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_DEFINITIONS)
        parser.add_argument(
            "--set",
            dest="overrides",
            action="append",
            default=[],
            metavar="TRACK.FIELD=VALUE",
            help="such as track-1.anls_threshold=0.1 or '*.reference=vt5-tiny'; may be repeated",
        )

        parser.add_argument(
            "--publish",
            action="store_true",
            help="make new tracks public at once; otherwise they are drafts, which organizers check and publish",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            overrides = [Override.parse(text) for text in options["overrides"]]
            definitions = overridden(read_definitions(options["file"]), overrides)
            changed = save_tracks(definitions, are_drafts=not options["publish"])
        except ProblemError as error:
            raise CommandError(str(error)) from error
        for slug, fields in changed.items():
            self.stdout.write(f"{slug}: {', '.join(fields) if fields else 'nothing to change'}")
        for track in Track.with_drafts.filter(slug__in=changed, is_draft=True):
            page = settings.SITE_URL + reverse("organizers:setup", args=[track.slug])
            self.stdout.write(f"{track.slug} is a draft. To check and publish it, open {page}")
