"""What the site, the broker and the worker add to the computation of an evaluation, with each kind of broker.

One submission after the other goes to an idle site whose worker has loaded its libraries. What is left of the time from
the submission to the score, without the time that the steps say they took, is the pipeline's.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.states import FINAL_STATES
from starter_kit.site.client import SiteClient
from starter_kit.submitting import PlannedRun, SubmissionPlan, send
from tests.demo.stack import Stack
from tests.e2e.conftest import make_participant, new_stack, trained  # noqa: F401
from tests.evaluator.worker.brokers import BROKERS, Brokers
from tests.faults.traffic import Material

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1200)]

SUBMISSIONS = 10
MAX_OVERHEAD_S = 0.5
PATIENCE_S = 120
# Of each scored run, in seconds: from the submission to the score, and what its steps took.
READ_TIMES = """
import json
from datetime import datetime
from docvqa_site.submissions.models import Run
times = []
for run in Run.objects.filter(state="scored").order_by("submission__submitted_at"):
    reports = run.evaluations.get().reports.all()
    steps = [
        (datetime.fromisoformat(report.provenance["finished_at"])
         - datetime.fromisoformat(report.provenance["started_at"])).total_seconds()
        for report in reports
    ]
    times.append([(run.scored_at - run.submission.submitted_at).total_seconds(), sum(steps), len(steps)])
print(json.dumps(times))
"""


@pytest.mark.parametrize("kind", BROKERS)
def test_what_the_pipeline_adds(
    kind: str,
    new_stack: Callable[..., Stack],  # noqa: F811
    trained: Path,  # noqa: F811
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    brokers = Brokers(tmp_path_factory.mktemp)
    try:
        variables = {} if kind == "embedded" else {"PFL_BROKER_URL": brokers.get(kind).url}
        stack = new_stack(**variables)
        overrides = ["*.reference=vt5-small", "*.test_set=small", '*.phases=[{"submissions_per_day": 100}]']
        stack.manage(
            "load_tracks", "--publish", *(word for override in overrides for word in ("--set", override))
        )
        client = SiteClient(stack.url, make_participant(stack, "ada@lab.example", "Team"))
        material = Material(trained / "base", trained / "fedavg" / "communication_log.csv", tmp_path)
        for number in range(SUBMISSIONS + 1):
            submit(client, material, number)
        # The first one waited for libraries to load.
        times = json.loads(stack.manage("shell", "--no-imports", "-v", "0", "-c", READ_TIMES))[1:]
        stack.stop()
    finally:
        brokers.stop()
    overheads = [whole - steps for whole, steps, _ in times]
    median, worst = statistics.median(overheads), max(overheads)
    print(
        f"\n{kind}: {median:.2f} s added to a submission of {times[0][2]} steps, {worst:.2f} s at most of {len(times)}"
    )
    assert median < MAX_OVERHEAD_S


def submit(client: SiteClient, material: Material, number: int) -> None:
    """Submit a new checkpoint and wait for its score."""
    checkpoint = material.checkpoint(number)
    files = {ArtifactKind.CHECKPOINT: checkpoint, ArtifactKind.COMMUNICATION_LOG: material.log}
    plan = SubmissionPlan("track-1", [PlannedRun(None, files)], None)
    submission = send(client, plan, f"Number {number}", "", lambda *_: None)
    deadline = time.monotonic() + PATIENCE_S
    while client.submission(submission.id).runs[0].state not in FINAL_STATES:
        assert time.monotonic() < deadline
        time.sleep(0.5)
