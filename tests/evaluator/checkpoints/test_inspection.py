"""Checkpoints: real safetensors files are accepted, anything else is rejected with the right code."""

import hashlib
import json
import os
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from evaluator.checkpoints.contents import CHUNK_BYTES
from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.inspection import MAX_PROBLEMS, inspect_checkpoint
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.file_hash import sha256_of

SHARED = "language_backbone.shared.weight"
ALIAS = "language_backbone.lm_head.weight"


def tensors(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        SHARED: torch.randn(16, 4, generator=generator),
        "visual.scale": torch.randn(7, generator=generator, dtype=torch.float64),
        "visual.half": torch.randn(3, 1, generator=generator).half(),
        "visual.brain": torch.randn(5, generator=generator).bfloat16(),
        "visual.steps": torch.arange(3),
        "visual.empty": torch.zeros(0, 4),
    } | changes


def saved(path: Path, content: dict[str, torch.Tensor]) -> Path:
    save_file(content, path)
    return path


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return saved(tmp_path / "reference.safetensors", tensors())


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint.safetensors"


def raw(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(shape: list[Any], begin: int, end: int, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def rejections(path: Path, reference: Path, **options: Any) -> list[Problem]:
    with pytest.raises(ProblemError) as rejected:
        inspect_checkpoint(path, reference, **options)
    return rejected.value.problems


def header_rejection(path: Path, content: bytes) -> Problem:
    path.write_bytes(content)
    with pytest.raises(ProblemError) as rejected:
        read_header(path)
    return rejected.value.problem


def test_a_checkpoint_of_the_reference_architecture_passes(reference: Path, checkpoint: Path) -> None:
    content = tensors(**{SHARED: torch.ones(16, 4)})
    saved(checkpoint, content)
    result = inspect_checkpoint(checkpoint, reference)
    assert result.tensors == len(content)
    assert result.parameters == sum(tensor.numel() for tensor in content.values())
    assert result.sha256 == hashlib.sha256(checkpoint.read_bytes()).hexdigest()


def test_the_header_agrees_with_the_library(reference: Path) -> None:
    header = read_header(reference)
    content = reference.read_bytes()
    for name, tensor in tensors().items():
        read = header.tensors[name]
        assert read.shape == tuple(tensor.shape)
        data = content[header.data_start + read.begin : header.data_start + read.end]
        assert data == tensor.view(torch.uint8).numpy().tobytes() if tensor.numel() else data == b""


def test_a_header_may_say_that_it_has_no_metadata(checkpoint: Path) -> None:
    checkpoint.write_bytes(raw({"__metadata__": None, "a": entry([1], 0, 4)}, bytes(4)))
    assert list(read_header(checkpoint).tensors) == ["a"]
    assert list(load_file(checkpoint)) == ["a"]


def test_a_header_whose_length_looks_like_a_pickle_is_still_read(checkpoint: Path) -> None:
    header = json.dumps({"x": entry([1], 0, 4)}).encode().ljust(0x0480)
    checkpoint.write_bytes(raw(header, bytes(4)))
    assert checkpoint.read_bytes().startswith(b"\x80\x04")
    assert list(read_header(checkpoint).tensors) == ["x"]


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"PK\x03\x04", "zip"),
        (b"\x80\x02}q\x00", "pickle"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"hello, world", "another format"),
    ],
)
def test_other_formats_are_named(checkpoint: Path, start: bytes, name: str) -> None:
    problem = header_rejection(checkpoint, start + bytes(100))
    assert problem.code is ErrorCode.CHECKPOINT_FORMAT
    assert name in problem.found


def test_what_torch_save_writes_is_named(checkpoint: Path) -> None:
    torch.save({"x": torch.zeros(2)}, checkpoint)
    assert "torch.save" in header_rejection(checkpoint, checkpoint.read_bytes()).found


@pytest.mark.parametrize("content", [b"", b"\x02", bytes(8), raw({}, length=2**63), raw({}, length=3)])
def test_a_file_that_is_too_short_for_its_header_is_rejected(checkpoint: Path, content: bytes) -> None:
    assert header_rejection(checkpoint, content).code is ErrorCode.CHECKPOINT_FORMAT


def test_a_file_that_was_cut_off_is_called_incomplete(checkpoint: Path) -> None:
    whole = raw({"x": entry([4], 0, 16)}, bytes(16))
    for kept, needed in ((30, len(whole) - 16), (len(whole) - 5, len(whole))):
        problem = header_rejection(checkpoint, whole[:kept])
        assert problem.message == "The safetensors file is incomplete."
        assert (problem.expected, problem.found) == (
            f"at least {needed} bytes, by the header",
            f"{kept} bytes",
        )


@pytest.mark.parametrize(
    "header",
    [
        b'{"x": ',
        b'{"x": NaN}',
        b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{}}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' + b"[" * 1_000_000,
        b"{" + b'"\\' * 1_000_000,
        b'{"a":' + b"9" * 10_000 + b"}",
        b'{"\xff": 1}',
        {"__metadata__": {"a": 1}},
        {"__metadata__": 1},
        {"a": [1]},
        {"a": {"dtype": "F32", "shape": [1]}},
        {"a": entry([1], 0, 4) | {"extra": 1}},
        {"a": entry([1] * 9, 0, 4)},
        {"a": entry([-1], 0, 4)},
        {"a": entry([1.0], 0, 4)},
        {"a": entry([True], 0, 4)},
        {"a": entry([2**41, 0], 0, 0)},
        {"a" * 257: entry([1], 0, 4)},
        {f"t{i}": entry([0], 0, 0) for i in range(20_001)},
    ],
    ids=lambda header: repr(header)[:30],
)
def test_a_bad_header_is_rejected_at_once(checkpoint: Path, header: object) -> None:
    # Of this process, with room to spare: what takes more than linear time takes minutes.
    started = time.process_time()
    problem = header_rejection(checkpoint, raw(header, bytes(4)))
    assert problem.code is ErrorCode.CHECKPOINT_HEADER
    assert problem.found
    assert time.process_time() - started < 20


def test_a_header_over_the_cap_is_rejected_unread(checkpoint: Path) -> None:
    with checkpoint.open("wb") as file:
        file.write(struct.pack("<Q", 90 * 10**6) + b"{")
        file.truncate(10**8)
    with pytest.raises(ProblemError) as rejected:
        read_header(checkpoint)
    assert rejected.value.problem.code is ErrorCode.CHECKPOINT_HEADER


@pytest.mark.parametrize("dtype", ["F8_E4M3", "float32", "", 4, ["F32"]])
def test_an_unknown_dtype_is_rejected(checkpoint: Path, dtype: Any) -> None:
    problem = header_rejection(checkpoint, raw({"a": entry([1], 0, 4, dtype)}, bytes(4)))
    assert problem.code is ErrorCode.CHECKPOINT_DTYPE


@pytest.mark.parametrize(
    "header",
    [
        {"a": entry([2], 0, 8), "b": entry([2], 4, 12)},  # overlap
        {"a": entry([2], 0, 8), "b": entry([1], 0, 4)},  # the same bytes twice
        {"a": entry([1], 0, 4), "b": entry([1], 8, 12)},  # a hole
        {"a": entry([2], 4, 12)},  # not from the start
        {"a": entry([2], 0, 8)},  # bytes left over
        {"a": entry([4], 0, 16)},  # past the end
        {"a": entry([3], 0, 8), "b": entry([1], 8, 12)},  # size is not shape times dtype
        {"a": entry([2**40] * 8, 0, 12)},
        {"a": entry([2], 8, 0)},
        {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 4, 12]}},
        {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12.0]}},
        {"a": {"dtype": "F32", "shape": [3], "data_offsets": [-12, 0]}},
        {},
    ],
)
def test_tensors_must_lie_end_to_end(checkpoint: Path, header: object) -> None:
    assert header_rejection(checkpoint, raw(header, bytes(12))).code is ErrorCode.CHECKPOINT_OFFSETS


def test_everything_that_differs_is_reported_at_once(reference: Path, checkpoint: Path) -> None:
    content = tensors(
        **{SHARED: torch.zeros(16, 5), "visual.scale": torch.zeros(7), "adapter": torch.zeros(1)}
    )
    del content["visual.half"]
    content["visual.brain"][2] = torch.inf
    saved(checkpoint, content)
    assert {(p.code, p.where) for p in rejections(checkpoint, reference)} == {
        (ErrorCode.CHECKPOINT_SHAPE, f"tensor {SHARED}"),
        (ErrorCode.CHECKPOINT_DTYPE, "tensor visual.scale"),
        (ErrorCode.CHECKPOINT_EXTRA_TENSOR, "tensor adapter"),
        (ErrorCode.CHECKPOINT_MISSING_TENSOR, "tensor visual.half"),
        (ErrorCode.CHECKPOINT_NOT_FINITE, "tensor visual.brain"),
    }


def test_the_number_of_problems_is_capped(reference: Path, checkpoint: Path) -> None:
    saved(checkpoint, tensors() | {f"extra.{i}": torch.zeros(1) for i in range(100)})
    assert len(rejections(checkpoint, reference)) == MAX_PROBLEMS


@pytest.mark.parametrize("name", ["visual.scale", "visual.half", "visual.brain", SHARED])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_number_that_is_not_finite_is_found(
    reference: Path, checkpoint: Path, name: str, value: float
) -> None:
    content = tensors()
    content[name].view(-1)[2] = value
    (problem,) = rejections(saved(checkpoint, content), reference)
    assert problem.code is ErrorCode.CHECKPOINT_NOT_FINITE
    assert problem.where == f"tensor {name}"
    assert problem.found.endswith("element 2")


def test_the_largest_finite_numbers_pass(reference: Path, checkpoint: Path) -> None:
    content = tensors()
    for tensor in content.values():
        if tensor.is_floating_point():
            tensor.fill_(torch.finfo(tensor.dtype).max)
    assert inspect_checkpoint(saved(checkpoint, content), reference).tensors == len(content)


@given(st.binary(min_size=16, max_size=16))
def test_finiteness_agrees_with_torch(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("bits")
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        tensor = torch.frombuffer(bytearray(data), dtype=dtype)
        path = saved(folder / "checkpoint", {"x": tensor})
        wanted = saved(folder / "reference", {"x": torch.zeros_like(tensor)})
        if torch.isfinite(tensor).all():
            inspect_checkpoint(path, wanted)
        else:
            (problem,) = rejections(path, wanted)
            assert problem.found.endswith(f"element {int((~torch.isfinite(tensor)).int().argmax())}")


def test_exact_copies_of_the_shared_embedding_pass_and_are_not_counted(
    reference: Path, checkpoint: Path
) -> None:
    plain = inspect_checkpoint(reference, reference)
    content = tensors()
    for part in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head"):
        content[f"language_backbone.{part}.weight"] = content[SHARED].clone()
    tied = inspect_checkpoint(saved(checkpoint, content), reference)
    assert (tied.tensors, tied.parameters) == (plain.tensors, plain.parameters)


@pytest.mark.parametrize(
    "alias", [torch.zeros(16, 4), torch.zeros(4, 16), torch.zeros(16, 4, dtype=torch.float16)]
)
def test_an_alias_with_other_contents_is_an_extra_tensor(
    reference: Path, checkpoint: Path, alias: torch.Tensor
) -> None:
    (problem,) = rejections(saved(checkpoint, tensors(**{ALIAS: alias})), reference)
    assert (problem.code, problem.where) == (ErrorCode.CHECKPOINT_EXTRA_TENSOR, f"tensor {ALIAS}")


def test_an_alias_doesnt_replace_the_shared_embedding(reference: Path, checkpoint: Path) -> None:
    content = tensors()
    content[ALIAS] = content.pop(SHARED)
    codes = {problem.code for problem in rejections(saved(checkpoint, content), reference)}
    assert codes == {ErrorCode.CHECKPOINT_MISSING_TENSOR, ErrorCode.CHECKPOINT_EXTRA_TENSOR}


@pytest.mark.parametrize("holds_copies", [True, False])
def test_copies_in_the_base_weights_may_be_left_out_and_must_stay_copies(
    reference: Path, checkpoint: Path, holds_copies: bool
) -> None:
    saved(reference, tensors(**{ALIAS: tensors()[SHARED]}))
    trained = torch.ones(16, 4)
    content = tensors(**{SHARED: trained} | ({ALIAS: trained.clone()} if holds_copies else {}))
    result = inspect_checkpoint(saved(checkpoint, content), reference)
    assert (result.tensors, result.changed) == (len(tensors()), [SHARED])
    (problem,) = rejections(saved(checkpoint, content | {ALIAS: tensors()[SHARED]}), reference)
    assert (problem.code, problem.where) == (ErrorCode.CHECKPOINT_EXTRA_TENSOR, f"tensor {ALIAS}")


def test_what_differs_from_the_base_weights_is_listed_in_their_order(
    reference: Path, checkpoint: Path
) -> None:
    content = tensors()
    assert inspect_checkpoint(saved(checkpoint, content), reference).changed == []
    for name in (SHARED, "visual.steps", "visual.brain", "visual.half"):
        content[name].view(-1)[-1] += 1
    changed = inspect_checkpoint(saved(checkpoint, content), reference).changed
    assert changed == [name for name in read_header(reference).tensors if name in changed]
    assert set(changed) == {SHARED, "visual.steps", "visual.brain", "visual.half"}


def test_a_sign_of_zero_is_a_difference(reference: Path, checkpoint: Path) -> None:
    saved(reference, {"x": torch.zeros(3), "y": torch.zeros(3)})
    saved(checkpoint, {"x": torch.tensor([0.0, -0.0, 0.0]), "y": torch.zeros(3)})
    assert inspect_checkpoint(checkpoint, reference).changed == ["x"]


def written(path: Path, arrays: dict[str, NDArray[Any]], *, padding: int = 0) -> Path:
    """A safetensors file in the given order of tensors; `padding` shifts where the first one begins."""
    names = {"float64": "F64", "float32": "F32", "float16": "F16", "uint8": "U8"}
    header, end = {}, 0
    for name, array in arrays.items():
        header[name] = entry(list(array.shape), end, end + array.nbytes, names[array.dtype.name])
        end += array.nbytes
    text = json.dumps(header).encode()
    data = b"".join(array.tobytes() for array in arrays.values())
    path.write_bytes(raw(text.ljust(len(text) + padding), data))
    return path


@pytest.mark.parametrize("padding", range(9))
def test_tensors_may_lie_anywhere_and_in_any_order(reference: Path, checkpoint: Path, padding: int) -> None:
    random = np.random.default_rng(1)
    arrays: dict[str, NDArray[Any]] = {
        "bytes": random.integers(0, 256, 13, np.uint8),
        "half": random.standard_normal(7).astype(np.float16),
        "large": random.standard_normal(CHUNK_BYTES // 4 + 3).astype(np.float32),
        "none": np.zeros((0, 4), np.float64),
        "double": np.array(random.standard_normal()),
    }
    written(reference, arrays)
    moved = dict(reversed(arrays.items()))
    result = inspect_checkpoint(written(checkpoint, moved, padding=padding), reference)
    assert result.changed == []
    assert result.sha256 == hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    moved["large"] = moved["large"].copy()
    moved["large"][-1] = np.nan
    moved["bytes"] = moved["bytes"] ^ np.eye(13, dtype=np.uint8)[12]
    (problem,) = rejections(
        written(checkpoint, moved, padding=padding), reference, trainable=["bytes", "large"]
    )
    assert problem.found.endswith(f"element {arrays['large'].size - 1}")
    moved["large"][-1] = 0
    changed = inspect_checkpoint(written(checkpoint, moved, padding=padding), reference).changed
    assert changed == ["bytes", "large"]


@settings(deadline=None)
@given(size=st.integers(1, 40), place=st.integers(0, 39), bit=st.integers(0, 7), far=st.booleans())
def test_every_flipped_bit_is_found(
    tmp_path_factory: pytest.TempPathFactory, size: int, place: int, bit: int, far: bool
) -> None:
    folder = tmp_path_factory.mktemp("bits")
    before = np.zeros(size + far * 2 * CHUNK_BYTES, np.uint8)
    after = before.copy()
    after[-1 - place % size] ^= 1 << bit
    base = written(folder / "base", {"x": before})
    assert inspect_checkpoint(written(folder / "same", {"x": before}), base).changed == []
    assert inspect_checkpoint(written(folder / "other", {"x": after}), base).changed == ["x"]


def test_a_file_of_no_tensors_and_one_of_empty_tensors_are_read(reference: Path, checkpoint: Path) -> None:
    empty: dict[str, NDArray[Any]] = {"x": np.zeros((0, 3), np.float32), "y": np.zeros((5, 0), np.float64)}
    for arrays in ({}, empty):
        written(reference, arrays)
        result = inspect_checkpoint(written(checkpoint, arrays, padding=3), reference)
        assert (result.tensors, result.parameters, result.changed) == (len(arrays), 0, [])
        assert result.sha256 == sha256_of(checkpoint)


def test_a_tensor_that_the_track_holds_fixed_must_be_that_of_the_base_weights(
    reference: Path, checkpoint: Path
) -> None:
    content = tensors()
    content["visual.half"] += 1
    content[SHARED] += 1
    content[ALIAS] = content[SHARED].clone()
    saved(checkpoint, content)
    patterns = ["language_backbone.*", "*.[sb]*"]
    (problem,) = rejections(checkpoint, reference, trainable=patterns)
    assert (problem.code, problem.where) == (ErrorCode.CHECKPOINT_FROZEN_TENSOR, "tensor visual.half")
    assert "language_backbone.*, *.[sb]*" in problem.next_step
    result = inspect_checkpoint(checkpoint, reference, trainable=[*patterns, "visual.half"])
    assert set(result.changed) == {SHARED, "visual.half"}


def test_names_match_patterns_as_a_whole_and_in_their_case(reference: Path, checkpoint: Path) -> None:
    content = tensors()
    content["visual.half"] += 1
    saved(checkpoint, content)
    for pattern in ("visual", "Visual.*", "half", "visual.hal"):
        assert rejections(checkpoint, reference, trainable=[pattern])


def test_a_file_that_gets_shorter_while_it_is_read_is_rejected(reference: Path, checkpoint: Path) -> None:
    arrays = {"x": np.zeros(8 * CHUNK_BYTES, np.uint8)}
    written(reference, arrays)
    written(checkpoint, arrays)
    (problem,) = rejections(
        checkpoint, reference, on_progress=lambda _done, _total: os.truncate(checkpoint, CHUNK_BYTES)
    )
    assert problem.code is ErrorCode.ARTIFACT_SIZE
    assert problem.message == "The file got shorter while it was read."


def test_base_weights_that_get_shorter_are_not_blamed_on_the_participant(
    reference: Path, checkpoint: Path
) -> None:
    arrays = {"x": np.zeros(8 * CHUNK_BYTES, np.uint8)}
    written(reference, arrays)
    written(checkpoint, arrays)
    with pytest.raises(ValueError, match="shorter"):
        inspect_checkpoint(
            checkpoint, reference, on_progress=lambda _done, _total: os.truncate(reference, CHUNK_BYTES)
        )


def test_an_unusable_reference_is_not_blamed_on_the_participant(reference: Path, checkpoint: Path) -> None:
    checkpoint.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="reference"):
        inspect_checkpoint(reference, checkpoint)


def test_progress_ends_at_the_files_size(reference: Path) -> None:
    seen: list[tuple[int, int]] = []
    inspect_checkpoint(reference, reference, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (reference.stat().st_size,) * 2


def test_a_large_checkpoint_is_read_in_little_memory(tmp_path: Path) -> None:
    count = 150_000_000  # 600 MB of zeros, as a sparse file; NaN in the last number
    path = tmp_path / "large.safetensors"
    header = raw({"x": entry([count], 0, 4 * count)})
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * count)
        file.seek(-4, 2)
        file.write(np.float32(np.nan).tobytes())
    tracemalloc.start()
    try:
        (problem,) = rejections(path, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problem.found.endswith(f"element {count - 1}")
    assert peak < 64 * 1024**2
