"""Sharded checkpoints: real shards are joined into one file, anything else is rejected with the right code."""

import hashlib
import json
import tracemalloc
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from evaluator.checkpoints.header import MAX_HEADER_BYTES, MAX_TENSORS, read_header
from evaluator.checkpoints.sharding import MAX_SHARDS, join, joined_sha256, read_index
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.file_hash import sha256_of
from tests.evaluator.checkpoints.sharded import save_shards, split, write_index

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
TENSORS = {
    "shared.weight": torch.arange(20.0).reshape(5, 4),
    "größe.ε": torch.tensor([1.5, -2.5]),
    'quote".\\\n': torch.tensor([3.0]),
    "7": torch.ones(2, 2, 2),
    "scalar": torch.tensor(4.0),
    "empty b": torch.zeros(0, 3),
    "empty a": torch.zeros(3, 0),
}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return save_shards(tmp_path / "run", split(TENSORS, 2))


def rejection(index: Path) -> Problem:
    target = index.with_name("model.safetensors")
    with pytest.raises(ProblemError) as rejected:
        join(index, target)
    assert [path for path in index.parent.iterdir() if path.name.startswith(target.name + ".")] in (
        [],
        [index],
    )
    assert not target.exists()
    return rejected.value.problem


def test_the_index_gives_the_shard_of_each_tensor(index: Path) -> None:
    weight_map = read_index(index)
    assert weight_map.keys() == TENSORS.keys()
    assert set(weight_map.values()) == {FIRST, SECOND}


def test_joined_shards_hold_the_same_tensors(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "joined.safetensors"
    join(index, target)
    loaded = load_file(target)
    assert loaded.keys() == TENSORS.keys()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in TENSORS.items())
    assert read_header(target).data_start % 8 == 0
    assert sha256_of(target) == joined_sha256(index)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["joined.safetensors", "run"]


def test_the_joined_bytes_are_the_documented_ones(tmp_path: Path) -> None:
    index = save_shards(tmp_path, [{"b": torch.tensor([1.0])}, {"a": torch.tensor([2.0, 3.0])}])
    target = tmp_path / "model.safetensors"
    join(index, target)
    header = (
        b'{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}'
    )
    header = header.ljust(-(-len(header) // 8) * 8)
    data = torch.tensor([1.0, 2.0, 3.0]).numpy().tobytes()
    assert target.read_bytes() == len(header).to_bytes(8, "little") + header + data


def test_a_single_shard_is_joined_too(tmp_path: Path) -> None:
    index = save_shards(tmp_path, [TENSORS])
    join(index, tmp_path / "model.safetensors")
    assert load_file(tmp_path / "model.safetensors").keys() == TENSORS.keys()


def test_memory_does_not_grow_with_the_shards(tmp_path: Path) -> None:
    index = save_shards(tmp_path, [{"a": torch.zeros(8_000_000)}, {"b": torch.zeros(8_000_000)}])
    tracemalloc.start()
    try:
        join(index, tmp_path / "model.safetensors")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "model.safetensors").stat().st_size > 64_000_000
    assert peak < 8_000_000


@pytest.mark.parametrize(
    "name",
    [
        "../model.safetensors",
        "/etc/model.safetensors",
        "sub/model.safetensors",
        "sub\\model.safetensors",
        "C:model.safetensors",
        "..safetensors",
        "",
        "model.bin",
        "möbel.safetensors",
        "model.safetensors\n",
        7,
        None,
        ["model.safetensors"],
    ],
    ids=repr,
)
def test_a_shard_outside_the_folder_or_of_another_kind_is_rejected(tmp_path: Path, name: object) -> None:
    problem = rejection(write_index(tmp_path, {"a": name}))
    assert problem.code is ErrorCode.CHECKPOINT_INDEX
    assert "tensor a" in problem.where


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"weight_map": {}}',
        b'{"weight_map": ["a"]}',
        b'{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}',
        b'{"weight_map": {"\\ud800": "x.safetensors"}}',
        b"\xff\xfe",
        b"[" * 10_000,
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_broken_index_is_rejected(tmp_path: Path, content: bytes) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_bytes(content)
    assert rejection(index).code is ErrorCode.CHECKPOINT_INDEX


def test_too_much_is_rejected(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_bytes(b" " * (MAX_HEADER_BYTES + 1))
    assert rejection(index).code is ErrorCode.CHECKPOINT_INDEX
    many = {f"t{number}": "x.safetensors" for number in range(MAX_TENSORS + 1)}
    assert f"{MAX_TENSORS} tensors" in rejection(write_index(tmp_path, many)).expected
    shards = {f"t{number}": f"{number}.safetensors" for number in range(MAX_SHARDS + 1)}
    (tmp_path / "0.safetensors").touch()
    assert f"{MAX_SHARDS} shards" in rejection(write_index(tmp_path, shards)).expected
    assert "256 characters" in rejection(write_index(tmp_path, {"x" * 257: "x.safetensors"})).expected


def test_a_joined_header_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    empty = torch.zeros(0, 1, 1, 1, 1, 1, 1, 1)
    tensors = {f"{number:05}{'x' * 150}": empty for number in range(MAX_TENSORS - 2)}
    problem = rejection(save_shards(tmp_path, split(tensors, 3)))
    assert problem.code is ErrorCode.CHECKPOINT_INDEX
    assert "joined header" in problem.expected


def test_missing_shards_are_named(index: Path) -> None:
    (index.parent / SECOND).unlink()
    problem = rejection(index)
    assert problem.code is ErrorCode.CHECKPOINT_SHARD
    assert SECOND in problem.found
    assert FIRST not in problem.found


def test_a_tensor_that_the_index_names_and_the_shard_lacks_is_rejected(index: Path) -> None:
    weight_map = json.loads(index.read_text())["weight_map"]
    problem = rejection(write_index(index.parent, weight_map | {"absent": FIRST}))
    assert problem.code is ErrorCode.CHECKPOINT_SHARD
    assert problem.where == f"{FIRST}, tensor absent"


def test_a_tensor_that_the_index_does_not_name_is_rejected(index: Path) -> None:
    weight_map = json.loads(index.read_text())["weight_map"]
    del weight_map["scalar"]
    problem = rejection(write_index(index.parent, weight_map))
    assert problem.code is ErrorCode.CHECKPOINT_SHARD
    assert "tensor scalar" in problem.where
    assert problem.found == "not in the index"


def test_a_tensor_in_two_shards_is_rejected(tmp_path: Path) -> None:
    both = torch.ones(2)
    problem = rejection(save_shards(tmp_path, [{"a": both, "b": both + 1}, {"a": both}]))
    assert problem.code is ErrorCode.CHECKPOINT_SHARD
    assert problem.where == f"{FIRST}, tensor a"
    assert SECOND in problem.found


def test_a_damaged_shard_is_rejected_by_its_name(index: Path) -> None:
    shard = index.parent / SECOND
    shard.write_bytes(shard.read_bytes()[:-4])
    problem = rejection(index)
    assert problem.code is ErrorCode.CHECKPOINT_OFFSETS
    assert SECOND in problem.where
    torch.save({"a": torch.ones(1)}, shard)
    assert rejection(index).code is ErrorCode.CHECKPOINT_FORMAT


def test_shards_saved_in_another_order_give_other_bytes_and_the_same_order_the_same(tmp_path: Path) -> None:
    digests = []
    for folder, parts in (("a", split(TENSORS, 2)), ("b", split(TENSORS, 2)), ("c", split(TENSORS, 2)[::-1])):
        index = save_shards(tmp_path / folder, parts)
        target = tmp_path / folder / "model.safetensors"
        join(index, target)
        digests.append(hashlib.sha256(target.read_bytes()).hexdigest())
    assert digests[0] == digests[1] != digests[2]


def test_an_earlier_file_stays_when_the_shards_are_rejected(index: Path) -> None:
    target = index.with_name("model.safetensors")
    save_file({"old": torch.ones(1)}, target)
    (index.parent / SECOND).write_bytes(b"nothing")
    with pytest.raises(ProblemError):
        join(index, target)
    assert load_file(target).keys() == {"old"}
