"""`manage.py freeze FOLDER`: a snapshot of the leaderboards that is verified without the site."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from portal.boards.snapshots import BoardsChangedError, write_snapshot
from portal.challenge.models import Phase


class Command(BaseCommand):
    help = "Write a snapshot of all leaderboards to a new folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder that doesn't exist yet")
        parser.add_argument("--phase", default="", help="only what was submitted in the phase of this name")
        parser.add_argument("--name", default="", help="the snapshot's name; the date, if there is none")

    def handle(self, *_: object, folder: Path, name: str = "", phase: str = "", **__: object) -> None:
        now = timezone.now()
        try:
            write_snapshot(folder, name or f"{now:%Y-%m-%d}", now, phase)
        except Phase.DoesNotExist as error:
            raise CommandError(f"No track has a phase “{phase}”.") from error
        except FileExistsError as error:
            raise CommandError(f"{folder} exists; name a new folder.") from error
        except BoardsChangedError as error:
            raise CommandError(f"The boards changed meanwhile. Remove {folder}, then try again.") from error
        self.stdout.write(f"{folder} is written. Verify it with: python {folder / 'verify.py'}")
