"""The inspection of a checkpoint: a safetensors file, read as data and compared with the base weights.

Nothing in a checkpoint is executed or trusted. The tensors are read once, in chunks: memory does not grow with the
file. A checkpoint is one file, and its SHA-256 is that of the whole file, on a participant's disk, in the record and
here. Shards are joined on the participant's side, before the upload; the evaluator reads no index and no second file.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from io import FileIO
from itertools import islice
from pathlib import Path

from evaluator.checkpoints.contents import Original, TensorBytes, read_contents
from evaluator.checkpoints.header import Header, Tensor, describe, parse_header, place_of, untied
from evaluator.docvqa.architecture import ALIASES, SHARED_EMBEDDING
from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.messages.jobs import ValidationResult

MAX_PROBLEMS = 20


def inspect_checkpoint(
    path: Path,
    reference: Path,
    *,
    trainable: Sequence[str] = (),
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ValidationResult:
    """Compare a checkpoint with the base weights, reading each once.

    Args:
        reference: The base weights, a safetensors file: the checkpoint must have their names, shapes and dtypes.
        trainable: Shell-style patterns of the names of tensors that may differ from the base weights; all may where
            there is none.
        on_progress: Called with the bytes read so far and in all.

    Returns:
        The number of tensors and parameters, the names of those that differ bit for bit from the base weights, and the
        file's SHA-256. Copies of the shared embedding are never counted or named.

    Raises:
        ProblemError: With everything that is wrong, the first `MAX_PROBLEMS` of it.
        ValueError: The reference is unusable; that is not the participant's fault.
    """
    with ExitStack() as files:

        def opened(file: Path) -> FileIO:
            return files.enter_context(file.open("rb", buffering=0))

        base, checkpoint = opened(reference), opened(path)
        base_header = _reference_header(base, reference)
        header = parse_header(checkpoint)
        expected = untied(base_header)
        # The base weights' tensors of the same name, dtype and shape.
        originals = {
            name: Original(base, base_header.data_start + wanted.begin)
            for name, wanted in expected.items()
            if (tensor := header.tensors.get(name)) and _is_alike(tensor, wanted)
        }
        own = _without_aliases(header, expected)
        if aliases := header.tensors.keys() - own.keys():
            # Opened once more: the embedding is read in one place while the pass continues in another.
            originals |= _originals_of_aliases(header, aliases, opened(path))
        size = header.data_start + header.data_bytes
        tensors = [
            TensorBytes(name, tensor.dtype, tensor.end - tensor.begin, originals.get(name))
            for name, tensor in header.tensors.items()
        ]
        contents = read_contents(
            checkpoint, header.data_start, tensors, on_progress=lambda done: on_progress(done, size)
        )
    unlike = [name for name in aliases if name not in originals or name in contents.differing]
    changed = [name for name in expected if name in contents.differing]
    problems = [
        *architecture_problems(own, expected),
        *_alias_problems(header, sorted(unlike)),
        *_not_finite_problems(contents.not_finite),
        *_frozen_problems(changed, trainable),
    ]
    if problems:
        raise ProblemError(*problems[:MAX_PROBLEMS])
    return ValidationResult(
        tensors=len(own),
        parameters=sum(tensor.numel for tensor in own.values()),
        sha256=contents.sha256,
        changed=changed,
    )


def require_finite(path: Path) -> None:
    """Raise `ProblemError` (`E_CHECKPOINT_NOT_FINITE`) if a number of a checkpoint is NaN or infinite."""
    with path.open("rb", buffering=0) as file:
        header = parse_header(file)
        tensors = [
            TensorBytes(name, tensor.dtype, tensor.end - tensor.begin, None)
            for name, tensor in header.tensors.items()
        ]
        contents = read_contents(file, header.data_start, tensors)
    if problems := list(islice(_not_finite_problems(contents.not_finite), MAX_PROBLEMS)):
        raise ProblemError(*problems)


def header_problems(header: Header, base: Header) -> list[Problem]:
    """Return what a checkpoint's header shows to be unlike the base weights, the first `MAX_PROBLEMS` of it."""
    expected = untied(base)
    return list(islice(architecture_problems(_without_aliases(header, expected), expected), MAX_PROBLEMS))


def _reference_header(file: FileIO, path: Path) -> Header:
    try:
        return parse_header(file)
    except ProblemError as error:
        raise ValueError(f"the reference {path} is no checkpoint: {error}") from error


def _without_aliases(header: Header, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors without the copies of the shared embedding, unless the reference has them as well."""
    return {
        name: tensor for name, tensor in header.tensors.items() if name not in ALIASES or name in expected
    }


def _originals_of_aliases(
    header: Header, aliases: Collection[str], checkpoint: FileIO
) -> dict[str, Original]:
    """Return the shared embedding for each alias that could be a copy of it."""
    shared = header.tensors.get(SHARED_EMBEDDING)
    if shared is None:
        return {}
    original = Original(checkpoint, header.data_start + shared.begin)
    return {name: original for name in aliases if _is_alike(header.tensors[name], shared)}


def _is_alike(tensor: Tensor, other: Tensor) -> bool:
    return (tensor.dtype, tensor.shape) == (other.dtype, other.shape)


def architecture_problems(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> Iterator[Problem]:
    """Yield the differences between `tensors` and the names, dtypes and shapes of `expected`."""
    for name, wanted in expected.items():
        tensor = tensors.get(name)
        if tensor is None:
            yield Problem.of(ErrorCode.CHECKPOINT_MISSING_TENSOR, place_of(name), describe(wanted), "nothing")
            continue
        if tensor.dtype != wanted.dtype:
            yield Problem.of(ErrorCode.CHECKPOINT_DTYPE, place_of(name), wanted.dtype, tensor.dtype)
        if tensor.shape != wanted.shape:
            yield Problem.of(
                ErrorCode.CHECKPOINT_SHAPE, place_of(name), list(wanted.shape), list(tensor.shape)
            )
    for name, tensor in tensors.items():
        if name not in expected:
            yield Problem.of(ErrorCode.CHECKPOINT_EXTRA_TENSOR, place_of(name), "nothing", describe(tensor))


def _alias_problems(header: Header, unlike: Sequence[str]) -> Iterator[Problem]:
    """Reject the aliases that are not the shared embedding, byte for byte."""
    shared = header.tensors.get(SHARED_EMBEDDING)
    for name in unlike:
        alias = header.tensors[name]
        is_alike = shared is not None and _is_alike(alias, shared)
        yield Problem.of(
            ErrorCode.CHECKPOINT_EXTRA_TENSOR,
            where=place_of(name),
            expected=f"no such tensor, or an exact copy of {SHARED_EMBEDDING}",
            found=f"{describe(alias)} with other values" if is_alike else describe(alias),
        )


def _not_finite_problems(first: Mapping[str, int]) -> Iterator[Problem]:
    for name, element in first.items():
        yield Problem.of(
            ErrorCode.CHECKPOINT_NOT_FINITE,
            where=place_of(name),
            expected="finite numbers",
            found=f"NaN or infinity at element {element}",
        )


def _frozen_problems(changed: Sequence[str], trainable: Sequence[str]) -> Iterator[Problem]:
    """Reject changes to tensors whose names match none of the patterns."""
    for name in changed:
        if trainable and not any(fnmatchcase(name, pattern) for pattern in trainable):
            yield Problem.of(
                ErrorCode.CHECKPOINT_FROZEN_TENSOR,
                where=place_of(name),
                expected="the base weights, bit for bit",
                found="other values",
                next_step="Save it as it is in the base weights. In this track only tensors whose names match one of "
                f"these patterns may differ: {shorten(', '.join(trainable), 500)}.",
            )
