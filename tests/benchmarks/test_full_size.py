"""A full-size checkpoint in all steps of a worker, without a network: intake, then a slice of scoring.

The model has random weights, so its answers end at their longest: scoring costs more than it would in truth. Each step
runs in a process of its own, whose peak memory is printed.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import full_size

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

PAGES, QUESTIONS = 7, 20
MAX_INTAKE_MB, MAX_SCORING_MB = 200, 4_000

STEP = """
import json, sys, time
from pathlib import Path
from evaluator.messages.jobs import ArtifactKind, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step

step, checkpoint, reference, data = sys.argv[1], *map(Path, sys.argv[2:])
rules = TrackRules(reference="vt5", test_set="slice", clients=1)
inputs = StepInputs({ArtifactKind.CHECKPOINT: checkpoint}, rules, reference=reference, test_set=data)
started, cpu = time.perf_counter(), time.process_time()
findings = run_step(Step(step), inputs, lambda done, total: None)
wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
(peak,) = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak / 1024, "result": findings.result.model_dump()}))
"""


def test_a_full_size_checkpoint_is_taken_in_and_scored(tmp_path: Path) -> None:
    reference, data, checkpoint = (
        tmp_path / "reference",
        tmp_path / "data",
        tmp_path / "checkpoint.safetensors",
    )
    full_size.make_model().save(reference)
    full_size.make_tokenizer().save(reference)
    full_size.make_pages(data, pages=PAGES, questions=QUESTIONS)
    shutil.copy(reference / "model.safetensors", checkpoint)
    with checkpoint.open("r+b") as file:
        file.seek(-4, 2)
        file.write(bytes(4))  # another number, or there would be nothing to find

    print(f"\n{checkpoint.stat().st_size / 1e9:.2f} GB, {QUESTIONS} questions on {PAGES} pages")
    ended = {}
    for step in ("validate", "scoring"):
        done = subprocess.run(
            [sys.executable, "-c", STEP, step, checkpoint, reference, data],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        ended[step] = json.loads(done.stdout)
        print(
            "{0:<10}{wall_s:7.2f} s, {cpu_s:7.2f} CPU s, peak {peak_mb:6.0f} MB".format(step, **ended[step])
        )
    validated, scored = ended["validate"]["result"], ended["scoring"]["result"]
    assert validated["parameters"] == 311_467_008
    assert len(validated["changed"]) == 1
    assert scored["questions"] == QUESTIONS
    assert scored["checkpoint_sha256"] == validated["sha256"]
    assert ended["validate"]["peak_mb"] < MAX_INTAKE_MB
    assert ended["scoring"]["peak_mb"] < MAX_SCORING_MB
