"""A VT5's weights on disk: safetensors, and the pickled original that participants may start from.

Names are those of the published checkpoints. T5's embedding table is used in four places and stored once, under
`language_backbone.shared.weight`; the originals also hold it under its three other names.
"""

import pickle  # noqa: TID251 - for the name of an error: the file itself is read with weights_only
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from evaluator.docvqa.architecture import ALIASES, SHARED_EMBEDDING
from evaluator.errors import ErrorCode, Problem, ProblemError

PROBLEMS_SHOWN = 20
# A pickle's first byte, from its second protocol on.
PROTOCOL = b"\x80"


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name, in the shapes of the file and in memory of their own.

    Raises `ProblemError`: `E_ARTIFACT_MISSING` where there is no such file, `E_CHECKPOINT_FORMAT` where it is
    another kind of file.
    """
    if not path.is_file():
        raise ProblemError.of(ErrorCode.ARTIFACT_MISSING, where=str(path), expected="a safetensors file")
    try:
        with safe_open(path, framework="pt") as file:
            # Cloned, since what safetensors hands out is the mapped file: it would change under the model's
            # feet were the file rewritten.
            return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise ProblemError.of(ErrorCode.CHECKPOINT_FORMAT, path.name, "safetensors", error) from error


def read_original(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a `pytorch_model.bin`, unpickled with tensors as the only allowed content.

    For a participant's own files; workers open safetensors only. Raises `ProblemError` as `unpickle` does.
    """
    tensors = unpickle(path)
    if not isinstance(tensors, dict) or not all(isinstance(value, Tensor) for value in tensors.values()):
        raise not_saved_by_torch(path, "something else")
    return tensors


def unpickle(path: Path, *, mmap: bool = False) -> object:
    """Return what `torch.save` wrote, on the CPU: tensors in containers. Anything else is rejected before it is made.

    Args:
        mmap: Leave the tensors in the file, which must not change then; where its format is the older one, which
            can't be mapped, they are read all the same.

    Raises:
        ProblemError: ``E_CHECKPOINT_PICKLE``, or ``E_CHECKPOINT_FORMAT`` where it isn't such a file.
    """
    try:
        content: object = torch.load(
            path, map_location="cpu", weights_only=True, mmap=mmap and is_zipfile(path)
        )
    except pickle.UnpicklingError as error:
        if not _is_pickled(path):
            raise not_saved_by_torch(path, "another format") from error
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_PICKLE,
            where=path.name,
            expected="tensors in dictionaries and lists",
            found=_rejected_content(str(error)),
        ) from error
    except (OSError, RuntimeError, EOFError) as error:
        raise not_saved_by_torch(path, str(error).partition(". ")[0]) from error
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        struct.error,
    ) as error:
        # The bytes are not a pickle.
        raise not_saved_by_torch(path, "another format") from error
    return content


def not_saved_by_torch(path: Path, found: str) -> ProblemError:
    """Return the rejection (`E_CHECKPOINT_FORMAT`) of a file that holds no pickled state dict."""
    return ProblemError.of(
        ErrorCode.CHECKPOINT_FORMAT,
        message="The file doesn't contain a state dict as written by torch.save.",
        where=path.name,
        expected="tensors by their names",
        found=found or "an empty file",
        next_step="Choose the file with the model's saved state dict, and check that it is complete.",
    )


def _is_pickled(path: Path) -> bool:
    """Return whether a file begins as what `torch.save` writes, in its newer or its older format."""
    if is_zipfile(path):
        return True
    with path.open("rb") as file:
        return file.read(1) == PROTOCOL


def _rejected_content(message: str) -> str:
    """Return what `torch.load` rejected, from its long message, most of which says how to allow it."""
    if named := re.search(r"GLOBAL (\S+)", message):
        return named[1]
    reason, _, _ = message.partition("Check the documentation")
    return reason.strip().rpartition("\n")[2].strip()


def write_safetensors(model: nn.Module, path: Path) -> None:
    """Write the model's weights as float32, tied ones once."""
    tensors = {
        name: parameter.detach().to("cpu", torch.float32).contiguous()
        for name, parameter in model.named_parameters()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata={"format": "pt"})
    # safetensors writes files that only their owner can read.
    path.chmod(0o644)


def fill(model: nn.Module, tensors: Mapping[str, Tensor], *, where: str) -> None:
    """Give `model`, which may lie on the meta device, the weights `tensors`, as float32.

    Raises `ProblemError` with one problem for each tensor that is missing, unknown, of another shape, not
    floating-point, or an alias that differs from the shared embedding. Takes the tensors over, without a copy.
    """
    problems = list(_mismatches(dict(model.named_parameters()), tensors, where))
    if problems:
        raise ProblemError(*problems[:PROBLEMS_SHOWN])
    own = {name: tensor.to(torch.float32) for name, tensor in tensors.items() if name not in ALIASES}
    model.load_state_dict(own, strict=False, assign=True)


def _mismatches(
    parameters: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor], where: str
) -> Iterator[Problem]:
    for name in parameters:
        if name not in tensors:
            yield Problem.of(ErrorCode.CHECKPOINT_MISSING_TENSOR, f"{where}, tensor {name}")
    for name, tensor in tensors.items():
        place = f"{where}, tensor {name}"
        if name in ALIASES and SHARED_EMBEDDING in tensors:
            if not torch.equal(tensor, tensors[SHARED_EMBEDDING]):
                yield Problem.of(
                    ErrorCode.CHECKPOINT_EXTRA_TENSOR, place, f"the same values as {SHARED_EMBEDDING}"
                )
        elif name not in parameters:
            yield Problem.of(ErrorCode.CHECKPOINT_EXTRA_TENSOR, place)
        elif tensor.shape != parameters[name].shape:
            expected, found = list(parameters[name].shape), list(tensor.shape)
            yield Problem.of(ErrorCode.CHECKPOINT_SHAPE, place, expected, found)
        elif not tensor.is_floating_point():
            yield Problem.of(ErrorCode.CHECKPOINT_DTYPE, place, "float32", tensor.dtype)
