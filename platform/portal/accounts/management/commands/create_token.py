from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from portal.accounts.models import User
from portal.accounts.services import create_token


class Command(BaseCommand):
    help = "Make an API token for an account and print its secret, and nothing else."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--label", required=True, help="where it is used, such as “training cluster”")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = User.objects.get(email=options["email"].lower(), is_active=True)
        except User.DoesNotExist as error:
            raise CommandError(f"No active account has the address {options['email']}.") from error
        _, secret = create_token(user, options["label"])
        self.stdout.write(secret)
