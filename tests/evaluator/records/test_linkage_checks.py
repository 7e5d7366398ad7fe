"""Check `record.linkage` on adapters, on wrong openings and on what it can't follow; lies are in test_lies.py."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evaluator.messages.jobs import CheckStatus
from evaluator.records.annex import Annex
from evaluator.records.certificate import Floats
from evaluator.records.lines import TrainableTensor
from tests.evaluator.records.checked import adapter, checks
from tests.evaluator.records.factories import MadeRun, make_record

ADAPTERS: dict[str, Any] = {
    "trainable": [TrainableTensor(name="bias", shape=[9]), *adapter(2)],
    "lora_scale": 2.0,
    "rounds": 3,
}


def linkage(made: MadeRun) -> tuple[CheckStatus, str]:
    found = checks(made)["record.linkage"]
    return found.status, found.where


def other_end(annex: Annex) -> Annex:
    return replace(annex, adapters=replace(annex.adapters, end=annex.adapters.end * np.float32(1.001)))


def other_start(annex: Annex) -> Annex:
    return replace(annex, adapters=replace(annex.adapters, start=-annex.adapters.start))


def shorter(annex: Annex) -> Annex:
    return replace(annex, adapters=replace(annex.adapters, end=annex.adapters.end[1:]))


def without_weights(annex: Annex) -> Annex:
    return replace(annex, weights={})


def other_weights(annex: Annex) -> Annex:
    place, opening = next(iter(annex.weights.items()))
    changed = replace(opening, values=opening.values + np.float32(1))
    return replace(annex, weights=annex.weights | {place: changed})


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (other_end, "round 3, weights_root"),
        (other_start, "line 1, weights_root"),
        (shorter, "annex, adapters"),
        (without_weights, "annex"),
        (other_weights, "annex, round 1, block 0"),
    ],
)
def test_an_annex_of_other_values_is_rejected(
    tmp_path: Path, change: Callable[[Annex], Annex], where: str
) -> None:
    made = make_record(tmp_path, change_annex=change, **ADAPTERS)
    assert linkage(made) == (CheckStatus.FAILED, where)


def trained_on(made: MadeRun, name: str) -> MadeRun:
    """The run with a checkpoint in which one value of a tensor was moved by a thousandth."""
    tensors = load_file(made.checkpoint)
    tensors[name].flat[3] += np.float32(1e-3)
    other = made.checkpoint.with_name("other.safetensors")
    save_file(tensors, other)
    return replace(made, checkpoint=other)


@pytest.mark.parametrize(
    ("tensor", "where"),
    [
        ("encoder.weight", "tensor encoder.weight"),
        ("bias", "round 3, weights_root"),
        ("frozen", "tensor frozen"),
    ],
)
def test_a_checkpoint_that_is_not_the_merged_adapters_is_rejected(
    tmp_path: Path, tensor: str, where: str
) -> None:
    assert linkage(trained_on(make_record(tmp_path, **ADAPTERS), tensor)) == (CheckStatus.FAILED, where)


def test_adapters_trained_on_afterwards_are_rejected(tmp_path: Path) -> None:
    def trained_on(weights: Floats) -> Floats:
        return weights + np.float32(0.001)

    made = make_record(tmp_path, finish=trained_on, **ADAPTERS)
    assert linkage(made) == (CheckStatus.FAILED, "round 3, block 0")


def test_adapters_that_start_from_anything_but_the_token_are_rejected(tmp_path: Path) -> None:
    made = make_record(tmp_path, adapters_token="chosen-by-looking-at-data", **ADAPTERS)
    assert linkage(made) == (CheckStatus.FAILED, "adapter encoder.lora_A.weight")


def test_adapters_merged_with_another_scale_are_rejected(tmp_path: Path) -> None:
    honest = make_record(tmp_path / "honest", **ADAPTERS)
    made = make_record(
        tmp_path / "other", base=honest.base, checkpoint=honest.checkpoint, **ADAPTERS | {"lora_scale": 2.01}
    )
    assert linkage(made) == (CheckStatus.FAILED, "tensor encoder.weight")


def test_tensors_that_nobody_can_follow_are_flagged(tmp_path: Path) -> None:
    prompts = [TrainableTensor(name="bias", shape=[9]), TrainableTensor(name="prompts", shape=[5, 8])]
    assert linkage(make_record(tmp_path, trainable=prompts)) == (CheckStatus.FLAGGED, "line 1, trainable")


def test_what_is_found_says_nothing_of_the_annex(tmp_path: Path) -> None:
    found = checks(make_record(tmp_path / "run", rounds=5))["record.linkage"]
    assert (found.status, found.found) == (
        CheckStatus.PASSED,
        "5 rounds with the update rule sum; every block is opened",
    )
