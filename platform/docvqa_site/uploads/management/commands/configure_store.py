"""Print, set and try out what the site's bucket needs."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from typing_extensions import override

from docvqa_site.periods import PERIODS
from docvqa_site.uploads.bucket_rules import cors_rules, failed_checks, lifecycle_rules, site_policy
from docvqa_site.uploads.s3_store import S3Store, coded_problems
from evaluator.errors import ProblemError

# The site itself removes them first.
DAYS_LATER = 1


class Command(BaseCommand):
    help = "Print the rules required for the site's bucket; --apply sets them, --check tests the server."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--apply",
            action="store_true",
            help="Set CORS and lifecycle rules, replacing those of the bucket. Requires an administrator's "
            "credentials.",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="Send a small test file through the store the way a participant would.",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        bucket = settings.STORE_BUCKET
        if bucket is None:
            raise CommandError("PFL_STORE_URL doesn't name a bucket: this site stores files in a folder.")
        cors = cors_rules(settings.SITE_URL)
        lifecycle = lifecycle_rules(bucket, (PERIODS["uploads"].days or 7) + DAYS_LATER)
        self._print("CORS", cors)
        self._print("Lifecycle", lifecycle)
        self._print(
            "Policy for the site's credentials. Workers and participants don't need any", site_policy(bucket)
        )
        try:
            store = S3Store(bucket)
            if options["apply"]:
                with coded_problems():
                    store.client.put_bucket_cors(Bucket=bucket.name, CORSConfiguration=cors)
                    store.client.put_bucket_lifecycle_configuration(
                        Bucket=bucket.name, LifecycleConfiguration=lifecycle
                    )
                self.stdout.write(f"CORS and lifecycle of {bucket.name} are set.")
            if options["check"]:
                self._check(store)
        except ProblemError as error:
            raise CommandError(f"{error}\n{error.__cause__}") from error

    def _print(self, title: str, document: object) -> None:
        self.stdout.write(f"# {title}\n{json.dumps(document, indent=2)}\n")

    def _check(self, store: S3Store) -> None:
        if failed := failed_checks(store):
            raise CommandError("The server can't be used:\n  " + "\n  ".join(failed))
        self.stdout.write("The server meets all of the site's requirements.")
