"""Base weights with an adapter in them, one float32 `model.safetensors` like any other checkpoint."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import save_file

from evaluator.checkpoints.inspection import require_finite
from evaluator.docvqa.architecture import ALIASES
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from evaluator.pipeline import WEIGHTS
from starter_kit.compression.peft_files import ADAPTER_CONFIG, merged, read_adapter
from starter_kit.disk import room_for
from starter_kit.weights.adapter_settings import require_sum_of_products


def merge(source: Path, target: Path, *, base: Path | None, report: Callable[[str], None]) -> None:
    """Write the checkpoint that an adapter makes of the base weights.

    Args:
        source: Folder of the adapter.
        target: The file to write.
        report: Called with each line that the user should see.

    Raises:
        ProblemError: No base weights are named, or the adapter can't be read or doesn't fit them.
    """
    if base is None:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="An adapter is added to base weights, and none are named.",
            where="--base",
            expected=f"the folder of the base weights that {source / ADAPTER_CONFIG} belongs to",
            found="nothing",
            next_step="Add --base FOLDER.",
        )
    require_sum_of_products(source / ADAPTER_CONFIG)
    adapter = read_adapter(source)
    known = {name: tensor.float() for name, tensor in read_safetensors(base / WEIGHTS).items()}
    tensors = {name: tensor for name, tensor in merged(adapter, known).items() if name not in ALIASES}
    target.parent.mkdir(parents=True, exist_ok=True)
    with room_for(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=".pfl-convert-") as folder:
        written = Path(folder) / WEIGHTS
        save_file(tensors, written, metadata={"format": "pt"})
        require_finite(written)
        # safetensors writes files that only their owner can read.
        written.chmod(0o644)
        written.replace(target)
    report(
        f"{target}: the base weights, with adapters in {len(adapter.pairs)} layers and "
        f"{len(adapter.whole)} tensors in full"
    )
