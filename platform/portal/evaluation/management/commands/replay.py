"""`manage.py replay RUN`: train the opened round of a run again, for trust level L2."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from typing_extensions import override

from portal.accounts.models import User
from portal.evaluation.examining.replay import ReplayOptions, replay_round
from portal.evaluation.management.examining import ExaminingCommand
from portal.evaluation.models import Examination
from portal.submissions.models import Run


class Command(ExaminingCommand):
    help = "Train the drawn round of a replayable run again, on your data and in the sandbox, and compare it (L2)."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--data", type=Path, required=True, help="data folder with the training split")
        parser.add_argument("--base", type=Path, required=True, help="folder of the base weights")
        parser.add_argument(
            "--hours", type=float, default=6, help="how long one training of the round may take"
        )

    @override
    def examine(self, run: Run, by: User | None, options: dict[str, Any]) -> Examination:
        given = ReplayOptions(options["data"], options["base"], options["hours"])
        return replay_round(run, given, by=by)
