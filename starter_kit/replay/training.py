"""Training one opened round again, from its weights and its key, by the run's own code.

`train` is for a sandbox: it loads the method's file, which may be anybody's. It is given neither the sum nor the
weights that it should come to, so that code can't repeat what it is compared with.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.records.certificate import Floats
from evaluator.records.lines import RunLine
from evaluator.records.round_keys import OpenedKeys
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.rounds import Round, Server
from starter_kit.runs.progress import Watcher
from starter_kit.runs.record_line import run_line
from starter_kit.runs.replayable import check_replayable
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import RunSettings

# The files that a training writes: uₜ and wₜ, little-endian float32.
UPDATE, WEIGHTS = "update.f32", "weights.f32"


class RoundRequest(BaseModel):
    """Which round to train, and from what.

    Attributes:
        settings: The run's settings, with the method's file beside them if it isn't the kit's.
        run_token, round, key, interruptions: See `OpenedKeys`; the key is in hexadecimal.
        track: Of the record.
        before: The file of w₍ₜ₋₁₎ (d,), little-endian float32.
        out: The folder to write into.
        noise: A factor on the noise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: Path
    data: Path
    base: Path
    run_token: str | None
    track: str
    round: int
    key: str = Field(repr=False)
    interruptions: int
    before: Path
    out: Path
    noise: float = 1.0

    @property
    def keys(self) -> OpenedKeys:
        """The keys of the round."""
        return OpenedKeys(self.round, bytes.fromhex(self.key), self.run_token, self.interruptions)


class TrainedRound(BaseModel):
    """The outcome of a training, beside the vectors that it wrote.

    Attributes:
        terms: What the first line of a record of these files would state.
        providers: How many providers each client has.
        sampled: How many of them took part, of each client that did.
        problems: Why there is no outcome.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    terms: RunLine | None = None
    providers: dict[int, int] = {}
    sampled: dict[int, int] = {}
    problems: list[Problem] = []


def train(inputs: Any, _: Callable[[object], None]) -> Any:
    """Train what a `RoundRequest` asks, and return a `TrainedRound`; both as JSON."""
    try:
        trained = train_round(RoundRequest.model_validate(inputs))
    except MemoryError:
        # The sandbox reports it.
        raise
    except ProblemError as error:
        trained = TrainedRound(problems=error.problems)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the method's own, whatever it is
        found = f"{type(error).__name__}: {error}"
        trained = TrainedRound(problems=[Problem.of(ErrorCode.REPLAY_TRAINING, where="a round", found=found)])
    return trained.model_dump(mode="json", by_alias=True)


def train_round(request: RoundRequest) -> TrainedRound:
    """Train the round, and write its sum and its weights.

    Raises:
        ProblemError: The settings, the data or the base can't be used, or the run isn't replayable.
    """
    settings = load_settings(str(request.settings))
    setup = RunSetup(settings, data=request.data, base=request.base)
    check_replayable(setup, apart=False)
    setup.start_from(request.run_token or "")
    terms = run_line(setup, 0.0, track=request.track, run_token=request.run_token, apart=False)
    if request.noise != 1:
        noisier = _with_noise(settings, terms.noise.multiplier * request.noise)
        setup = RunSetup(noisier, data=request.data, base=request.base)
        setup.start_from(request.run_token or "")
    finished = _train(setup, request)
    _write(request.out / UPDATE, finished.aggregate.total.numpy())
    _write(request.out / WEIGHTS, finished.weights.numpy())
    return TrainedRound(
        terms=terms,
        providers={client.id: len(client.providers) for client in setup.clients},
        sampled=finished.sampled,
    )


def _train(setup: RunSetup, request: RoundRequest) -> Round:
    """Run the round with clients in this process, which is what every engine of one machine comes to."""
    server = Server(
        setup.method,
        LocalEngine(setup.participant(Watcher().pages)),
        setup.aggregation,
        setup.stream,
        needs_all=setup.needs_every_client,
        draws=request.keys,
        turns=setup.model.turns,
    )
    return server.round(request.round, torch.from_numpy(np.fromfile(request.before, "<f4")))


def _with_noise(settings: RunSettings, multiplier: float) -> RunSettings:
    values = settings.model_dump() | {"noise_multiplier": multiplier, "target_epsilon": None}
    return type(settings).model_validate(values)


def _write(path: Path, vector: Floats) -> None:
    vector.astype("<f4", copy=False).tofile(path)
