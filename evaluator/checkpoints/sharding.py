"""Sharded checkpoints, as Hugging Face libraries save large models: joined into one safetensors file.

A checkpoint's identity is the SHA-256 of one file, so the site and the workers know no shards: participants' tools
join them. The joined bytes follow from the shards alone. The header has the tensors in the order of the shards' names,
then of their bytes, and ends in spaces up to a multiple of eight bytes; the tensors follow as they lie in the shards.
`docvqa_site/submissions/static/submissions/joined.js` writes the same bytes in the browser.

The index and the shards are data from strangers: nothing in them names a file outside the index's folder.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path

from evaluator.checkpoints.header import (
    MAX_HEADER_BYTES,
    MAX_NAME_LENGTH,
    MAX_TENSORS,
    Header,
    Tensor,
    read_header,
)
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.untrusted_json import UntrustedJSONError, parse

INDEX = "model.safetensors.index.json"
MAX_INDEX_BYTES = MAX_HEADER_BYTES
MAX_SHARDS = 1000
CHUNK_BYTES = 1024**2

# ASCII only, so that names sort alike everywhere; no separator, no drive, no "..".
_SHARD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def read_index(path: Path, *, suffix: str = ".safetensors") -> dict[str, str]:
    """Return the shard file of each tensor, as an index names them; the shards are there and not opened.

    Raises:
        ProblemError: ``E_CHECKPOINT_INDEX``, or ``E_CHECKPOINT_SHARD`` where shards are missing.
    """
    weight_map = _read_weight_map(path)
    for tensor, shard in weight_map.items():
        _check_entry(path, tensor, shard, suffix)
    _check_shards_are_there(path, shard_names(weight_map))
    return weight_map


def _read_weight_map(path: Path) -> dict[str, str]:
    """Return the index's map from tensors to files, whose entries are yet to be checked."""
    size = path.stat().st_size
    if size > MAX_INDEX_BYTES:
        raise _index_rejection(path, f"at most {MAX_INDEX_BYTES} bytes", f"{size} bytes")
    try:
        content = parse(path.read_bytes())
    except UntrustedJSONError as error:
        raise _index_rejection(path, "JSON", error) from error
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise _index_rejection(path, "a weight_map from tensors to files", "none")
    if len(weight_map) > MAX_TENSORS:
        raise _index_rejection(path, f"at most {MAX_TENSORS} tensors", len(weight_map))
    return weight_map


def _check_entry(path: Path, tensor: str, shard: object, suffix: str) -> None:
    if len(tensor) > MAX_NAME_LENGTH or not _is_text(tensor):
        raise _index_rejection(path, f"names of at most {MAX_NAME_LENGTH} characters", tensor)
    if not isinstance(shard, str) or not _SHARD_NAME.fullmatch(shard) or not shard.endswith(suffix):
        raise _index_rejection(
            path, f"the name of a {suffix} file in the same folder", shard, f"tensor {tensor}"
        )


def _check_shards_are_there(path: Path, shards: Sequence[str]) -> None:
    if len(shards) > MAX_SHARDS:
        raise _index_rejection(path, f"at most {MAX_SHARDS} shards", len(shards))
    missing = [shard for shard in shards if not (path.parent / shard).is_file()]
    if missing:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_SHARD,
            where=path.name,
            expected=f"its {len(shards)} shards",
            found=f"{len(missing)} missing: {', '.join(missing)}",
        )


def shard_names(weight_map: Mapping[str, str]) -> list[str]:
    """Return the shards, in the order in which they are joined."""
    return sorted(set(weight_map.values()))


def join(index: Path, target: Path) -> None:
    """Write the checkpoint of `index` and the shards beside it as one file; memory doesn't grow with it.

    `target` appears when it is complete.

    Raises:
        ProblemError: The index or a shard is rejected.
        OSError: `target` can't be written.
    """
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as out:
            out.writelines(_joined_chunks(index))
        # A file that changed while it was copied is rejected here.
        read_header(unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def joined_sha256(index: Path) -> str:
    """Return the SHA-256 of the file that `join` would write; raises `ProblemError` as it does."""
    digest = hashlib.sha256()
    for chunk in _joined_chunks(index):
        digest.update(chunk)
    return digest.hexdigest()


def check_same(checkpoint: Path, index: Path) -> None:
    """Reject a checkpoint with a newer, sharded one beside it: that is of a later training, most likely."""
    if index.stat().st_mtime_ns <= checkpoint.stat().st_mtime_ns:
        return
    if joined_sha256(index) != sha256_of(checkpoint):
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The folder holds two checkpoints, and it isn't clear which one is meant.",
            where=str(checkpoint),
            expected=f"the joined shards of {index.name}, which is newer",
            found="another checkpoint",
            next_step=f"Delete {checkpoint.name} if the shards are meant, else {index.name}.",
        )


def encode_header(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the first bytes of a safetensors file, up to the first tensor, which begins at a multiple of eight.

    Raises `ProblemError` (`E_CHECKPOINT_HEADER`) where a name can't be written as UTF-8.
    """
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    for name, tensor in tensors.items():
        entries[name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": (tensor.begin, tensor.end),
        }
    try:
        text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_HEADER, expected="names in Unicode", found=error
        ) from error
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _joined_chunks(index: Path) -> Iterator[bytes]:
    tensors, shards = _plan(index)
    yield encode_header(tensors)
    for shard, header in shards.items():
        with shard.open("rb") as file:
            file.seek(header.data_start)
            yield from iter(partial(file.read, CHUNK_BYTES), b"")


def _plan(index: Path) -> tuple[dict[str, Tensor], dict[Path, Header]]:
    """Return the joined file's tensors, and the headers of the shards in their order."""
    weight_map = read_index(index)
    shards: dict[Path, Header] = {}
    tensors: dict[str, Tensor] = {}
    start = 0
    for name in shard_names(weight_map):
        path = index.parent / name
        header = _read_shard(path, weight_map)
        shards[path] = header
        # Empty tensors share their place with another one: the name decides.
        ordered = sorted(header.tensors.items(), key=lambda item: (item[1].begin, item[1].end, item[0]))
        for tensor_name, tensor in ordered:
            tensors[tensor_name] = Tensor(
                tensor.dtype, tensor.shape, start + tensor.begin, start + tensor.end
            )
        start += path.stat().st_size - header.data_start
    length = len(encode_header(tensors)) - 8
    if length > MAX_HEADER_BYTES:
        raise _index_rejection(
            index, f"a joined header of at most {MAX_HEADER_BYTES} bytes", f"{length} bytes"
        )
    return tensors, shards


def _read_shard(path: Path, weight_map: Mapping[str, str]) -> Header:
    """Return a shard's header, holding exactly the tensors that the index places there."""
    try:
        header = read_header(path)
    except ProblemError as error:
        raise ProblemError(*(_in_shard(problem, path.name) for problem in error.problems)) from error
    check_shard(path.name, header.tensors.keys(), weight_map)
    return header


def check_shard(shard: str, held: Set[str], weight_map: Mapping[str, str]) -> None:
    """Reject (`E_CHECKPOINT_SHARD`) a shard that doesn't hold exactly the tensors that the index places there."""
    placed = {tensor for tensor, name in weight_map.items() if name == shard}
    for tensor in sorted(placed - held):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_SHARD,
            where=f"{shard}, tensor {tensor}",
            expected="the tensor, as the index says",
            found="nothing",
        )
    for tensor in sorted(held - placed):
        raise ProblemError.of(
            ErrorCode.CHECKPOINT_SHARD,
            where=f"{shard}, tensor {tensor}",
            expected="only tensors that the index places in this shard",
            found=f"the index places it in {weight_map[tensor]}"
            if tensor in weight_map
            else "not in the index",
        )


def _in_shard(problem: Problem, shard: str) -> Problem:
    return problem.model_copy(update={"where": ", ".join(filter(None, (shard, problem.where)))})


def _is_text(name: str) -> bool:
    """Return whether `name` can be written as UTF-8; JSON can hold halves of surrogate pairs."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _index_rejection(path: Path, expected: str, found: object, where: str = "") -> ProblemError:
    return ProblemError.of(
        ErrorCode.CHECKPOINT_INDEX, ", ".join(filter(None, (path.name, where))), expected, found
    )
