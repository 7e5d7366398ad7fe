"""`manage.py freeze FOLDER`: a snapshot of the leaderboards that is verified without the site."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from docvqa_site.boards.snapshots import BoardsChangedError, write_snapshot
from docvqa_site.challenge.models import Phase
from evaluator.errors import ProblemError


class Command(BaseCommand):
    help = "Write a snapshot of all leaderboards to a new folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="a new folder")
        parser.add_argument("--phase", default="", help="only submissions made in this phase")
        parser.add_argument("--name", default="", help="the snapshot's name; by default the date")

    def handle(self, *_: object, folder: Path, name: str = "", phase: str = "", **__: object) -> None:
        now = timezone.now()
        try:
            write_snapshot(folder, name or f"{now:%Y-%m-%d}", now, phase)
        except Phase.DoesNotExist as error:
            raise CommandError(f"No track has a phase “{phase}”.") from error
        except ProblemError as error:
            raise CommandError(str(error)) from error
        except FileExistsError as error:
            raise CommandError(f"{folder} already exists; choose a new folder.") from error
        except BoardsChangedError as error:
            raise CommandError("The leaderboards changed in the meantime. Try again.") from error
        self.stdout.write(f"Wrote {folder}. Verify it with: python {folder / 'verify.py'}")
