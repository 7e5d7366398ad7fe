"""The accounting step of a worker for a run of 226 million trained parameters, on one core.

It reads the record, annex and log, runs every check, those of linkage and noise included, and computes ε. The annex
opens as many coordinates as one can: 64 blocks in each of 32 rounds. What it is compared with, in the same process, is
hashing the checkpoint and the base weights once each.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.messages.jobs import ArtifactKind
from tests.benchmarks import full_size_record

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

ROUNDS = 32
MAX_SECONDS = 30
MAX_MEMORY_MB = 1000

# The kernel's own high-water mark: ru_maxrss would start from that of the process that forked.
MEASURED = """
import json, os, re, sys, time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind, Step
from evaluator.pipeline import StepInputs, run_step
from evaluator.records import check_table
from tests.benchmarks.full_size_record import CHALLENGE, RULES

files = {ArtifactKind(kind): Path(path) for kind, path in json.loads(sys.argv[1]).items()}
base = Path(sys.argv[2])
parts = {}

def timed(one):
    def function(check, case):
        began = time.process_time()
        try:
            return one.function(check, case)
        finally:
            parts[check.id] = time.process_time() - began
    return replace(one, function=function)

check_table.RECORD_CHECKS = [timed(one) for one in check_table.RECORD_CHECKS]
began = time.process_time()
for path in (files[ArtifactKind.CHECKPOINT], base):
    sha256_of(path)
hashed, wall = time.process_time(), time.perf_counter()
output = run_step(Step.ACCOUNTING, StepInputs(files, RULES, base.parent, CHALLENGE), lambda done, total: None)
print(json.dumps({
    "hashing_s": hashed - began,
    "step_s": time.process_time() - hashed,
    "wall_s": time.perf_counter() - wall,
    "parts_s": parts,
    "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024,
    "result": output.result.model_dump(mode="json"),
}))
"""


def test_the_accounting_step_of_a_full_size_run(tmp_path: Path) -> None:
    run = full_size_record.make_run(tmp_path, ROUNDS)
    files = {kind.value: str(path) for kind, path in run.files.items()}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, json.dumps(files), run.base],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    annex_mb = run.files[ArtifactKind.TRAINING_ANNEX].stat().st_size / 1e6
    print(
        f"\n{run.numel / 1e6:.0f} million parameters, {ROUNDS} rounds, an annex of {annex_mb:.0f} MB; one core"
    )
    print(f"the step       {found['step_s']:6.2f} CPU s, {found['wall_s']:.2f} s, peak {found['peak_mb']} MB")
    print(
        f"hashing alone  {found['hashing_s']:6.2f} CPU s, {found['step_s'] / found['hashing_s']:.1f} times as long"
    )
    for ids, seconds in found["parts_s"].items():
        print(f"    {ids:<24}{seconds:6.2f} CPU s")
    odd = {
        check["id"]: check for check in found["result"]["checks"] if check["status"] in ("flagged", "failed")
    }
    assert not odd
    assert found["step_s"] < MAX_SECONDS
    assert found["peak_mb"] < MAX_MEMORY_MB
