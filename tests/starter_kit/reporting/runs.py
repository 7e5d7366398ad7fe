"""Run folders as training leaves them, for the tests of what is shown of them."""

from collections.abc import Sequence
from pathlib import Path

from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    RunSummary,
    write_metrics,
    write_summary,
)

SETTINGS = "method: fedavg\nexperiment: mine\nseed: 1\nlocal:\n  learning_rate: 0.01\n"


def open_rounds(count: int) -> list[RoundMetrics]:
    """Rounds of a run that is not private, the state before training first; every second one is evaluated."""
    before = RoundMetrics(round=0, bytes_down=0, bytes_up=0, anls=0.2, accuracy=0.1)
    return [before, *(open_round(number) for number in range(1, count + 1))]


def open_round(number: int) -> RoundMetrics:
    evaluated = number % 2 == 0
    return RoundMetrics(
        round=number,
        clients=2,
        providers=37,
        bytes_down=24_000_000,
        bytes_up=6_000_000,
        loss=2 / number,
        anls=0.5 if evaluated else None,
        accuracy=0.25 if evaluated else None,
        seconds=12.5,
    )


def private_rounds(count: int) -> list[RoundMetrics]:
    """Rounds of a run that spends ε = 0.5 in each."""
    return [
        RoundMetrics(round=number, clients=10, bytes_down=1000, bytes_up=2000, epsilon=0.5 * number)
        for number in range(1, count + 1)
    ]


def open_summary(**changes: object) -> RunSummary:
    """Of a run that is not private, after evaluation."""
    values = {
        "experiment": "mine",
        "method": "fedavg",
        "rounds": 4,
        "parameters_sent": 7_500_000,
        "codec": "float32",
        "bytes_total": 120_000_000,
        "anls": 0.71239,
        "accuracy": 0.61239,
        "split": "valid",
        "seconds": 51.0,
        "kit_version": "0.1.0",
        "base_sha256": "a" * 64,
        "checkpoint_sha256": "b" * 64,
    }
    return RunSummary.model_validate(values | changes)


def private_summary(**changes: object) -> RunSummary:
    """Of a run within a budget of 2, after evaluation."""
    private = {
        "method": "fl-provider-dp",
        "seconds": None,
        "epsilon": 1.99991,
        "delta": 1e-5,
        "unit": "provider",
        "budget": 2.0,
    }
    return open_summary(**private | changes)


def run_folder(
    folder: Path, metrics: Sequence[RoundMetrics], summary: RunSummary, settings: str = SETTINGS
) -> Path:
    folder.mkdir()
    write_metrics(folder / METRICS, metrics)
    write_summary(folder / SUMMARY, summary)
    (folder / "settings.yaml").write_text(settings)
    return folder
