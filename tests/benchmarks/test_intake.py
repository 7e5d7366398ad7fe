"""Time and memory for inspecting a full-size checkpoint, compared with only hashing the same file.

The inspection does everything that the step `validate` does: hash, finiteness, comparison with base weights of the
same size, all but one tensor of which are equal, so that all of them are read to the end.
"""

import hashlib
import json
import math
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from evaluator.checkpoints.inspection import inspect_checkpoint

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

REPEATS = 5
MIN_SPEED = 0.8  # of sha256sum's
MAX_MEMORY_MB = 200

HIDDEN, INNER, VOCABULARY, LAYERS = 768, 3072, 32128, 12


def shapes() -> Iterator[tuple[str, list[int]]]:
    """Names and shapes like those of the full-size VT5: T5-base, DiT-base, and embeddings of places."""
    square, up, down, vector = [HIDDEN, HIDDEN], [INNER, HIDDEN], [HIDDEN, INNER], [HIDDEN]
    yield "language_backbone.shared.weight", [VOCABULARY, HIDDEN]
    for side, attentions in (
        ("encoder", ["SelfAttention"]),
        ("decoder", ["SelfAttention", "EncDecAttention"]),
    ):
        yield f"language_backbone.{side}.final_layer_norm.weight", vector
        for layer in range(LAYERS):
            for place, part in enumerate([*attentions, "DenseReluDense"]):
                name = f"language_backbone.{side}.block.{layer}.layer.{place}"
                kinds = {"wi": up, "wo": down} if part == "DenseReluDense" else dict.fromkeys("qkvo", square)
                yield f"{name}.layer_norm.weight", vector
                yield from ((f"{name}.{part}.{kind}.weight", shape) for kind, shape in kinds.items())
    for layer in range(LAYERS):
        name = f"visual_embedding.encoder.layer.{layer}"
        linear = dict.fromkeys(("query", "key", "value", "projection"), square) | {"up": up, "down": down}
        for part, shape in linear.items():
            yield f"{name}.{part}.weight", shape
            yield f"{name}.{part}.bias", shape[:1]
    yield from ((f"spatial_embedding.{axis}.weight", [1024, HIDDEN]) for axis in ("x", "y", "h", "w"))


def write_checkpoint(path: Path) -> None:
    header, end = {}, 0
    for name, shape in shapes():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for begin in range(0, end // 4, 2**20):
            count = min(2**20, end // 4 - begin)
            file.write(random.standard_normal(count, np.float32).astype("<f4").tobytes())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A checkpoint and base weights that differ in the last bit of the last tensor only."""
    folder = tmp_path_factory.mktemp("intake")
    checkpoint, base = folder / "checkpoint.safetensors", folder / "base.safetensors"
    write_checkpoint(checkpoint)
    shutil.copyfile(checkpoint, base)
    with checkpoint.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        last = file.read(1)
        file.seek(-4, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    yield checkpoint, base
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Took:
    wall_s: float
    cpu_s: float


def cpu_s() -> float:
    """Of this process, all threads, and of the children that ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def took(work: Callable[[], object]) -> Took:
    wall, cpu = time.perf_counter(), cpu_s()
    work()
    return Took(time.perf_counter() - wall, cpu_s() - cpu)


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_an_inspection_takes_little_longer_than_the_hash(files: tuple[Path, Path]) -> None:
    checkpoint, base = files
    result = inspect_checkpoint(checkpoint, base)
    assert result.changed == ["spatial_embedding.w.weight"]
    assert result.sha256 == file_digest(checkpoint)
    contestants: dict[str, Callable[[], object]] = {
        "sha256sum": lambda: subprocess.run(["sha256sum", checkpoint], check=True, capture_output=True),
        "hashlib.file_digest": lambda: file_digest(checkpoint),
        "inspect_checkpoint": lambda: inspect_checkpoint(checkpoint, base),
    }
    times: dict[str, list[Took]] = {name: [] for name in contestants}
    for _ in range(REPEATS):
        for name, work in contestants.items():
            times[name].append(took(work))
    wall = {name: statistics.median(one.wall_s for one in all_of) for name, all_of in times.items()}
    cpu = {name: statistics.median(one.cpu_s for one in all_of) for name, all_of in times.items()}
    size = checkpoint.stat().st_size
    print(
        f"\n{size / 1e9:.2f} GB, {result.tensors} tensors, medians of {REPEATS}, speeds relative to inspect_checkpoint"
    )
    print(f"{'':<20} {'wall':>7} {'GB/s':>6} {'CPU':>7}   inspect_checkpoint is × as fast: wall, CPU")
    for name in contestants:
        print(
            f"{name:<20} {wall[name]:>6.2f}s {size / 1e9 / wall[name]:>6.2f} {cpu[name]:>6.2f}s"
            f"   {wall[name] / wall['inspect_checkpoint']:>5.2f} {cpu[name] / cpu['inspect_checkpoint']:>5.2f}"
        )
    assert wall["sha256sum"] / wall["inspect_checkpoint"] >= MIN_SPEED


# The kernel's own high-water mark: ru_maxrss would start from that of the process that forked.
MEASURED = """
import re, sys
from pathlib import Path
from evaluator.checkpoints.inspection import inspect_checkpoint
def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
imported_mb = peak_mb()
inspect_checkpoint(Path(sys.argv[1]), Path(sys.argv[2]))
print(imported_mb, peak_mb())
"""


def test_peak_memory(files: tuple[Path, Path]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, *files], text=True, capture_output=True, check=True
    )
    imported_mb, peak_mb = map(int, result.stdout.split())
    print(f"\na fresh process: {imported_mb} MB with its imports, {peak_mb} MB at most in the inspection")
    assert peak_mb < MAX_MEMORY_MB
