"""Replayable runs on pocket data, and their examination."""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.replay.examination import Replayed, ReplayInputs, examine
from starter_kit.replay.training import train_round
from starter_kit.runs import round_secret
from starter_kit.runs.folder import OPENING, SETTINGS, RunFolder
from tests.starter_kit.training_runs import trained

CHALLENGE = "a" * 64
SECRET = bytes(range(32))
REPLAYABLE = ["replayable=true", "trainable=['*layer_norm.weight']"]
# Three of four providers are sampled, and clipped.
SAMPLED = [
    "sampling.provider_rate=0.75",
    "clip_norm=1.0e-4",
    "noise_multiplier=0.5",
    "target_epsilon=null",
    *REPLAYABLE,
]


def replayable_run(
    base: Path, data: Path, out: Path, changes: Sequence[str] = SAMPLED, config: str = "fl-provider-dp"
) -> RunFolder:
    """A finished run, of which rounds can be opened, with the same coins and noise each time."""
    with patch.object(round_secret, "token_bytes", lambda _: SECRET):
        return trained(config, base, data, out, changes)


def inputs_of(run: RunFolder, base: Path, data: Path) -> ReplayInputs:
    """The files of a replay of this run, once rounds were opened."""
    return ReplayInputs(
        record=run.file(ArtifactKind.TRAINING_RECORD),
        annex=run.file(ArtifactKind.TRAINING_ANNEX),
        opening=run.path / OPENING,
        settings=run.path / SETTINGS,
        challenge=CHALLENGE,
        data=data,
        base=base,
    )


def examined(run: RunFolder, base: Path, data: Path, **changes: object) -> Replayed:
    """The outcome of an examination with `changes` to its inputs."""
    return examine(inputs_of(run, base, data).model_copy(update=changes), train_round)


def codes(error: ProblemError) -> set[ErrorCode]:
    """The codes of all problems."""
    return {problem.code for problem in error.problems}
