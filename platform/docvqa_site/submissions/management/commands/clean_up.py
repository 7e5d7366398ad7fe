"""Remove what the rules of retention say; the clock does the same every hour."""

import sys
from typing import Any

from django.core.management.base import BaseCommand
from typing_extensions import override

from docvqa_site.submissions.retention import clean_up


class Command(BaseCommand):
    help = "Remove abandoned uploads, old drafts' files, old checkpoints and expired sessions."

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        for rule, count in clean_up(limit=sys.maxsize).items():
            self.stdout.write(f"{rule}: {count} removed.")
