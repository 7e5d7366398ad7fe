"""The weight vector of a file: the trainable tensors end to end."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from evaluator.checkpoints import weight_vector as module
from evaluator.checkpoints.weight_vector import weight_vector


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_weight_vector_is_float32_in_the_given_order(
    tmp_path: Path, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = torch.Generator().manual_seed(1)
    tensors = {
        "a": torch.randn(3, 4, generator=random).to(dtype),
        "b": torch.randn(5, 1, generator=random).to(dtype),
        "c": torch.zeros(0),
    }
    save_file(tensors, tmp_path / "file")
    beside = {"adapter": np.arange(3, dtype=np.float32)}
    vector = weight_vector(tmp_path / "file", {"b": [5, 1], "adapter": [3], "c": [0], "a": [3, 4]}, beside)
    assert vector is not None
    b, a = (tensors[name].float().numpy().reshape(-1) for name in ("b", "a"))
    expected = np.concatenate([b, beside["adapter"], a])
    assert vector.numel == 20
    assert vector.read(0, 99).dtype == np.float32
    for begin, end in ((0, 20), (0, 99), (3, 6), (5, 8), (7, 9), (19, 20)):
        assert np.array_equal(vector.read(begin, end), expected[begin:end])
    monkeypatch.setattr(module, "SLICE", 6)
    assert [len(piece) for piece in vector.pieces()] == [6, 6, 6, 2]
    assert np.array_equal(np.concatenate(list(vector.pieces())), expected)


@pytest.mark.parametrize("wanted", [("adapter", [2]), ("w", [2, 2]), ("steps", [4])])
def test_a_file_that_lacks_a_tensor_has_no_such_vector(tmp_path: Path, wanted: tuple[str, list[int]]) -> None:
    save_file({"w": torch.zeros(4), "steps": torch.arange(4)}, tmp_path / "file")
    assert weight_vector(tmp_path / "file", {"w": [4]}) is not None
    assert weight_vector(tmp_path / "file", dict([wanted])) is None
