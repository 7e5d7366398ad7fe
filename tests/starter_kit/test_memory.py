from pathlib import Path

import torch

from starter_kit.memory import free_bytes, host_bytes


def test_memory_is_what_a_job_or_a_container_may_use_of_the_machine(tmp_path: Path) -> None:
    own, limit = tmp_path / "own", tmp_path / "job" / "memory.max"
    limit.parent.mkdir()
    own.write_text("0::/job/step\n")
    limit.write_text("64000000\n")
    assert host_bytes(tmp_path, own) == 64_000_000
    limit.write_text("max\n")
    assert host_bytes(tmp_path, own) > 64_000_000
    assert free_bytes(torch.device("cpu")) is None
