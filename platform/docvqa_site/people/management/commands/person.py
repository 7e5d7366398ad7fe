import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import user_by_address
from docvqa_site.people.erasing import erase, erase_traces
from docvqa_site.people.exporting import export, person_of
from docvqa_site.people.holdings import Person
from docvqa_site.teams.services import heir_of
from evaluator.errors import ProblemError


class Command(BaseCommand):
    help = "Export or erase what the site stores about a person. Make sure that it is them who ask."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        copy = verbs.add_parser("export", help="print all that is stored about a person, as JSON")
        gone = verbs.add_parser("erase", help="erase a person for good; results stay, without the name")
        for verb in (copy, gone):
            verb.add_argument("email", help="the address, or the number of an account")
        gone.add_argument("--yes", action="store_true", help="don't ask")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        asked = options["email"].lower()
        user = User.objects.filter(pk=asked).first() if asked.isdigit() else user_by_address(asked)
        person = person_of(user) if user else Person([asked])
        if options["verb"] == "export":
            self.stdout.write(json.dumps(export(person), indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))
        else:
            self._erase(person, asked, options["yes"])

    def _erase(self, person: Person, asked: str, is_sure: bool) -> None:
        if not is_sure and input(f"Erase {asked} for good? Type yes: ") != "yes":
            raise CommandError("Nothing was erased.")
        if person.user is None:
            count = erase_traces(person)
            self.stdout.write(f"No account has the address {asked}. Erased {count} rows that mention it.")
            return
        heir = heir_of(person.user)
        try:
            erase(person.user)
        except ProblemError as error:
            raise CommandError(f"{error.problem.message} {error.problem.next_step}") from error
        if heir:
            self.stdout.write(f"{heir.user} now owns {heir.team}.")
        self.stdout.write(
            f"Erased account {person.user.pk}. Note its number: after restoring an older backup, erase it again."
        )
