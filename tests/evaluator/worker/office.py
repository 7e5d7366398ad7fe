"""The site's place at a real broker, with real workers and artifacts over HTTP."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from celery import Celery
from celery.__main__ import main as celery

from evaluator.messages.file_hash import sha256_of
from evaluator.messages.inventories import INVENTORY_TASK, Inventory
from evaluator.messages.jobs import (
    EVALUATOR_QUEUE,
    INTAKE_QUEUE,
    PROGRESS_TASK,
    REPORT_TASK,
    SCORING_QUEUE,
    STEP_TASK,
    ArtifactKind,
    ArtifactRef,
    EvaluationJob,
    Progress,
    Step,
    TrackRules,
    WorkerReport,
)
from evaluator.messages.signed import SignedMessage, is_signed_with
from evaluator.worker.broker import broker_settings
from tests.evaluator.worker.artifact_server import ArtifactServer
from tests.services.forked import Forked

RULES = TrackRules(reference="tiny", test_set="secret", clients=2)
QUEUES = f"{EVALUATOR_QUEUE},{SCORING_QUEUE}"
SECRET = "5ec2e7" + "0" * 58
# How long to wait for what happens in any case; longer than the busiest machine takes.
PATIENCE_S = 120


@dataclass
class Office:
    """Sends jobs, receives reports and progress, over the broker at `url`."""

    url: str
    home: Path
    folder: Path
    servers: list[ArtifactServer] = field(default_factory=list)
    workers: list[Forked] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    reports: list[WorkerReport] = field(default_factory=list)
    inventories: list[Inventory] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.app = Celery("office")
        self.app.conf.update(broker_settings(self.url))
        self.declare()

    def declare(self) -> None:
        """Make the queues, empty, as the site does when it starts."""
        with self.app.connection_for_write() as connection:
            for name in (EVALUATOR_QUEUE, SCORING_QUEUE, INTAKE_QUEUE):
                queue = self.app.amqp.queues[name](connection.default_channel)
                queue.declare()
                queue.purge()

    def start_worker(
        self,
        app: str = "evaluator.worker",
        queues: str = QUEUES,
        program: Callable[[], object] = celery,
        **variables: str,
    ) -> Forked:
        environment = {**os.environ, "PFL_BROKER_URL": self.url, "PFL_EVALUATOR_HOME": str(self.home)}
        command = ["celery", "-A", app, "worker", "-P", "solo", "-Q", queues]
        command += ["-n", f"w{len(self.workers)}@test", "-l", "INFO"]
        log = self.folder / "worker.log"
        worker = Forked(
            program,
            command,
            environment={**environment, **variables},
            folder=self.folder,
            stdout=log,
            stderr=log,
        )
        self.workers.append(worker)
        return worker

    def log(self) -> str:
        return (self.folder / "worker.log").read_text()

    def serve(self, kind: ArtifactKind, path: Path) -> ArtifactRef:
        server = ArtifactServer(path.read_bytes())
        self.servers.append(server)
        return ArtifactRef(
            kind=kind, upload=uuid4(), url=server.url, size_bytes=path.stat().st_size, sha256=sha256_of(path)
        )

    def serve_checkpoint(self) -> ArtifactRef:
        return self.serve(ArtifactKind.CHECKPOINT, self.home / "references" / "tiny" / "model.safetensors")

    def send(
        self,
        step: Step,
        artifacts: list[ArtifactRef],
        rules: TrackRules = RULES,
        *,
        is_rehearsal: bool = False,
        **others: object,
    ) -> EvaluationJob:
        """Send a job to the workers; `others` are fields that this version of them doesn't know."""
        job = EvaluationJob(
            evaluation=uuid4(),
            attempt=1,
            step=step,
            secret=SECRET,
            rules=rules,
            artifacts=artifacts,
            is_rehearsal=is_rehearsal,
        )
        queue = SCORING_QUEUE if step is Step.SCORING else EVALUATOR_QUEUE
        self.app.send_task(STEP_TASK, [{**job.model_dump(mode="json"), **others}], queue=queue)
        return job

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def receive(self, until: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Take messages of the intake queue until `until` is true."""
        deadline = time.monotonic() + timeout_s
        with self.app.connection_for_read() as connection:
            intake: Any = self.app.amqp.queues[INTAKE_QUEUE]
            queue = connection.SimpleQueue(intake)
            while not until():
                assert time.monotonic() < deadline, self.log()
                try:
                    message = queue.get(timeout=0.5)
                except queue.Empty:
                    continue
                self._file(message.headers["task"], message.payload[0][0])
                message.ack()

    def receive_for(self, seconds: float) -> None:
        """Take what arrives in so many seconds."""
        end = time.monotonic() + seconds
        self.receive(lambda: time.monotonic() > end)

    def report_on(self, step: Step, artifacts: list[ArtifactRef], rules: TrackRules = RULES) -> WorkerReport:
        job = self.send(step, artifacts, rules)
        self.receive(lambda: bool(self.reports_on(job)))
        return self.reports[-1]

    def reports_on(self, job: EvaluationJob) -> list[WorkerReport]:
        return [report for report in self.reports if report.evaluation == job.evaluation]

    def progress_of(self, job: EvaluationJob) -> list[Progress]:
        return [progress for progress in self.progress if progress.evaluation == job.evaluation]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        for server in self.servers:
            server.stop()
        self.app.close()

    def _file(self, task: str, message: Any) -> None:
        if task == INVENTORY_TASK:
            self.inventories.append(Inventory.model_validate(message))
            return
        signed = SignedMessage.model_validate(message)
        assert is_signed_with(SECRET, signed)
        if task == REPORT_TASK:
            self.reports.append(WorkerReport.model_validate_json(signed.content))
        else:
            assert task == PROGRESS_TASK
            self.progress.append(Progress.model_validate_json(signed.content))
