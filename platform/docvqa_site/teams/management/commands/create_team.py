from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.teams.selectors import team_of
from docvqa_site.teams.services import create_team
from evaluator.errors import ProblemError


class Command(BaseCommand):
    help = "Make a team. Nothing happens when the owner's team has this name already."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--owner", required=True, metavar="EMAIL", help="the address of an account")
        parser.add_argument("--affiliation", default="")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            owner = User.objects.get(email=options["owner"].lower(), is_active=True)
        except User.DoesNotExist as error:
            raise CommandError(f"No active account has the address {options['owner']}.") from error
        present = team_of(owner)
        if present and present.name == options["name"]:
            self.stdout.write(f"The team {present} exists already.")
            return
        try:
            team = create_team(owner, options["name"], affiliation=options["affiliation"])
        except ProblemError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Made the team {team}, owned by {owner.email}.")
