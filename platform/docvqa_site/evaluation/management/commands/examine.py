"""`manage.py examine RUN --level 1|2|3`: examine a run on this machine, for a trust level."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from typing_extensions import override

from docvqa_site.accounts.models import User
from docvqa_site.evaluation.examining import requests, running
from docvqa_site.evaluation.examining.levels import LEVELS, Effort, Folder
from docvqa_site.evaluation.models import Examination, ExaminationState
from docvqa_site.submissions.models import Run
from docvqa_site.submissions.selectors import competed_tracks
from evaluator.errors import ProblemError
from evaluator.messages.jobs import TrustLevel


class Command(BaseCommand):
    help = "Examine a run in this machine's sandbox to earn a trust level; see docs/examinations.md."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID, help="the run's id, as shown in the admin area and the API")
        parser.add_argument("--level", type=int, choices=[level.value for level in LEVELS], required=True)
        parser.add_argument(
            "--by",
            metavar="EMAIL",
            help="the examining organizer's email address; named on the run's page and on the leaderboard",
        )
        parser.add_argument("--data", type=Path, help="the data folder with the training split")
        parser.add_argument("--base", type=Path, help="the base weights; default: this worker's")
        parser.add_argument(
            "--test-set", type=Path, help="the data folder with the test split; default: this worker's"
        )
        parser.add_argument(
            "--repeat", type=int, default=Effort.repeats, help="how many times to train the whole run"
        )
        parser.add_argument(
            "--hours", type=float, default=Effort.hours, help="maximum hours for one training run"
        )
        parser.add_argument(
            "--timeout-s",
            type=int,
            default=Effort.timeout_s,
            help="maximum CPU seconds for each process that runs the method on synthetic data",
        )

    @override
    def handle(self, *_: Any, **options: Any) -> None:
        run = Run.objects.select_related("submission__track").filter(pk=options["run"]).first()
        if run is None:
            raise CommandError(f"There is no run {options['run']}.")
        by = examiner_named(options["by"], run) if options["by"] else None
        effort = Effort(options["timeout_s"], options["hours"], max(1, options["repeat"]))
        given = {folder: options[folder] for folder in Folder if options[folder]}
        try:
            examination = taken(run, TrustLevel(options["level"]), by)
            running.run(examination, effort, given)
        except ProblemError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            requests.cancel(examination, actor=by)
            raise CommandError("The examination was canceled.") from None
        self._report(examination)

    def _report(self, examination: Examination) -> None:
        if examination.state == ExaminationState.BROKEN:
            raise CommandError(f"Nothing was examined. {examination.reason}")
        if examination.report is None:
            raise CommandError(f"The examination was {examination.state}.")
        run = Run.objects.select_related("submission").get(pk=examination.run_id)
        self.stdout.write(examination.found.in_words)
        self.stdout.write(f"Stored. {run}: {run.results.trust_label or 'no level'}.")
        if not examination.passed:
            raise CommandError("The run did not pass the examination.")


@transaction.atomic
def taken(run: Run, level: TrustLevel, by: User | None) -> Examination:
    """Request an examination and take it at once, before another machine does. Raises `ProblemError` as `request`."""
    examination = requests.take(requests.request(run, level, by=by))
    assert examination is not None  # noqa: S101  (nobody else sees it before the transaction ends)
    return examination


def examiner_named(email: str, run: Run) -> User:
    """Return the organizer with this address. Raises `CommandError` for anybody else, and for the run's competitors."""
    user = User.objects.filter(email=email.lower(), is_active=True, is_staff=True).first()
    if user is None:
        raise CommandError(f"No organizer's account has the address {email}.")
    if competed_tracks(user).filter(pk=run.submission.track_id).exists():
        raise CommandError(f"{user.name} competes in {run.submission.track} and can't examine runs there.")
    return user
