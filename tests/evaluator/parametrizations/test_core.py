"""Core adapters lie between the first singular vectors of the weight, which every machine finds to be the same."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from evaluator.parametrizations.core import CORE, NoSingularVectorsError
from evaluator.parametrizations.parametrization import Floats, NewAdapter, doubles
from evaluator.records.lines import Adapter, TrainableTensor
from evaluator.records.merging import first_parts

RANK = 5


def weight(rows: int, columns: int) -> Floats:
    return np.random.default_rng([rows, columns]).standard_normal((rows, columns)).astype(np.float32)


def first_values(matrix: Floats, rank: int = RANK) -> dict[str, Floats]:
    rows, columns = matrix.shape
    return CORE.first_values(NewAdapter("layer", "token", rank, (rows, columns), lambda: matrix))


@pytest.mark.parametrize("shape", [(40, 60), (60, 40), (5, 5)])
def test_factors_are_the_first_singular_vectors(shape: tuple[int, int]) -> None:
    matrix = weight(*shape)
    parts = doubles(first_values(matrix))
    _, values, _ = np.linalg.svd(matrix.astype(np.float64))
    assert parts["B"].T @ matrix @ parts["A"].T == pytest.approx(np.diag(values[:RANK]), abs=1e-5)
    assert parts["B"].T @ parts["B"] == pytest.approx(np.eye(RANK), abs=1e-6)
    assert parts["A"] @ parts["A"].T == pytest.approx(np.eye(RANK), abs=1e-6)
    largest = np.abs(parts["B"]).argmax(axis=0)
    assert (parts["B"][largest, range(RANK)] > 0).all()
    assert not parts["R"].any()


def test_rounding_of_the_weight_hardly_turns_them() -> None:
    matrix = weight(64, 64)
    nudged = np.nextafter(matrix, np.float32(np.inf))
    for one, other in zip(first_values(matrix).values(), first_values(nudged).values(), strict=True):
        assert one == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize(
    ("matrix", "rank"),
    [(np.eye(8, dtype=np.float32), 2), (np.zeros((8, 9), np.float32), 1), (weight(4, 9), 5)],
    ids=["equal", "none", "too few"],
)
def test_a_weight_without_distinct_singular_values_has_none(
    tmp_path: Path, matrix: Floats, rank: int
) -> None:
    with pytest.raises(NoSingularVectorsError, match=f"first {rank} singular values"):
        first_values(matrix, rank)
    save_file({"layer.weight": matrix}, tmp_path / "base.safetensors")
    trained = {"R": TrainableTensor(name="layer.lora_R.weight", shape=[rank, rank])}
    assert first_parts(Adapter("layer", CORE, trained), "token", tmp_path / "base.safetensors") is None
