"""For cron: remove uploads that were never completed, and files that nothing refers to."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from typing_extensions import override

from portal.uploads.services import abort_stale


class Command(BaseCommand):
    help = "Remove uploads that were abandoned more than some days ago."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--days", type=float, default=7, help="How old an abandoned upload is (default 7)."
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        count = abort_stale(timedelta(days=options["days"]))
        self.stdout.write(f"{count} abandoned uploads removed.")
