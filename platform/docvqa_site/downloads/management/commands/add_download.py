from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils.text import slugify
from typing_extensions import override

from docvqa_site.downloads.models import DownloadKind, Terms
from docvqa_site.downloads.services import add_download
from docvqa_site.licenses import validate_license
from evaluator.errors import ProblemError

FIELDS = ("kind", "title", "summary", "license", "license_url")


class Command(BaseCommand):
    help = "Put a file into the store and offer it on the data page. An earlier one with the same slug is replaced."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--kind", choices=DownloadKind.values, required=True)
        parser.add_argument("--title", required=True)
        parser.add_argument("--license", required=True, help="an SPDX identifier, such as CC-BY-4.0")
        parser.add_argument("--license-url", default="")
        parser.add_argument("--summary", default="")
        parser.add_argument(
            "--slug", help="the download's part of the address; by default, derived from the title"
        )
        parser.add_argument(
            "--terms",
            type=int,
            metavar="ID",
            help="ID of the terms, on the admin site, that must be accepted first",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            validate_license(options["license"])
        except ValidationError as error:
            raise CommandError(f"--license: {' '.join(error.messages)}") from error
        if not path.is_file():
            raise CommandError(f"{path}: there is no such file.")
        terms = Terms.objects.filter(pk=options["terms"]).first() if options["terms"] else None
        if options["terms"] and terms is None:
            raise CommandError(f"There are no terms with the id {options['terms']}.")
        try:
            download = add_download(
                path,
                options["slug"] or slugify(options["title"]),
                **{name: options[name] for name in FIELDS},
                terms=terms,
            )
        except (ProblemError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{download.get_absolute_url()}  {download.size_bytes} bytes  sha256 {download.sha256}"
        )
