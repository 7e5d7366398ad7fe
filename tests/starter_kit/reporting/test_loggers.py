"""Loggers: what they receive while a run trains, what of a private one, and what happens when they fail."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.logger_choice import LOGGERS, loggers_of
from starter_kit.reporting.loggers import Delivery, LoggedRun, RunLogger
from starter_kit.reporting.metrics import RoundMetrics, RunSummary
from starter_kit.runs.logged_rounds import logged_rounds
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.reporting.runs import (
    open_round,
    open_rounds,
    open_summary,
    private_rounds,
    private_summary,
)

OPEN = LoggedRun("mine", {"rounds": 2, "local.learning_rate": 0.1}, private=False)
PRIVATE = LoggedRun("mine", {"rounds": 2}, private=True)


class Recorder:
    """A logger that notes what it is sent."""

    name = "recorder"
    errors: tuple[type[Exception], ...] = (RuntimeError,)

    def __init__(self, *, shows_time: bool = True, fails_at: int = -1) -> None:
        self.shows_time = shows_time
        self.events: list[object] = []
        self._fails_at = fails_at

    def open(self, run: LoggedRun) -> None:
        self._note(run.name)

    def write(self, metrics: RoundMetrics) -> None:
        self._note(metrics.round)

    def close(self, summary: RunSummary | None) -> None:
        self._note("complete" if summary else "failed")

    def _note(self, event: object) -> None:
        if len(self.events) == self._fails_at:
            raise RuntimeError("no connection")
        self.events.append(event)


def ignore(line: str) -> None:
    pass


def test_rounds_are_sent_as_they_end() -> None:
    logger = Recorder()
    delivery = Delivery([logger], OPEN, [open_round(1)], ignore)
    assert logger.events == ["mine", 1]
    delivery.write(open_round(2))
    assert logger.events == ["mine", 1, 2]
    delivery.close(open_summary())
    assert logger.events == ["mine", 1, 2, "complete"]


def test_a_private_run_reaches_what_shows_the_time_as_a_whole_or_not_at_all() -> None:
    first, second, timeless = Recorder(), Recorder(), Recorder(shows_time=False)
    complete = Delivery([first, timeless], PRIVATE, [], ignore)
    failed = Delivery([second], PRIVATE, [], ignore)
    for metrics in private_rounds(2):
        complete.write(metrics)
        failed.write(metrics)
    assert first.events == []
    assert timeless.events == ["mine", 1, 2]
    complete.close(private_summary())
    failed.close(None)
    assert first.events == timeless.events == ["mine", 1, 2, "complete"]
    assert second.events == []


def test_a_logger_that_fails_while_the_run_trains_gets_no_more_and_the_others_do() -> None:
    broken, whole, said = Recorder(fails_at=2), Recorder(), list[str]()
    delivery = Delivery([broken, whole], OPEN, [], said.append)
    for number in (1, 2, 3):
        delivery.write(open_round(number))
    delivery.close(None)
    assert broken.events == ["mine", 1]
    assert whole.events == ["mine", 1, 2, 3, "failed"]
    assert said == ["recorder: can't be reached, and gets no more of this run: no connection"]


def test_a_logger_that_cannot_be_reached_is_reported_before_anything_is_trained() -> None:
    with pytest.raises(ProblemError, match="no connection"):
        Delivery([Recorder(fails_at=0)], OPEN, [], ignore)


def test_whether_a_run_is_private_follows_from_its_settings_and_an_error_ends_it_as_failed() -> None:
    logger = Recorder()
    with suppress(KeyError), logged_rounds([logger], load_settings("fedavg"), []) as delivery:
        delivery.write(open_round(1))
        raise KeyError
    assert logger.events == ["fedavg", 1, "failed"]
    held = Recorder()
    with logged_rounds([held], load_settings("fl-provider-dp"), []) as delivery:
        delivery.write(private_rounds(1)[0])
        assert held.events == []
        delivery.close(private_summary())
    assert held.events == ["fl-provider-dp", 1, "complete"]


def send(logger: RunLogger, *, private: bool) -> None:
    delivery = Delivery([logger], PRIVATE if private else OPEN, [], pytest.fail)
    for metrics in private_rounds(2) if private else open_rounds(2):
        delivery.write(metrics)
    delivery.close(private_summary() if private else open_summary())


def test_tensorboard_gets_a_folder_of_the_run_s_name(tmp_path: Path) -> None:
    send(loggers_of([f"tensorboard={tmp_path}"])[0], private=True)
    assert len(list((tmp_path / "mine").iterdir())) == 1


@pytest.mark.slow
def test_weights_and_biases_gets_of_a_private_run_its_rounds_and_nothing_about_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    # It has read the environment where something else in this process has used it.
    wandb.teardown()
    for is_private in (True, False):
        send(loggers_of(["wandb=mine"])[0], private=is_private)
    # Its own process writes the files, and has done so when it has ended.
    wandb.teardown()
    paths = {b"privacy/epsilon" in path.read_bytes(): path for path in tmp_path.rglob("*.wandb")}
    private, other = paths[True], paths[False]
    sent = private.read_bytes()
    assert all(name in sent for name in (b"bytes/up", b"checkpoint_sha256", b"rounds"))
    # What W&B would collect by itself: the load, the machine and the folders.
    assert not any(name in sent for name in (b"proc.cpu", b"memory_percent", str(Path.cwd()).encode()))
    assert b"training/loss" not in sent
    assert not list(private.parent.glob("files/*"))
    assert b"training/loss" in other.read_bytes()


def test_a_logger_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ProblemError) as error:
        loggers_of(["wandb"])
    assert error.value.problem.code is ErrorCode.CONFIGURATION
    assert ".[kit,wandb]" in error.value.problem.next_step


def test_an_unknown_logger_is_rejected_with_those_that_there_are() -> None:
    with pytest.raises(ProblemError) as error:
        loggers_of(["comet=x"])
    assert all(name in error.value.problem.expected for name in LOGGERS)
