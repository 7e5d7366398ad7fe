from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from docvqa_site.accounts.models import TOKEN_DAYS, Scope, User
from docvqa_site.accounts.services import create_token
from evaluator.errors import ProblemError


class Command(BaseCommand):
    help = "Make an API token for an account and print its secret, and nothing else."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--label", required=True, help="where it is used, such as “training cluster”")
        parser.add_argument("--scope", choices=Scope.values, default=Scope.SUBMIT.value)
        parser.add_argument("--days", type=int, default=TOKEN_DAYS, help="how long it is valid")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = User.objects.get(email=options["email"].lower(), is_active=True)
        except User.DoesNotExist as error:
            raise CommandError(f"No active account has the address {options['email']}.") from error
        scope = Scope(options["scope"])
        try:
            _, secret = create_token(user, options["label"], scope=scope, days=options["days"])
        except ProblemError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(secret)
