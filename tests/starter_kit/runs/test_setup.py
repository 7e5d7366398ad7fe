from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.clients import clients_of
from starter_kit.runs.setup import RunSetup, _check_float64
from starter_kit.settings.configuration import load_settings


def test_rounds_that_may_be_replayed_are_computed_with_the_same_numbers_each_time(
    base: Path, data: Path
) -> None:
    changes = ["compute.precision=auto", "compute.micro_batch_size=3"]
    once, again = (
        RunSetup(
            load_settings("fl-provider-dp", [*changes, f"replayable={value}"]), data=data, base=base
        ).compute
        for value in ("false", "true")
    )
    assert (once.precision, once.deterministic) == ("auto", False)
    assert (again.precision, again.deterministic, again.micro_batch_size) == ("float32", True, 3)


@pytest.mark.parametrize(
    ("config", "is_fine"), [("fedavg", True), ("fl-provider-dp", False), ("fedshampoo", False)]
)
def test_an_apple_gpu_trains_what_needs_no_float64(data: Path, config: str, is_fine: bool) -> None:
    settings = load_settings(config, ["device=mps"])
    plan = settings.plan(clients_of(Dataset(data, "train")))
    if is_fine:
        _check_float64(settings, plan)
        return
    with pytest.raises(ProblemError) as caught:
        _check_float64(settings, plan)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert "float64" in caught.value.problem.expected
