"""`manage.py rerun RUN`: train a run again, for trust level L3."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from typing_extensions import override

from portal.accounts.models import User
from portal.evaluation.examining.rerun import RerunOptions, rerun
from portal.evaluation.management.examining import ExaminingCommand
from portal.evaluation.models import Examination
from portal.submissions.models import Run


class Command(ExaminingCommand):
    help = "Train a run again from its attached settings and method file, in the sandbox, and compare the scores (L3)."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--data", type=Path, required=True, help="the data folder with the training split"
        )
        parser.add_argument("--base", type=Path, help="the base weights; by default this worker's")
        parser.add_argument(
            "--test-set", type=Path, help="the data folder with the test split; by default this worker's"
        )
        parser.add_argument(
            "--repeat", type=int, default=5, help="how often to train; the scores' variation takes at least 3"
        )
        parser.add_argument("--hours", type=float, default=24, help="how long one training may take")

    @override
    def examine(self, run: Run, by: User | None, options: dict[str, Any]) -> Examination:
        chosen = RerunOptions(
            data=_folder(options["data"]),
            base=_folder(options["base"] or _of_worker("references", run.rules.get("reference", ""))),
            test_set=_folder(options["test_set"] or _of_worker("test_sets", run.rules.get("test_set", ""))),
            repeat=max(1, options["repeat"]),
            hours=options["hours"],
        )
        return rerun(run, chosen, by=by, on_progress=self.stdout.write)


def _of_worker(kind: str, name: str) -> Path:
    return Path(os.environ.get("PFL_EVALUATOR_HOME") or Path.cwd() / "var" / "evaluator") / kind / name


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise CommandError(f"{path} is not a folder.")
    return path
