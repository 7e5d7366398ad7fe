"""Events for TensorBoard, read back by its own reader."""

import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.loggers import LoggedRun
from starter_kit.reporting.metrics import METRICS, RoundMetrics, write_metrics
from starter_kit.reporting.tensorboard import TAGS, TensorBoardLogger, write_events
from tests.starter_kit.reporting.runs import (
    open_round,
    open_rounds,
    open_summary,
    private_rounds,
    private_summary,
    run_folder,
)


def read(log_dir: Path) -> dict[str, list[tuple[int, float]]]:
    """Step and value of every event, by tag."""
    events = EventAccumulator(str(log_dir)).Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]
    }


def stamps(log_dir: Path) -> set[float]:
    events = EventAccumulator(str(log_dir)).Reload()
    return {event.wall_time for tag in events.Tags()["scalars"] for event in events.Scalars(tag)}


def opened(folder: Path, name: str) -> TensorBoardLogger:
    logger = TensorBoardLogger(folder)
    logger.open(LoggedRun(name, {}, private=False))
    return logger


def test_every_number_of_a_round_has_a_tag() -> None:
    assert TAGS.keys() == RoundMetrics.model_fields.keys() - {"round"}


def test_a_run_is_written_round_by_round(tmp_path: Path) -> None:
    write_events(run_folder(tmp_path / "run", open_rounds(4), open_summary()), tmp_path / "logs")
    events = read(tmp_path / "logs")
    assert events["score/ANLS"] == [(0, pytest.approx(0.2)), (2, 0.5), (4, 0.5)]
    assert events["bytes/down"] == [(0, 0), *((number, 24_000_000) for number in (1, 2, 3, 4))]
    assert events["training/loss"][-1] == (4, 0.5)
    assert "privacy/epsilon" not in events


def test_a_private_run_writes_no_loss_no_seconds_and_no_providers(tmp_path: Path) -> None:
    write_events(run_folder(tmp_path / "run", private_rounds(3), private_summary()), tmp_path / "logs")
    events = read(tmp_path / "logs")
    assert events.keys() == {"bytes/down", "bytes/up", "privacy/epsilon", "training/clients"}
    assert events["privacy/epsilon"] == [(1, 0.5), (2, 1.0), (3, 1.5)]


def test_numbers_of_a_private_run_carry_their_round_and_not_the_time(tmp_path: Path) -> None:
    for name, rounds in (("private", private_rounds(3)), ("open", open_rounds(3))):
        logger = opened(tmp_path, name)
        for line in rounds:
            logger.write(line)
        logger.close(None)
    assert stamps(tmp_path / "private") == {1.0, 2.0, 3.0}
    assert min(stamps(tmp_path / "open")) > 1e9


def test_a_private_run_that_reports_its_loss_is_not_written(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", [*private_rounds(3), open_round(4)], private_summary())
    with pytest.raises(ProblemError):
        write_events(folder, tmp_path / "logs")
    assert not (tmp_path / "logs").exists()


def test_every_round_can_be_read_while_the_run_continues(tmp_path: Path) -> None:
    logger = opened(tmp_path, "run")
    for number in (1, 2, 3):
        logger.write(open_round(number))
        assert read(tmp_path / "run")["bytes/up"][-1] == (number, 6_000_000)
    logger.close(None)


def test_a_run_that_is_still_training_has_no_summary_and_is_written(tmp_path: Path) -> None:
    write_metrics(tmp_path / METRICS, open_rounds(2))
    write_events(tmp_path, tmp_path / "logs")
    assert len(read(tmp_path / "logs")["bytes/up"]) == 3


def test_without_tensorboard_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ProblemError) as error:
        TensorBoardLogger(tmp_path / "logs")
    assert error.value.problem.code is ErrorCode.CONFIGURATION
    assert ".[kit,tensorboard]" in error.value.problem.next_step
    assert error.value.problem.expected == "the package tensorboard"
    assert not (tmp_path / "logs").exists()


def test_a_place_that_cannot_be_written_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProblemError) as error:
        opened(tmp_path / "file", "logs")
    assert error.value.problem.code is ErrorCode.RUN_FOLDER
