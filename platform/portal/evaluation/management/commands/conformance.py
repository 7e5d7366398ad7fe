"""`manage.py conformance RUN`: examine a run's method, for trust level L1."""

from argparse import ArgumentParser
from typing import Any

from typing_extensions import override

from portal.accounts.models import User
from portal.evaluation.examining.conformance import examine_method
from portal.evaluation.management.examining import ExaminingCommand
from portal.evaluation.models import Examination
from portal.submissions.models import Run


class Command(ExaminingCommand):
    help = "Run the harness of pfl conformance on a run's attached settings and method file, in the sandbox (L1)."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--timeout-s",
            type=int,
            default=60,
            help="seconds of computing for each of the method's processes",
        )

    @override
    def examine(self, run: Run, by: User | None, options: dict[str, Any]) -> Examination:
        return examine_method(run, by=by, timeout_s=options["timeout_s"])
