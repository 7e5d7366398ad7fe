"""Folders of a run for other libraries: for the Hugging Face Hub, and for PEFT.

What is private of a run stays where it is: the annex, the vectors of its rounds and its secret are never copied.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.checkpoints.header import read_header
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from starter_kit.compression.peft_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS, is_adapter
from starter_kit.exporting.model_card import Origin, model_card
from starter_kit.reporting.files import read_file
from starter_kit.reporting.metrics import METRICS, SUMMARY, check_private, read_metrics, read_summary
from starter_kit.runs.folder import ADAPTER, FILES, SETTINGS, RunFolder

CARD = "README.md"
TRAINING = "training"
ARCHITECTURE = ("config.json", "visual_config.json")
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "spiece.model")
# What everybody may read of a run's training.
PUBLIC = (
    SETTINGS,
    METRICS,
    SUMMARY,
    FILES[ArtifactKind.COMMUNICATION_LOG],
    FILES[ArtifactKind.TRAINING_RECORD],
)


def export_hub_folder(run: Path, out: Path, base: Path, origin: Origin) -> Path:
    """Write the whole model of a run with its tokenizer and a model card, and return the card's path.

    Args:
        base: The folder of the base weights, which has the tokenizer.

    Raises:
        ProblemError: (`E_RUN_FOLDER`, `E_ARTIFACT_MISSING`) The run isn't complete, the base has no tokenizer, or `out`
            can't be written.
    """
    card = _card(run, origin, adapter=False)
    checkpoint = RunFolder(run).file(ArtifactKind.CHECKPOINT)
    _require_safetensors(checkpoint)
    tokenizer = [base / name for name in TOKENIZER if (base / name).is_file()]
    if not tokenizer:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            where=str(base / TOKENIZER[0]),
            expected="the tokenizer of the base weights",
            found="nothing",
            next_step="Name the folder of the base weights that the run was trained from.",
        )
    with _new_folder(out):
        for path in (checkpoint, *(run / name for name in ARCHITECTURE), *tokenizer):
            if path.is_file():
                shutil.copyfile(path, out / path.name)
        (out / TRAINING).mkdir()
        for path in (run / name for name in PUBLIC):
            if path.is_file():
                shutil.copyfile(path, out / TRAINING / path.name)
        (out / CARD).write_text(card, encoding="utf-8")
    return out / CARD


def export_adapter(run: Path, out: Path, origin: Origin) -> Path:
    """Write the adapters of a run as PEFT loads them, with a model card, and return the card's path.

    Raises:
        ProblemError: (`E_ARTIFACT_MISSING`) The run has no adapters; (`E_RUN_FOLDER`) `out` can't be written.
    """
    card = _card(run, origin, adapter=True)
    source = run / ADAPTER
    if not is_adapter(source):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="The run has no adapters that PEFT could load.",
            where=str(source),
            expected=f"{ADAPTER_WEIGHTS} and {ADAPTER_CONFIG}",
            found="a run without the setting lora, or one that trains a tied tensor beside the adapters",
            next_step="`pfl export hf` writes the whole model.",
        )
    _require_safetensors(source / ADAPTER_WEIGHTS)
    with _new_folder(out):
        for name in (ADAPTER_WEIGHTS, ADAPTER_CONFIG):
            shutil.copyfile(source / name, out / name)
        (out / CARD).write_text(card, encoding="utf-8")
    return out / CARD


def _require_safetensors(path: Path) -> None:
    """Raise `ProblemError` where a file that was cut short, or another one, would be published."""
    try:
        read_header(path)
    except ProblemError as error:
        raise ProblemError(
            *(found.model_copy(update={"where": str(path)}) for found in error.problems)
        ) from error


def _card(run: Path, origin: Origin, *, adapter: bool) -> str:
    settings = read_file(run / SETTINGS).decode(errors="replace")
    summary = read_summary(run / SUMMARY)
    if (run / METRICS).is_file():
        check_private(read_metrics(run / METRICS), summary)
    return model_card(summary, settings, origin, adapter=adapter)


@contextmanager
def _new_folder(out: Path) -> Iterator[None]:
    """Make `out`, and remove it again if the block fails."""
    try:
        out.mkdir(parents=True)
        try:
            yield
        except BaseException:
            shutil.rmtree(out, ignore_errors=True)
            raise
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The exported files can't be written.",
            where=str(out),
            expected="a new folder",
            found=error.strerror,
            next_step="Name another folder, or make room.",
        ) from error
