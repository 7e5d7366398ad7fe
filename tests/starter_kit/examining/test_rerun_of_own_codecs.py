"""A rerun counts the bytes of each repeat as a worker does: what a codec remembers while it trains, it doesn't send."""

import shutil
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode
from evaluator.messages.examinations import ExaminationJob, RerunFindings, Scores
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from starter_kit import scaffolding
from starter_kit.examining import rerun
from starter_kit.examining.confined import Confined
from starter_kit.examining.judging import Judgment
from tests.services.kept_sandbox import SANDBOX
from tests.starter_kit.runs.test_transcript import RULES, counted
from tests.starter_kit.training_runs import trained

OWN = (Path(scaffolding.__file__).parent / "codecs" / "my_plugin.py").read_text()
# Sends the number of an update that it keeps in the memory of the process, where all parties are.
REMEMBERS = """
from starter_kit.compression.plugin_codecs import CodecPlugin

KEPT = []


class Codec(CodecPlugin):
    def encode(self, update, state):
        KEPT.append(update.clone())
        return bytes([len(KEPT) - 1])

    def decode(self, message, size):
        return KEPT[message[0]]
"""


def judged(codec: str, base: Path, data: Path, folder: Path) -> Judgment:
    """Train with the codec, and judge one repeat of that, which has the same seed."""
    folder.mkdir()
    (folder / "own.py").write_text(codec)
    run = trained("fedavg", base, data, folder / "run", [f"codec={folder / 'own.py'}"])
    asked = shutil.copytree(data, folder / "data")
    shutil.copytree(data / "valid", asked / "test")
    settings = folder / "settings.yaml"
    settings.write_bytes((run.path / "settings.yaml").read_bytes())
    job = ExaminationJob(
        judge=rerun.__name__,
        level=TrustLevel.RERUN,
        files={ArtifactKind.SETTINGS: settings},
        sha256={},
        data=data,
        base=base,
        test_set=asked,
        track="track-1",
        rules=RULES,
        submitted=Scores(
            anls=0.0, accuracy=0.0, bytes_total=counted(run, base).bytes_total if codec == OWN else 100
        ),
        is_ranked_by_bytes=True,
        is_counted=True,
        seed=1,
        timeout_s=60,
        hours=0.1,
        repeats=1,
    )
    return rerun.examine(job, Confined(SANDBOX), lambda _: None)


@pytest.mark.slow
def test_the_size_of_an_own_codec_counts_in_a_repeat_as_well(base: Path, data: Path, tmp_path: Path) -> None:
    found = judged(OWN, base, data, tmp_path / "own").findings
    assert isinstance(found, RerunFindings)
    (of_bytes,) = [one for one in found.comparisons if one.name == "bytes"]
    assert of_bytes.repeated == of_bytes.submitted > len(OWN)


def test_a_codec_that_sends_updates_through_memory_is_rejected(
    base: Path, data: Path, tmp_path: Path
) -> None:
    (problem,) = judged(REMEMBERS, base, data, tmp_path / "own").problems
    assert problem.code is ErrorCode.TRANSCRIPT_CODEC
