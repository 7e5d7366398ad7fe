"""L2: are the opened rounds what their record says? The comparison runs here, each round in a sandboxed process.

This process reads the record, the annex and the opening, and never loads the method's file. The one that trains gets
a round's key and the weights before it, the settings with the method's file, the training data and the base weights,
and writes a sum and weights. So a method can't read what it is compared with, nor reach the comparison.
"""

import json
from collections.abc import Callable

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.examinations import ExaminationJob, ReplayFindings
from evaluator.messages.jobs import ArtifactKind
from evaluator.sandbox.sandbox import SandboxError
from starter_kit.examining.confined import Confined, in_brief, training_data, training_limits
from starter_kit.examining.judging import Judgment
from starter_kit.replay import examination
from starter_kit.replay.examination import ReplayInputs
from starter_kit.replay.training import RoundRequest, TrainedRound

PROCESS = "starter_kit.replay.training"


def examine(job: ExaminationJob, confined: Confined, on_progress: Callable[[str], None]) -> Judgment:
    """Replay the last round of the run, and the drawn ones."""
    inputs = ReplayInputs(
        record=job.files[ArtifactKind.TRAINING_RECORD],
        annex=job.files[ArtifactKind.TRAINING_ANNEX],
        opening=job.files[ArtifactKind.ROUND_OPENING],
        settings=job.settings,
        challenge=job.challenge,
        drawn=job.rules.drawn_rounds,
        data=job.folder(job.data),
        base=job.folder(job.base),
    )
    return replay_confined(inputs, confined, hours=job.hours, on_progress=on_progress)


def replay_confined(
    inputs: ReplayInputs,
    confined: Confined,
    *,
    hours: float,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Judgment:
    """Replay in the sandbox; whatever the method does, the result is rounds that agree or a coded problem.

    Args:
        hours: How long one training may take.
    """
    found = ReplayFindings(challenge=inputs.challenge)
    try:
        replayed = examination.examine(inputs, lambda request: _train(request, confined, hours), on_progress)
    except ProblemError as error:
        return Judgment(found, error.problems)
    agreed = {"rounds": list(replayed.comparisons), "of": replayed.of, "exact": replayed.exact}
    return Judgment(found.model_copy(update=agreed), [])


def _train(request: RoundRequest, confined: Confined, hours: float) -> TrainedRound:
    readable = [request.settings.parent, request.before, request.base, *training_data(request.data)]
    try:
        return confined.ask(
            TrainedRound,
            PROCESS,
            "train",
            json.loads(request.model_dump_json()),
            readable=readable,
            writable=[request.out],
            limits=training_limits(hours),
        )
    except SandboxError as error:
        raise ProblemError.of(
            ErrorCode.REPLAY_TRAINING,
            where="the method's process",
            expected="a trained round",
            found=in_brief(error),
        ) from error
