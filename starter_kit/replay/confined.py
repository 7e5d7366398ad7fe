"""A replay of untrusted code: the comparison here, the round in a sandboxed process that it can't leave.

This process reads the record, the annex and the opening, and never loads the method's file. The one that trains gets
the round's key and the weights before it, the settings with the method's file, the training data and the base weights,
and writes a sum and weights. So a method can't read what it is compared with, nor reach the comparison.
"""

import json
from pathlib import Path
from time import perf_counter

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.examinations import ReplayReport
from evaluator.sandbox.judging import run_judge
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Sandbox, SandboxError
from starter_kit.replay.examination import ReplayInputs, examine
from starter_kit.replay.training import RoundRequest, TrainedRound

KIT = Path(__file__).parents[1]
PROCESS = "starter_kit.replay.training"
# Of the data folder, what a training reads. A test set that is there as well stays out of reach.
TRAINING_DATA = ("dataset.json", "train", "valid", "images")
DETAIL_CHARACTERS = 300
HOUR_S = 3600


class ConfinedReplay(BaseModel):
    """What a confined replay is made of.

    Attributes:
        hours: How long a training may take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: ReplayInputs
    hours: float = 6

    @property
    def limits(self) -> Limits:
        """The limits of a training's process."""
        return Limits(
            wall_s=self.hours * HOUR_S,
            cpu_s=1000 * HOUR_S,
            memory_bytes=64 * 1024 * MIB,
            file_bytes=16 * 1024 * MIB,
            open_files=4096,
        )


def replay_confined(asked: ConfinedReplay, sandbox: Sandbox) -> ReplayReport:
    """Replay in the sandbox; whatever the method does, the result is a round that agrees or a coded problem."""
    begun, challenge = perf_counter(), asked.inputs.challenge
    try:
        replayed = examine(asked.inputs, lambda request: _train(asked, sandbox, request))
    except ProblemError as error:
        return ReplayReport(challenge=challenge, seconds=perf_counter() - begun, problems=error.problems)
    return ReplayReport(
        challenge=challenge,
        seconds=perf_counter() - begun,
        round=replayed.round,
        exact=replayed.comparison.exact,
    )


def _train(asked: ConfinedReplay, sandbox: Sandbox, request: RoundRequest) -> TrainedRound:
    data = [path for name in TRAINING_DATA if (path := request.data / name).exists()]
    try:
        raw = sandbox.run(
            PROCESS,
            "train",
            json.loads(request.model_dump_json()),
            readable=[KIT, request.settings.parent, request.before, request.base, *data],
            writable=[request.out],
            limits=asked.limits,
        )
        return TrainedRound.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        # Its own text would quote what was sent.
        raise _failed("a message of another form") from error
    except SandboxError as error:
        raise _failed(f"{error}. {error.output[-DETAIL_CHARACTERS:]}".strip()) from error


def _failed(found: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.REPLAY_TRAINING, where="the method's process", expected="a trained round", found=found
    )


if __name__ == "__main__":
    run_judge(ConfinedReplay, replay_confined)
