"""What became of a scenario's submissions, by the site's own database and mails."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from tests.faults.sites import Site

READ_RUNS = """
import json
from docvqa_site.submissions.models import Run
runs = Run.objects.filter(submission__title__startswith={name!r}).exclude(submission__state="draft")
print(json.dumps([
    {{
        "submission": str(run.submission_id),
        "title": run.submission.title,
        "state": run.state,
        "refunded": run.submission.refunded_at is not None,
        "attempts": [
            {{
                "state": evaluation.state,
                "step": evaluation.step,
                "scorings": evaluation.reports.filter(step="scoring", outcome="passed").count(),
            }}
            for evaluation in run.evaluations.order_by("attempt")
        ],
    }}
    for run in runs.select_related("submission")
]))
"""


class Attempt(BaseModel):
    """One evaluation: how it ended, in which step, and how many passed reports of its scoring are stored."""

    state: str
    step: str
    scorings: int


class EvaluatedRun(BaseModel):
    """One run of a submission. `mails` counts the mails with the submission's address."""

    submission: str
    title: str
    state: str
    refunded: bool
    attempts: list[Attempt]
    mails: int = 0

    @property
    def is_final(self) -> bool:
        return self.state in {"scored", "rejected", "failed"}

    @property
    def is_evaluated_twice(self) -> bool:
        passed = sum(attempt.state == "passed" for attempt in self.attempts)
        return passed > 1 or sum(attempt.scorings for attempt in self.attempts) > 1


@dataclass(frozen=True)
class Counts:
    """The counts of one scenario.

    Attributes:
        submitted: What participants submitted, as the site confirmed to them.
        lost: Those of them that the site doesn't have, or whose evaluation never ended.
        twice: Runs that passed, or were scored, more than once, and submissions that the site has twice.
        attempts: All evaluations; `lost_attempts` lost their worker, `failed_attempts` met a fault of the platform.
        most_mails: The most mails that were sent about one run.
    """

    submitted: int
    scored: int
    rejected: int
    failed: int
    lost: int
    twice: int
    attempts: int
    lost_attempts: int
    failed_attempts: int
    refunds: int
    mails: int
    most_mails: int

    @property
    def has_all_mails(self) -> bool:
        """Whether each run that is over has its mail."""
        return self.mails >= self.scored + self.rejected + self.failed


def findings(counts: Counts, *, failed: int = 0) -> list[str]:
    """Return what is wrong with the counts of a scenario in which so many runs had to fail."""
    expected = {
        "scored": counts.submitted - failed,
        "rejected": 0,
        "failed": failed,
        "lost": 0,
        "twice": 0,
        "refunds": failed,
        "mails": counts.submitted,
        "most_mails": 1,
    }
    found = {name: getattr(counts, name) for name in expected}
    return [
        f"{name}: {found[name]}, not {expected[name]}" for name in expected if found[name] != expected[name]
    ]


def read_runs(site: "Site", name: str) -> list[EvaluatedRun]:
    """Return the submitted runs of the scenario called `name`."""
    printed = site.manage("shell", "--no-imports", "-v", "0", "-c", READ_RUNS.format(name=name))
    runs = [EvaluatedRun.model_validate(row) for row in json.loads(printed.splitlines()[-1])]
    mails = "".join(path.read_text(errors="replace") for path in (site.home / "mail").glob("*"))
    return [run.model_copy(update={"mails": mails.count(f"/submissions/{run.submission}")}) for run in runs]


def count_runs(submitted: int, runs: Sequence[EvaluatedRun]) -> Counts:
    """Count the runs of a scenario in which the site confirmed so many submissions."""
    states = [run.state for run in runs]
    ends = [attempt.state for run in runs for attempt in run.attempts]
    final = {run.title for run in runs if run.is_final}
    return Counts(
        submitted=submitted,
        scored=states.count("scored"),
        rejected=states.count("rejected"),
        failed=states.count("failed"),
        lost=submitted - len(final),
        twice=sum(run.is_evaluated_twice for run in runs) + len(runs) - len({run.title for run in runs}),
        attempts=len(ends),
        lost_attempts=ends.count("lost"),
        failed_attempts=ends.count("failed"),
        refunds=sum(run.refunded for run in runs),
        mails=sum(run.mails for run in runs),
        most_mails=max((run.mails for run in runs), default=0),
    )
