import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.urls import reverse
from typing_extensions import override

from docvqa_site.accounts.services import ensure_user, issue_second_factor, make_organizer, make_reviewer


class Command(BaseCommand):
    help = (
        "Create an account with a verified email address. An account that exists is updated: its name, "
        "its password if one is given, and its rights, which are added and never taken away."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", required=True, help="shown with the team's results")
        password = parser.add_mutually_exclusive_group()
        password.add_argument(
            "--password-stdin", action="store_true", help="read one line from standard input"
        )
        password.add_argument(
            "--password-env", metavar="VARIABLE", help="read it from this environment variable"
        )
        parser.add_argument("--staff", action="store_true", help="can open the admin site")
        parser.add_argument("--superuser", action="store_true", help="has all permissions")
        parser.add_argument(
            "--reviewer", action="store_true", help="can review privacy proofs; joins the group Reviewers"
        )
        parser.add_argument(
            "--organizer", action="store_true", help="organizes all tracks; joins the group Organizers"
        )
        parser.add_argument(
            "--second-factor",
            action="store_true",
            help="create an authenticator secret and recovery codes for the account, and print them",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            validate_email(options["email"])
            password = _password(options)
            if password is not None:
                validate_password(password)
            user, created = ensure_user(
                options["email"],
                name=options["name"],
                password=password,
                staff=any(options[right] for right in ("staff", "superuser", "reviewer", "organizer")),
                superuser=options["superuser"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        if options["reviewer"]:
            make_reviewer(user)
        if options["organizer"]:
            make_organizer(user)
        self.stdout.write(f"{'Made' if created else 'Updated'} the account of {user.email}.")
        if not user.has_usable_password():
            self.stdout.write("It has no password; its owner sets one with “Forgot your password?”.")
        if options["second_factor"]:
            secret, codes = issue_second_factor(user)
            self.stdout.write(f"Authenticator secret: {secret}\nRecovery codes: {' '.join(codes)}")
        elif user.lacks_second_factor:
            self.stdout.write(
                f"Its owner sets up a second factor at {settings.SITE_URL}{reverse('mfa_index')}"
            )


def _password(options: dict[str, Any]) -> str | None:
    if options["password_stdin"]:
        return sys.stdin.readline().rstrip("\r\n")
    if variable := options["password_env"]:
        if variable not in os.environ:
            raise CommandError(f"The environment variable {variable} is not set.")
        return os.environ[variable]
    return None
