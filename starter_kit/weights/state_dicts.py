"""State dicts as training frameworks save them, rewritten as float32 safetensors under the base weights' names.

Runs as a process of its own, `python -m starter_kit.weights.state_dicts`, started by `starter_kit.weights.converting`:
it opens files that may be hostile. It reads a `Job` from standard input and writes the files that the job
names, a `ConversionReport` in any case.
"""

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from evaluator.checkpoints import header as checkpoints
from evaluator.checkpoints.header import read_header
from evaluator.checkpoints.sharding import check_shard, encode_header
from evaluator.docvqa.architecture import ALIASES, SHARED_EMBEDDING
from evaluator.docvqa.weights import not_saved_by_torch, unpickle
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.weights.converting import MAX_NOTES, MAX_PROBLEMS, ConversionReport, Job, is_safetensors

WRAPPERS = ("state_dict", "model_state_dict", "model")
PREFIXES = ("module.", "_orig_mod.", "model.")  # of DistributedDataParallel, torch.compile and Lightning
MAX_NESTING = 4
MAX_SHARING = 4  # tensors to a piece of memory, in the mean
ITEM_BYTES = 4

State = dict[str, Tensor]


def main() -> None:
    """Do the job on standard input."""
    job = Job.model_validate_json(sys.stdin.buffer.read())
    notes: list[str] = []
    problems = []
    try:
        write(rewritten(read(job.files, job.weight_map, notes), notes), job.weights)
    except ProblemError as error:
        problems = error.problems[:MAX_PROBLEMS]
    outcome = ConversionReport(notes=notes[:MAX_NOTES], problems=problems)
    job.outcome.write_text(outcome.model_dump_json(), encoding="utf-8")


def read(files: list[Path], weight_map: Mapping[str, str] | None, notes: list[str]) -> State:
    """Return the tensors of a checkpoint or its shards, under the names that they have there."""
    tensors: State = {}
    for path in files:
        if is_safetensors(path):
            read_header(path)
            part = load_file(path)
        else:
            part = state_in(unpickle(path, mmap=True), path, notes)
        if weight_map is not None:
            check_shard(path.name, part.keys(), weight_map)
        tensors |= part
    return tensors


def state_in(content: object, path: Path, notes: list[str]) -> State:
    """Return the state dict that a file's content is, or holds under one of the usual names.

    Raises:
        ProblemError: (`E_CHECKPOINT_FORMAT`) There is none, or something else is in it.
    """
    content = _unwrapped(content, notes)
    if not isinstance(content, dict) or not content:
        raise not_saved_by_torch(path, type(content).__name__ if content else "no tensor")
    tensors: State = {}
    for name, tensor in content.items():
        if not isinstance(name, str) or type(tensor) not in (Tensor, nn.Parameter):
            raise not_saved_by_torch(path, f"{name}: {type(tensor).__name__}")
        tensors[name] = tensor.detach()
    return tensors


def _unwrapped(content: object, notes: list[str]) -> object:
    """Return what lies under the usual names, one within the other; the content itself if there are none."""
    for _ in range(MAX_NESTING):
        if not isinstance(content, dict):
            break
        wrapper = next((name for name in WRAPPERS if isinstance(content.get(name), dict)), None)
        if wrapper is None:
            break
        left_out = f", leaving out {len(content) - 1} other entries" if len(content) > 1 else ""
        notes.append(f'took what is under "{wrapper}"{left_out}')
        content = content[wrapper]
    return content


def rewritten(tensors: State, notes: list[str]) -> State:
    """Return `tensors` without the prefixes of wrappers and without tied copies.

    Raises:
        ProblemError: One is of a kind that no checkpoint has, or differs from the tensor that it is tied to.
    """
    for name, tensor in tensors.items():
        _check(name, tensor)
    kept = _without_aliases(_without_prefixes(tensors, notes), notes)
    _check_sizes(kept.values())
    for dtype, count in Counter(tensor.dtype for tensor in kept.values()).items():
        if dtype != torch.float32:
            notes.append(f"wrote {count} tensors of {str(dtype).removeprefix('torch.')} as float32")
    return kept


def write(tensors: State, path: Path) -> None:
    """Write `tensors` as float32, one after the other: memory holds one at a time."""
    entries: dict[str, checkpoints.Tensor] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + ITEM_BYTES * tensor.numel()
        entries[name] = checkpoints.Tensor("F32", tuple(tensor.shape), begin, end)
    with path.open("wb") as file:
        file.write(encode_header(entries))
        for tensor in tensors.values():
            file.write(tensor.to(torch.float32).contiguous().view(-1).numpy().data)


def _check(name: str, tensor: Tensor) -> None:
    if not tensor.is_floating_point():
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_DTYPE,
            where=f"tensor {name}",
            expected="floating-point numbers",
            found=tensor.dtype,
        )
    plain = tensor.layout is torch.strided and tensor.device.type == "cpu"
    # One that repeats its memory may claim to be of any size.
    if not plain or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_FORMAT,
            where=f"tensor {name}",
            expected="a tensor with all of its numbers in the file",
            found=f"{tensor.layout}, {list(tensor.shape)}, {tensor.device.type}",
        )


def _check_sizes(tensors: Collection[Tensor]) -> None:
    """Reject tensors that share their memory so often that a small file would fill the disk."""
    held = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if claimed > MAX_SHARING * sum(held.values()):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_FORMAT,
            message="The tensors of the file share their numbers with each other.",
            expected="tensors with numbers of their own",
            found=f"{claimed} bytes of tensors, {sum(held.values())} bytes in the file",
            next_step="Save a clone of every tensor.",
        )


def _without_prefixes(tensors: State, notes: list[str]) -> State:
    while prefix := next(
        (prefix for prefix in PREFIXES if all(name.startswith(prefix) for name in tensors)), ""
    ):
        tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        notes.append(f'took "{prefix}" off all {len(tensors)} names')
    return tensors


def _without_aliases(tensors: State, notes: list[str]) -> State:
    aliases = sorted(ALIASES & tensors.keys())
    if not aliases:
        return tensors
    kept = {name: tensor for name, tensor in tensors.items() if name not in aliases}
    if SHARED_EMBEDDING not in kept:
        kept[SHARED_EMBEDDING] = tensors[aliases[0]]
        notes.append(f"renamed {aliases[0]} to {SHARED_EMBEDDING}, which it is tied to")
    shared = kept[SHARED_EMBEDDING]
    for name in aliases:
        alias = tensors[name]
        if alias.dtype != shared.dtype or alias.shape != shared.shape or not _same_bytes(alias, shared):
            raise ProblemError.of(
                ErrorCode.CHECKPOINT_EXTRA_TENSOR,
                where=f"tensor {name}",
                expected=f"an exact copy of {SHARED_EMBEDDING}",
                found="other values",
                next_step="Train with tied embeddings, as the base weights are.",
            )
    notes.append(f"dropped {len(aliases)} copies of {SHARED_EMBEDDING}, which T5 ties to it")
    return kept


def _same_bytes(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one dtype and shape hold the same numbers, NaN and the sign of zero included."""
    first, second = (tensor.contiguous().view(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(first, second)


if __name__ == "__main__":
    main()
