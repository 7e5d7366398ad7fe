"""An honest team's way from its first run token to a public result, at the real site: no interruption flags it.

The workers' part of an evaluation is played by the messages that they would send.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docvqa_site.celery import app
from docvqa_site.evaluation.models import Evaluation
from docvqa_site.submissions.models import Run, RunToken
from docvqa_site.teams.models import Team
from evaluator.messages.api import SubmissionStatus
from evaluator.messages.jobs import REPORT_TASK, CheckStatus, Step
from starter_kit.commands.training_run import credentials_of
from starter_kit.runs.answering import read_both
from starter_kit.runs.folder import RunFolder
from starter_kit.settings.configuration import load_settings
from starter_kit.site.client import SiteClient
from starter_kit.site.credentials import Credentials
from starter_kit.submitting import SubmissionPlan, prepare, register_keys, send, unexplained_challenges
from tests.docvqa_site.evaluation.messages import make_accounting, make_report, signed
from tests.docvqa_site.factories import make_token
from tests.services.live_site import LiveSite
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.training_runs import trained

app.loader.import_default_modules()  # registers the tasks that workers call

CONFIG = "fl-provider-dp"


class Participant:
    """Somebody who trains on the pocket data with a site at hand, as `pfl train` does."""

    def __init__(self, site: SiteClient, base: Path, data: Path, folder: Path) -> None:
        self.site = site
        self.folder = folder
        self._inputs = base, data

    def credentials(self, out: Path, *, resumed: bool = False) -> Callable[[], Credentials]:
        key = self.folder / "key.pem"
        return credentials_of(load_settings(CONFIG), key, None, "track-2", self.site, out, resumed=resumed)

    def train(self, name: str, *changes: str, resume: bool = False) -> RunFolder:
        out = self.folder / name
        obtain = self.credentials(out, resumed=resume)
        settings = ["rounds=3", "target_epsilon=8", *changes]
        return trained(CONFIG, *self._inputs, out, settings, credentials=obtain, resume=resume)

    def train_until(self, replies: int, name: str) -> None:
        """Train, and be interrupted after so many clients' replies."""
        out = self.folder / name
        with pytest.raises(CutError):
            trained(
                CONFIG,
                *self._inputs,
                out,
                ["rounds=3", "target_epsilon=8"],
                credentials=self.credentials(out),
                watcher=CutOff(replies),
            )

    def plan(self, run: RunFolder) -> SubmissionPlan:
        proof = self.folder / "proof.md"
        proof.write_text("Because the noise is large enough.")
        return prepare(self.site, "track-2", [run.path], proof)

    def submit(self, run: RunFolder, title: str) -> SubmissionStatus:
        plan = self.plan(run)
        register_keys(self.site, plan)
        return send(self.site, plan, title, "Trained as the guide says.", lambda *_: None)


@pytest.fixture
def participant(
    site: LiveSite, site_client: SiteClient, settings: Any, base: Path, data: Path, tmp_path: Path
) -> Participant:
    settings.UPLOAD_PART_SIZE_BYTES = 10_000_000
    return Participant(site_client, base, data, tmp_path)


def evaluated(folder: RunFolder, submission: SubmissionStatus) -> Run:
    """The only run of the submission, after a worker has reported on all of its steps."""
    run = Run.objects.get(submission=submission.id)
    record, _ = read_both(folder.path)
    for step in (Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING, Step.SCORING):
        evaluation = Evaluation.objects.get(run=run)
        fields = {}
        if step is Step.ACCOUNTING:
            fields["result"] = make_accounting(
                run, run_token=record.run.run_token, public_key=record.end.public_key
            )
        app.tasks[REPORT_TASK](signed(make_report(evaluation, step, **fields)))
    return Run.objects.get(pk=run.pk)


def tries_of(run: Run) -> tuple[CheckStatus, str]:
    run = Run.objects.get(pk=run.pk)
    found = next(check for check in run.results.checks if check.id == "team.declared_runs")
    return found.status, found.found


def test_a_team_that_starts_over_resumes_and_submits_has_spent_one_token(participant: Participant) -> None:
    by_hand = participant.site.issue_run_token("track-2").token
    participant.train_until(2, "run")
    shutil.rmtree(participant.folder / "run.unfinished")
    participant.train_until(5, "run")
    run = participant.train("run", resume=True)
    assert run.record(max_rounds=3).run.run_token == by_hand
    scored = evaluated(run, participant.submit(run, "Mine"))
    assert RunToken.objects.count() == 1
    assert tries_of(scored) == (
        CheckStatus.PASSED,
        "1 training run accounted for, 0 unresolved challenges, 0 unused tokens, 0 training runs declared as tuning",
    )


def test_a_team_that_trains_again_and_submits_the_second_run_alone_is_not_flagged(
    participant: Participant,
) -> None:
    first = participant.train("first")
    second = participant.train("second", "server_learning_rate=0.5")
    tokens = [run.record(max_rounds=3).run.run_token for run in (first, second)]
    assert len(set(tokens)) == 2
    status, found = tries_of(evaluated(second, participant.submit(second, "Better")))
    assert (status, found) == (
        CheckStatus.NO_POWER,
        "1 training run accounted for, 0 unresolved challenges, 1 unused token, 0 training runs declared as tuning",
    )


def test_runs_that_are_trained_one_after_the_other_can_all_be_submitted(participant: Participant) -> None:
    runs = [participant.train(name) for name in ("first", "second")]
    submissions = [participant.submit(run, run.path.name) for run in runs]
    # Of the two, the one that was uploaded later is accounted first.
    later, earlier = (evaluated(runs[number], submissions[number]) for number in (1, 0))
    assert [tries_of(run)[0] for run in (later, earlier)] == [CheckStatus.PASSED] * 2


def test_a_team_reads_on_submitting_which_unresolved_challenges_it_has_to_explain(
    participant: Participant, team: Team
) -> None:
    run = participant.train("run")
    (own,) = RunToken.objects.all()
    lost = make_token(team, own.track, record_sha256="5" * 64)
    plan = participant.plan(run)
    assert unexplained_challenges(participant.site, plan) == [lost.token]
    scored = evaluated(run, participant.submit(run, "Mine"))
    assert tries_of(scored)[0] is CheckStatus.FLAGGED
    participant.site.explain_challenge(lost.token, "The disk was full.")
    assert unexplained_challenges(participant.site, plan) == []
