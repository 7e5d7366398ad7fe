import time

import pytest
import torch
from rich.console import Console

from starter_kit.learning.local_training import LocalStep
from starter_kit.reporting.metrics import RoundMetrics
from starter_kit.runs import progress as module
from starter_kit.runs.progress import describe, show_progress, time_left

OPEN = RoundMetrics(
    round=1, clients=2, providers=7, bytes_down=1_500_000, bytes_up=1_500_000, loss=2.5, anls=0.25
)
PRIVATE = RoundMetrics(round=2, clients=10, bytes_down=10, bytes_up=10, epsilon=1.25)


def test_a_round_is_described_in_a_few_words() -> None:
    assert describe(OPEN, 3_000_000) == "2 clients · 7 providers · loss 2.500 · 3.00 MB · ANLS 0.2500"
    assert describe(PRIVATE, 40) == "10 clients · 0.0 kB · ε 1.250"
    assert "2.50 GB" in describe(PRIVATE, 2_500_000_000)


def test_a_log_file_has_every_round_and_no_more_lines_than_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_progress("mine") as watcher:
        watcher.pages(3, 3)
        watcher.begins(1, 2, sent_bytes=1_000_000)
        for line in (OPEN, PRIVATE):
            watcher.update_arrived(line.round, 1, 2)
            watcher.round_done(line)
    assert capsys.readouterr().err == (
        "mine: round 1/2: 2 clients · 7 providers · loss 2.500 · 4.00 MB · ANLS 0.2500\n"
        "mine: round 2/2: 10 clients · 4.00 MB · ε 1.250\n"
    )


def test_a_log_file_says_how_long_the_rounds_that_are_left_take(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("mine") as watcher:
        watcher.begins(1, 3)
        for number, seconds in ((1, 90.0), (2, 120.0), (3, 90.0)):
            watcher.round_done(OPEN.model_copy(update={"round": number, "seconds": seconds}))
        watcher.begins(1, 3)
        watcher.round_done(PRIVATE)
    ends = [line.rsplit(" · ", 1)[-1] for line in capsys.readouterr().err.splitlines()]
    assert ends == ["about 3 min left", "about 1 min left", "ANLS 0.2500", "ε 1.250"]
    assert time_left(1, 99, 100.0) == "about 2 h 45 min left"
    assert time_left(3, 1, 60.0) == "about 20 s left"


def test_a_terminal_has_a_bar_with_the_rounds_and_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(force_terminal=True, width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    monkeypatch.setattr(module, "error_console", terminal)
    with show_progress("mine") as watcher:
        watcher.pages(1, 4)
        watcher.begins(3, 5)
        watcher.update_arrived(3, 4, 10)
        watcher._bar.refresh()  # type: ignore[attr-defined]
        assert "mine, 4 of 10 clients, rounds" in terminal.export_text(clear=False)
        watcher.round_done(OPEN)
        watcher._bar.refresh()  # type: ignore[attr-defined]
        text = terminal.export_text()
    assert "mine, rounds" in text
    assert "loss 2.500" in text
    assert "/5" in text


def test_a_log_file_has_a_line_on_a_long_local_training_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with show_progress("mine") as watcher:
        watcher.begins(2, 3)
        for done in range(1, 5):
            watcher.local_step(LocalStep(done, 9, [torch.tensor(1.5)] * done))
    assert capsys.readouterr().err == (
        "mine: round 2/3: step 2/9 of a client · loss 1.500\nmine: round 2/3: step 4/9 of a client · loss 1.500\n"
    )
