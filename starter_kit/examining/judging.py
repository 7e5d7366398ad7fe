"""What all judges do around their examination: name the code that is examined, and put the findings into a report."""

import importlib
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from pydantic import BaseModel

from evaluator.errors import Problem
from evaluator.messages.examinations import CodeIdentity, ExaminationJob, Findings, JudgeAnswer, Report
from evaluator.messages.jobs import ArtifactKind, evaluator_version
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Sandbox, SandboxError, UnconfinedError
from starter_kit.examining.confined import CannotExamineError, Confined, in_brief

IDENTITY_LIMITS = Limits(wall_s=120, cpu_s=120, memory_bytes=4096 * MIB)


class Judgment(NamedTuple):
    """What a judge found, and why it found no more."""

    findings: Findings
    problems: list[Problem]


class KitIdentity(BaseModel):
    """The answer of `starter_kit.runs.code_identity.identify`."""

    code_sha256: str
    is_recorded: bool | None


def judge(job: ExaminationJob, on_progress: Callable[[str], None]) -> JudgeAnswer:
    """Examine what the job names."""
    began = perf_counter()
    with Sandbox() as sandbox:
        try:
            sandbox.require_confinement()
            confined = Confined(sandbox)
            identity = identify(job, confined)
            found: Judgment = importlib.import_module(job.judge).examine(job, confined, on_progress)
        except SandboxError as error:
            return JudgeAnswer(reason=in_brief(error))
        except (CannotExamineError, UnconfinedError) as error:
            return JudgeAnswer(reason=str(error))
    report = Report(
        seconds=perf_counter() - began, identity=identity, problems=found.problems, findings=found.findings
    )
    return JudgeAnswer(report=report)


def identify(job: ExaminationJob, confined: Confined) -> CodeIdentity:
    """Return which code an examination of these files is about. No method file is run for that."""
    record = job.files.get(ArtifactKind.TRAINING_RECORD)
    found = confined.ask(
        KitIdentity,
        "starter_kit.runs.code_identity",
        "identify",
        {"settings": str(job.settings), "record": record and str(record)},
        readable=[job.settings.parent, *([record] if record else [])],
        limits=IDENTITY_LIMITS,
    )
    return CodeIdentity(
        kit_version=evaluator_version(),
        code_sha256=found.code_sha256,
        settings_sha256=job.sha256[ArtifactKind.SETTINGS],
        method_sha256=job.sha256.get(ArtifactKind.METHOD_FILE, ""),
        is_recorded=found.is_recorded,
    )
