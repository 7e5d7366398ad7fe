"""Rounds that are interrupted where nothing is private go on inside, to the same end."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.learning.local_training import LocalStep
from starter_kit.reporting.metrics import RoundMetrics
from starter_kit.runs.progress import Watcher
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.plugins.examples import FOLDER, example
from tests.starter_kit.training_runs import trained

SMALL = ["trainable=['*.layer_norm.weight']", "rounds=2", "clients_per_round=2", "max_input_tokens=32"]
SEVERAL_STEPS = ["local.max_steps=5", "local.batch_size=1", "local.epochs=2", "checkpoints.local_steps=2"]
IN_ROUND = "run.unfinished/resume/round"


class Steps(Watcher):
    """Counts local steps, and may end the run at one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.seen: list[int] = []
        self._last = last

    def local_step(self, step: LocalStep) -> None:
        self.seen.append(step.done)
        if len(self.seen) == self._last:
            raise CutError


def steps_after_resuming(
    base: Path, data: Path, tmp_path: Path, config: str, changes: Sequence[str], watcher: Watcher
) -> list[int]:
    """Train a run whole, and again with an interruption; both end the same. Return the steps after it."""
    whole = trained(config, base, data, tmp_path / "whole", changes)
    with pytest.raises(CutError):
        trained(config, base, data, tmp_path / "run", changes, watcher=watcher)
    after = Steps()
    run = trained(config, base, data, tmp_path / "run", changes, watcher=after, resume=True)
    for kind in (ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG):
        assert run.file(kind).read_bytes() == whole.file(kind).read_bytes()
    return after.seen


@pytest.mark.parametrize(
    "changes",
    [
        ["dropout=true", "local.schedule=cosine", "local.warmup_steps=2"],
        ["local.optimizer=shampoo", "local.shampoo.statistics_every=1", "local.shampoo.roots_every=3"],
        ["local.optimizer=sgd", "local.momentum=0.9", "local.hook={type: fedprox, mu: 1.0}"],
        [f"local.optimizer={FOLDER / 'lion.py'}"],
    ],
    ids=["adamw", "shampoo", "sgd", "lion"],
)
def test_a_client_that_was_interrupted_goes_on_after_its_last_saved_step(
    base: Path, data: Path, tmp_path: Path, changes: list[str]
) -> None:
    # Round 2, the second client, after its fourth step of five, the second one that was saved.
    changes = [*SMALL, *SEVERAL_STEPS, *changes]
    assert steps_after_resuming(base, data, tmp_path, "fedavg", changes, Steps(19)) == [5]


def test_the_second_time_it_was_interrupted_as_well(base: Path, data: Path, tmp_path: Path) -> None:
    changes = [*SMALL, *SEVERAL_STEPS, "checkpoints.local_steps=1"]
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=Steps(2))
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=Steps(2), resume=True)
    after = Steps()
    trained("fedavg", base, data, tmp_path / "run", changes, watcher=after, resume=True)
    assert after.seen == [5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("config", ["plugins/topk", example("scaffold")])
def test_a_client_that_had_finished_does_not_train_again(
    base: Path, data: Path, tmp_path: Path, config: str
) -> None:
    # Of a client's steps none were saved, and in round 2 the first client's reply has arrived.
    changes = [*SMALL, "local.max_steps=2", "local.batch_size=1"]
    assert steps_after_resuming(base, data, tmp_path, config, changes, CutOff(3)) == [1, 2]


def test_nothing_of_a_recorded_round_is_left(base: Path, data: Path, tmp_path: Path) -> None:
    class Looking(Watcher):
        def __init__(self) -> None:
            self.during, self.after = list[set[str]](), list[bool]()

        def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
            self.during.append({path.name for path in (tmp_path / IN_ROUND).iterdir()})

        def round_done(self, metrics: RoundMetrics) -> None:
            self.after.append((tmp_path / IN_ROUND).exists())

    looking = Looking()
    trained("fedavg", base, data, tmp_path / "run", [*SMALL, *SEVERAL_STEPS], watcher=looking)
    assert looking.during[-1] == {"training.pt", "client-0.pt", "client-2.pt"}
    assert looking.after == [False, False]


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("fl-provider-dp", ["trainable=['*.layer_norm.weight']"]),
        ("client-dp", ["trainable=['*.layer_norm.weight']", "client_rate=1"]),
        ("secure-aggregation", []),
    ],
)
def test_a_private_round_begins_again_and_nothing_inside_it_is_stored(
    base: Path, data: Path, tmp_path: Path, config: str, changes: list[str]
) -> None:
    changes = [*changes, "checkpoints.local_steps=1", "local.max_steps=2", "local.batch_size=1"]
    with pytest.raises(CutError):
        trained(config, base, data, tmp_path / "run", changes, watcher=CutOff(2))
    assert (tmp_path / "run.unfinished" / "resume").is_dir()
    assert not (tmp_path / IN_ROUND).exists()


def test_a_saved_training_that_was_damaged_is_rejected(base: Path, data: Path, tmp_path: Path) -> None:
    changes = [*SMALL, *SEVERAL_STEPS]
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=Steps(3))
    (tmp_path / IN_ROUND / "training.pt").write_bytes(b"half of it")
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run", changes, resume=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert "training.pt" in caught.value.problem.found


def test_what_is_saved_is_that_of_the_round_that_runs(base: Path, data: Path, tmp_path: Path) -> None:
    # What the round before left, as if the process had been killed before it could be deleted.
    changes = [*SMALL, *SEVERAL_STEPS, "local.max_steps=3"]
    whole = trained("fedavg", base, data, tmp_path / "whole", changes)
    left: dict[str, bytes] = {}

    class Keeping(Steps):
        def local_step(self, step: LocalStep) -> None:
            for path in (tmp_path / IN_ROUND).glob("*"):
                left[path.name] = path.read_bytes()
            super().local_step(step)

    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=Keeping(7))
    (tmp_path / IN_ROUND).mkdir(exist_ok=True)
    for name, content in left.items():
        (tmp_path / IN_ROUND / name).write_bytes(content)
    after = Steps()
    run = trained("fedavg", base, data, tmp_path / "run", changes, watcher=after, resume=True)
    assert after.seen == [1, 2, 3, 1, 2, 3]
    kind = ArtifactKind.CHECKPOINT
    assert run.file(kind).read_bytes() == whole.file(kind).read_bytes()
