from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import reset_second_factor


class Command(BaseCommand):
    help = "Remove the second factors of a person who has lost them and the recovery codes. Make sure that it is them."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = User.objects.get(email=options["email"].lower())
        except User.DoesNotExist as error:
            raise CommandError(f"No account has the address {options['email']}.") from error
        removed = reset_second_factor(user, actor=None)
        self.stdout.write(f"Removed {removed} second factors of {user.email}, who is logged out everywhere.")
