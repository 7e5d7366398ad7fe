"""Weight changes: which tensors differ from the base, of which rank, and the hash of a weight vector."""

import tracemalloc
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from evaluator.checkpoints.weight_changes import MAX_RANK, TensorChange, changed_tensors
from evaluator.errors import ErrorCode, ProblemError

Tensors = dict[str, torch.Tensor]


def changes(folder: Path, before: Tensors, after: Tensors) -> list[TensorChange]:
    save_file(before, folder / "base.safetensors")
    save_file(after, folder / "checkpoint.safetensors")
    return changed_tensors(folder / "base.safetensors", folder / "checkpoint.safetensors")


def matrix(rows: int, columns: int, seed: int = 1, std: float = 0.05) -> torch.Tensor:
    return std * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def adapter(rows: int, columns: int, rank: int, scale: float, seed: int = 2) -> torch.Tensor:
    return scale * matrix(rows, rank, seed, 1) @ matrix(rank, columns, seed + 1, 1)


def rank(folder: Path, before: torch.Tensor, after: torch.Tensor) -> int | None:
    (change,) = changes(folder, {"w": before}, {"w": after})
    return change.rank


def test_tensors_with_the_same_bits_did_not_change(tmp_path: Path) -> None:
    same = {"w": matrix(5, 4), "empty": torch.zeros(0, 4), "steps": torch.arange(3)}
    assert changes(tmp_path, same, same) == []


def test_a_changed_bit_is_a_change(tmp_path: Path) -> None:
    before = {"w": torch.zeros(3, 4), "steps": torch.arange(3), "bias": torch.ones(2)}
    after = {"w": -torch.zeros(3, 4), "steps": torch.arange(3) + 1, "bias": torch.ones(2)}
    found = {change.name: change for change in changes(tmp_path, before, after)}
    assert found == {
        "w": TensorChange("w", (3, 4), 12, rank=1),
        "steps": TensorChange("steps", (3,), 3, rank=None),
    }


@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1e-1])
def test_an_adapter_merged_in_float32_has_its_rank(tmp_path: Path, scale: float) -> None:
    before = matrix(768, 768)
    (change,) = changes(tmp_path, {"w": before}, {"w": before + adapter(768, 768, 6, scale)})
    assert change.rank == 6
    assert change.parameters == 6 * (768 + 768)


def test_an_adapter_that_is_merged_in_every_round_has_its_rank(tmp_path: Path) -> None:
    before = matrix(512, 256)
    after = before.clone()
    for _ in range(10):
        after += adapter(512, 256, 6, 1e-4)
    assert rank(tmp_path, before, after) == 6


def test_a_small_adapter_in_bfloat16_has_at_most_its_rank(tmp_path: Path) -> None:
    before = matrix(256, 512).bfloat16()
    assert rank(tmp_path, before, (before + adapter(256, 512, 6, 1e-1)).bfloat16()) == 6
    small = rank(tmp_path, before, (before + adapter(256, 512, 6, 1e-4)).bfloat16())
    assert small is not None
    assert 1 <= small <= 6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_change_of_everything_has_full_rank(tmp_path: Path, dtype: torch.dtype) -> None:
    before = matrix(200, 300).to(dtype)
    (change,) = changes(tmp_path, {"w": before}, {"w": before + matrix(200, 300, seed=5).to(dtype)})
    assert change.rank is None
    assert change.parameters == 200 * 300


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 300), columns=st.integers(1, 300), wanted=st.integers(1, 80), seed=st.integers(0, 9)
)
def test_the_rank_of_a_product_is_found_up_to_the_limit(
    tmp_path_factory: pytest.TempPathFactory, rows: int, columns: int, wanted: int, seed: int
) -> None:
    before = matrix(rows, columns)
    after = before + adapter(rows, columns, wanted, 1e-2, seed)
    expected = min(rows, columns, wanted)
    found = rank(tmp_path_factory.mktemp("rank"), before, after)
    if expected > MAX_RANK:
        assert found is None
    else:
        assert found == expected


@pytest.mark.parametrize("shape", [(1, 1_000_000), (1_000_000, 1)])
def test_a_long_matrix_takes_little_memory(tmp_path: Path, shape: tuple[int, int]) -> None:
    before = matrix(*shape)
    tracemalloc.start()
    assert rank(tmp_path, before, before + matrix(*shape, seed=5)) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * 1024**2


def test_numbers_that_are_not_finite_have_no_rank(tmp_path: Path) -> None:
    assert rank(tmp_path, matrix(9, 9), torch.full((9, 9), torch.inf)) is None


def test_what_only_the_checkpoint_has_is_not_looked_at(tmp_path: Path) -> None:
    before = {"language_backbone.shared.weight": matrix(9, 4)}
    after = before | {"language_backbone.lm_head.weight": matrix(9, 4)}
    assert changes(tmp_path, before, after) == []


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ({"v": torch.zeros(2, 2)}, ErrorCode.CHECKPOINT_MISSING_TENSOR),
        ({"w": torch.zeros(4)}, ErrorCode.CHECKPOINT_SHAPE),
        ({"w": torch.zeros(2, 2).half()}, ErrorCode.CHECKPOINT_DTYPE),
    ],
)
def test_another_architecture_is_rejected(tmp_path: Path, after: Tensors, code: ErrorCode) -> None:
    with pytest.raises(ProblemError) as rejected:
        changes(tmp_path, {"w": torch.zeros(2, 2)}, after)
    assert rejected.value.problem.code is code
    assert rejected.value.problem.where == "tensor w"
