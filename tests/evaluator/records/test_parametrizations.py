"""Every parametrization that a record can name: honest runs pass all checks, and lies about adapters are found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evaluator.messages.jobs import CheckStatus
from evaluator.parametrizations.known import PARAMETRIZATIONS
from evaluator.records.certificate import Floats
from evaluator.records.lines import Adapter, RoundLine, RunLine, TrainableTensor
from evaluator.records.replay import EPS, ROUNDING
from tests.evaluator.records.checked import checks, odd
from tests.evaluator.records.factories import MadeRun, by_the_sum, make_record, noise_only

WEIGHT = (60, 40)
RANK = 6

every = pytest.mark.parametrize("name", PARAMETRIZATIONS)


def base_weights(folder: Path) -> Path:
    random = np.random.default_rng(7)
    tensors = {"bias": (9,), "encoder.weight": WEIGHT, "frozen": (3, 3)}
    folder.mkdir(exist_ok=True)
    path = folder / "base.safetensors"
    save_file(
        {name: random.standard_normal(shape).astype(np.float32) for name, shape in tensors.items()}, path
    )
    return path


def adapter_of(name: str, rank: int = RANK) -> list[TrainableTensor]:
    """The trained parts of an adapter of `encoder.weight`."""
    return [
        TrainableTensor(name=f"encoder{part.suffix}", shape=list(part.shape(rank, WEIGHT)))
        for part in PARAMETRIZATIONS[name].trained
    ]


def made(folder: Path, name: str, **changes: Any) -> MadeRun:
    """A run of three rounds that trains an adapter of this kind, and a tensor beside it."""
    adapter = adapter_of(name)
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


@pytest.mark.parametrize("name", ["lora", "ffa-lora"])
def test_a_rank_above_a_side_of_the_weight_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Noise could lie in those directions of a large factor that its product with a small one leaves out."""
    with monkeypatch.context() as forging:
        forging.setattr(Adapter, "fits", lambda *_: True)
        run = made(tmp_path, name, trainable=adapter_of(name, min(WEIGHT) + 1))
    assert linkage(run) == (CheckStatus.FAILED, "tensor encoder.weight")


def test_of_base_weights_far_above_the_product_no_more_than_a_sum_is_rounded(tmp_path: Path) -> None:
    rank = min(WEIGHT)
    large = load_file(base_weights(tmp_path))
    large["encoder.weight"] *= np.float32(1e5)
    base = tmp_path / "large.safetensors"
    save_file(large, base)
    run = made(tmp_path, "ffa-lora", base=base, trainable=adapter_of("ffa-lora", rank))
    assert linkage(run)[0] is CheckStatus.PASSED
    tensors = load_file(run.checkpoint)
    tensors["encoder.weight"] *= np.float32(1 + ROUNDING + rank * EPS / 4)
    other = run.checkpoint.with_name("other.safetensors")
    save_file(tensors, other)
    assert linkage(replace(run, checkpoint=other)) == (CheckStatus.FAILED, "tensor encoder.weight")


BESIDE = TrainableTensor(name="beside.weight", shape=[60, 1024])


def beside_an_adapter(folder: Path, name: str, **changes: Any) -> MadeRun:
    """A run of four rounds that trains an adapter, and a far larger tensor beside it."""
    tensors = load_file(base_weights(folder))
    tensors[BESIDE.name] = np.zeros(BESIDE.shape, np.float32)
    base = folder / "with_beside.safetensors"
    save_file(tensors, base)
    return made(folder, name, base=base, trainable=[BESIDE, *adapter_of(name)], rounds=4, **changes)


def shortened(run: RunLine, lines: Sequence[RoundLine], providers: Sequence[int]) -> list[Floats]:
    """Noise of full length in every round, a quarter of whose sum is taken back."""
    draws = np.array([noise_only(run, line, count) for line, count in zip(lines, providers, strict=True)])
    taken = draws - 0.25 * draws.mean(axis=0)
    lengths = (np.linalg.norm(one, axis=1, keepdims=True) for one in (draws, taken))
    return list((taken * (next(lengths) / next(lengths))).astype(np.float32))


@pytest.mark.parametrize("name", ["lora", "alternating-lora"])
def test_an_adapter_that_takes_turns_hides_nothing_in_tensors_beside_it(tmp_path: Path, name: str) -> None:
    assert odd(checks(beside_an_adapter(tmp_path, name))) == {}
    found = checks(beside_an_adapter(tmp_path / "taken", name, all_sums=shortened))
    assert found["record.whole_change"].status is CheckStatus.FLAGGED


def test_a_part_whose_turn_never_came_is_unchanged(tmp_path: Path) -> None:
    """In the only round, B is trained."""

    def moved(run: RunLine, start: Floats, totals: list[Floats]) -> list[Floats]:
        weights = by_the_sum(run, start, totals)
        place = list(run.shapes).index("encoder.lora_A.weight")
        begin = sum(run.numels[:place])
        weights[-1][begin] += np.float32(1e-3)
        return weights

    assert odd(checks(made(tmp_path, "alternating-lora", rounds=1))) == {}
    found = checks(made(tmp_path / "moved", "alternating-lora", rounds=1, follow=moved))
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
