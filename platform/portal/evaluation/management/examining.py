"""What the commands that examine runs have in common: the run, who examines it, and what is printed."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from evaluator.errors import ProblemError
from evaluator.sandbox.sandbox import SandboxError
from portal.accounts.models import User
from portal.evaluation.examining.kit_sandbox import CannotExamineError
from portal.evaluation.models import Examination
from portal.submissions.models import Run
from portal.submissions.selectors import competed_tracks


class ExaminingCommand(BaseCommand):
    """A command that examines a run and prints its new trust level; ends with status 1 if it didn't pass."""

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID, help="the run's id, as in the administration and in the API")
        parser.add_argument(
            "--by",
            metavar="EMAIL",
            help="the organizer who examines it; named on the run's page and on the board",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.select_related("submission__track").filter(pk=options["run"]).first()
        if run is None:
            raise CommandError(f"There is no run {options['run']}.")
        by = examiner_named(options["by"], run) if options["by"] else None
        try:
            examination = self.examine(run, by, options)
        except ProblemError as error:
            raise CommandError(str(error)) from error
        except (CannotExamineError, SandboxError) as error:
            raise CommandError(f"Nothing was examined, and nothing is stored. {error}") from error
        self.stdout.write(examination.read_report().in_words)
        run.refresh_from_db()
        level = run.results.trust_level
        self.stdout.write(f"Stored. {run}: {level.label if level is not None else 'no level'}.")
        if not examination.passed:
            raise CommandError("The examination has not been passed.")

    def examine(self, run: Run, by: User | None, options: dict[str, Any]) -> Examination:
        """Examine the run."""
        raise NotImplementedError


def examiner_named(email: str, run: Run) -> User:
    """Return the organizer with this address. Raises `CommandError` for anybody else, and for the run's competitors."""
    user = User.objects.filter(email=email.lower(), is_active=True, is_staff=True).first()
    if user is None:
        raise CommandError(f"No organizer's account has the address {email}.")
    if competed_tracks(user).filter(pk=run.submission.track_id).exists():
        raise CommandError(f"{user.name} competes in {run.submission.track} and examines nothing there.")
    return user
