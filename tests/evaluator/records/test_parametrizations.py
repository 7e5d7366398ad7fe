"""Every parametrization that a record can name: honest runs pass all checks, and lies about adapters are found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evaluator.messages.jobs import CheckStatus
from evaluator.parametrizations.known import PARAMETRIZATIONS
from evaluator.records.certificate import Floats
from evaluator.records.lines import RoundLine, RunLine, TrainableTensor
from tests.evaluator.records.checked import checks, odd
from tests.evaluator.records.factories import MadeRun, by_the_sum, make_record, noise_only

WEIGHT = (60, 40)
RANK = 6

every = pytest.mark.parametrize("name", PARAMETRIZATIONS)


def base_weights(folder: Path) -> Path:
    random = np.random.default_rng(7)
    tensors = {"bias": (9,), "encoder.weight": WEIGHT, "frozen": (3, 3)}
    path = folder / "base.safetensors"
    save_file(
        {name: random.standard_normal(shape).astype(np.float32) for name, shape in tensors.items()}, path
    )
    return path


def made(folder: Path, name: str, **changes: Any) -> MadeRun:
    """A run of three rounds that trains an adapter of this kind, and a tensor beside it."""
    parts = PARAMETRIZATIONS[name].trained
    adapter = [
        TrainableTensor(name=f"encoder{part.suffix}", shape=list(part.shape(RANK, WEIGHT))) for part in parts
    ]
    values: dict[str, Any] = {
        "base": base_weights(folder),
        "trainable": [TrainableTensor(name="bias", shape=[9]), *adapter],
        "lora_scale": 2.0,
        "parametrization": name,
        "rounds": 3,
    }
    return make_record(folder / "run", **values | changes)


def linkage(run: MadeRun) -> tuple[CheckStatus, str]:
    found = checks(run)["record.linkage"]
    return found.status, found.where


@every
def test_an_honest_run_passes_and_its_whole_change_is_bounded(tmp_path: Path, name: str) -> None:
    found = checks(made(tmp_path, name))
    assert odd(found) == {}
    for check in ("record.linkage", "record.whole_change", "record.tensors"):
        assert found[check].status is CheckStatus.PASSED


@every
def test_a_record_of_plain_lora_is_as_before_and_others_name_themselves(tmp_path: Path, name: str) -> None:
    first = made(tmp_path, name).record.read_text().splitlines()[0]
    assert (f'"parametrization":"{name}"' in first) == (name != "lora")
    assert ('"parametrization"' in first) == (name != "lora")


@every
def test_a_weight_that_is_not_the_merged_one_is_rejected(tmp_path: Path, name: str) -> None:
    run = made(tmp_path, name)
    tensors = load_file(run.checkpoint)
    tensors["encoder.weight"][5, 5] += np.float32(1e-3)
    other = run.checkpoint.with_name("other.safetensors")
    save_file(tensors, other)
    assert linkage(replace(run, checkpoint=other)) == (CheckStatus.FAILED, "tensor encoder.weight")


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("lora", "adapter encoder.lora_A.weight"),
        ("rs-lora", "adapter encoder.lora_A.weight"),
        ("alternating-lora", "adapter encoder.lora_A.weight"),
        ("ffa-lora", "tensor encoder.weight"),
    ],
)
def test_first_values_that_somebody_chose_are_rejected(tmp_path: Path, name: str, where: str) -> None:
    """A part that isn't trained is in no file but the merged weight."""
    assert linkage(made(tmp_path, name, adapters_token="chosen-by-looking-at-data")) == (
        CheckStatus.FAILED,
        where,
    )


@every
def test_a_change_that_no_rounds_could_make_is_rejected(tmp_path: Path, name: str) -> None:
    def beyond(run: RunLine, start: Floats, totals: list[Floats]) -> list[Floats]:
        weights = by_the_sum(run, start, totals)
        return [*weights[:-1], weights[-1] + np.float32(10)]

    found = checks(made(tmp_path, name, follow=beyond))
    assert found["record.whole_change"].status is CheckStatus.FAILED


def test_tensors_that_are_moved_out_of_turn_are_rejected(tmp_path: Path) -> None:
    def in_every_round(run: RunLine, start: Floats, totals: list[Floats]) -> list[Floats]:
        return by_the_sum(run.model_copy(update={"parametrization": "lora"}), start, totals)

    run = made(tmp_path, "alternating-lora", follow=in_every_round)
    assert linkage(run) == (CheckStatus.FAILED, "round 3, block 0")


def test_a_turn_without_noise_is_flagged(tmp_path: Path) -> None:
    """Half of the coordinates keep the noise of the rounds that moved them; the others must have theirs, too."""
    silent = 2

    def sums(run: RunLine, line: RoundLine, providers: int) -> Floats:
        noise = noise_only(run, line, providers)
        return noise if line.round != silent else np.zeros_like(noise)

    found = checks(made(tmp_path, "alternating-lora", sums=sums, rounds=2))
    assert found["record.whole_change"].status is CheckStatus.FLAGGED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parametrization": "dora"}, "should be one of lora, ffa-lora"),
        (
            {"lora_scale": None, "trainable": [TrainableTensor(name="bias", shape=[9])]},
            "left out without any",
        ),
        (
            {"trainable": [TrainableTensor(name="encoder.lora_R.weight", shape=[2, 3])]},
            "the shapes of encoder.lora_R.weight are not",
        ),
        ({"trainable": [TrainableTensor(name="bias", shape=[9])]}, "null without any"),
    ],
)
def test_a_record_of_no_such_adapters_is_rejected(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        made(tmp_path, "core", **change)
