"""Try this version on a backup, and migrate the site's database; see `docvqa_site.operations.upgrade`."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from typing_extensions import override

from docvqa_site.operations.schema import SchemaError
from docvqa_site.operations.snapshots import BackupError
from docvqa_site.operations.upgrade import Trial, try_upgrade


class Command(BaseCommand):
    help = (
        "Migrate a copy of a backup with this version and compare the ranks. If none changes, migrate the site's "
        "database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("backup", type=Path, help="the folder that `backup` wrote with the old version")
        parser.add_argument("--dry-run", action="store_true", help="leave the site's database as it is")
        parser.add_argument(
            "--accept-changes", action="store_true", help="migrate even if ranks change or can't be compared"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            trial = try_upgrade(options["backup"].resolve())
        except (BackupError, SchemaError, OSError) as error:
            raise CommandError(str(error)) from error
        self._report(trial)
        if trial.columns:
            raise CommandError("The migrated copy differs from the models, so this version would not work.")
        if options["dry_run"]:
            return
        if trial.changed_ranks != [] and not options["accept_changes"]:
            raise CommandError("The site's database is unchanged. To migrate anyway, add --accept-changes.")
        call_command("migrate", interactive=False, stdout=self.stdout)

    def _report(self, trial: Trial) -> None:
        made = f"{trial.manifest.made_at:%Y-%m-%d %H:%M} UTC by version {trial.manifest.version or 'unknown'}"
        self.stdout.write(f"Backup of {made}: {len(trial.migrations)} migrations applied to a copy.")
        for column in trial.columns:
            self.stdout.write(f"different column: {column}")
        if trial.changed_ranks is None:
            self.stdout.write("The backup has no ranks to compare with.")
            return
        for line in trial.changed_ranks:
            self.stdout.write(line)
        count = len(trial.changed_ranks)
        self.stdout.write(f"{count} rank changes." if count == 1 else f"{count} ranks change.")
