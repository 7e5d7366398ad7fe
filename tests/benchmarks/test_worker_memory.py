"""A worker's memory over many checkpoints: as much after a hundred as after five."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the resident memory from /proc"),
]

TOLERANCE = 1.01  # of the resident memory, which moves by pages

WORKER = """
import sys
from pathlib import Path
from evaluator.messages.jobs import ArtifactKind, Step, TrackRules
from evaluator.docvqa.vt5 import VT5
from evaluator.pipeline import StepInputs, run_step
from tests.evaluator.docvqa.factories import make_dataset, make_model, make_tokenizer

home = Path(sys.argv[1])
model = make_model(d_model=256, d_ff=1024, num_layers=4, num_decoder_layers=4)
model.save(home / "reference")
make_tokenizer().save(home / "reference")
make_dataset(home / "data", pages=20)
rules = TrackRules(reference="r", test_set="t", clients=1)
for number in range(1, 101):
    model.language_backbone.shared.weight.data[5, 5] = number / 7
    model.save(home / "run")
    inputs = StepInputs(
        {ArtifactKind.CHECKPOINT: home / "run" / "model.safetensors"}, rules, reference=home / "reference",
        test_set=home / "data", kept=home / "scoring", answers=home / "answers" / f"{number}.jsonl",
    )
    for step in (Step.VALIDATE, Step.SCORING):
        run_step(step, inputs, lambda done, total: None)
    (resident,) = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")]
    print(number, resident / 1024, flush=True)
"""


def test_a_hundred_checkpoints_take_no_more_memory_than_five(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKER, tmp_path], stdout=subprocess.PIPE, text=True, check=True
    )
    resident_mb = {int(number): float(mb) for number, mb in map(str.split, done.stdout.splitlines())}
    size_mb = (tmp_path / "reference" / "model.safetensors").stat().st_size / 2**20
    print(f"\ncheckpoints of {size_mb:.0f} MB; resident memory after")
    for number in (1, 5, 10, 25, 50, 75, 100):
        print(
            f"{number:>5} checkpoints: {resident_mb[number]:7.1f} MB, {resident_mb[number] / resident_mb[5]:.3f}"
        )
    assert resident_mb[100] <= TOLERANCE * resident_mb[5]
