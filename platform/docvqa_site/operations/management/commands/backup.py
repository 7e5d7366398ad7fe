"""Back the site up while it runs; see `docvqa_site.operations.backup`."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from typing_extensions import override

from docvqa_site.operations.backup import make_backup
from docvqa_site.operations.snapshots import BackupError


class Command(BaseCommand):
    help = "Back up the database and its files to a new folder. The site can keep running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="a new or empty folder")
        parser.add_argument(
            "--copy",
            action="store_true",
            help="copy files even if they could be hard-linked on the same disk",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = make_backup(options["folder"].resolve(), link=not options["copy"])
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        size = sum(file.size_bytes for file in manifest.files)
        self.stdout.write(f"Backed up the database and {len(manifest.files)} files of {size} bytes.")
        if manifest.removed:
            self.stdout.write(f"{len(manifest.removed)} files were removed from the site meanwhile.")
        if manifest.unexpected:
            self.stderr.write(
                "These files aren't what their uploaders announced. If a run was scored on one, the store has damaged "
                f"it: {', '.join(manifest.unexpected)}"
            )
