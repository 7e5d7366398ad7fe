"""Restore a backup into an empty site, or verify it; see `docvqa_site.operations.restore`."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from typing_extensions import override

from docvqa_site.operations.restore import restore_backup, verify_backup
from docvqa_site.operations.snapshots import BackupError
from evaluator.errors import ProblemError


class Command(BaseCommand):
    help = (
        "Restore a backup into an empty database and an empty store, comparing every file with its SHA-256."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder written by `backup`")
        parser.add_argument(
            "--verify-only", action="store_true", help="verify all files without restoring anything"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        act = verify_backup if options["verify_only"] else restore_backup
        try:
            manifest = act(options["folder"].resolve())
        except (BackupError, ProblemError, OSError) as error:
            raise CommandError(str(error)) from error
        done = "Verified" if options["verify_only"] else "Restored and verified"
        self.stdout.write(
            f"{done} the database and {len(manifest.files)} files of {manifest.made_at:%Y-%m-%d %H:%M} UTC."
        )
