"""Messages of a codec plug-in, decoded by sandboxed processes before a step folds them.

A codec is code: the kit's own, or a file of the team. It never runs where a result is computed. One process splits the
messages by direction, another decodes those to the server, a third those to the clients. So the first download, which
may be free, can't tell the decoder of updates anything. What else these processes may read is in `decoder_files`; how
long a file of the team may take follows from how much it decodes.
"""

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.folding.decoder_files import (
    ALLOWED_IMPORTS,
    denied_import,
    listable_folders,
    readable_files,
)
from evaluator.folding.lines import BuiltIn, CodecTerms, KitPlugin, OwnFile, TranscriptMessage
from evaluator.folding.opening import Folded, folded_rounds
from evaluator.folding.reading import MessageFile, read_transcript
from evaluator.messages.base import Message
from evaluator.messages.jobs import SERVER, ArtifactKind, evaluator_version
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Ending, Sandbox, SandboxError, UnconfinedError
from evaluator.sandbox.written_files import is_own_file

# The files of one direction: messages, and the vectors that they decode to.
UP, DOWN = "up", "down"
MESSAGES, VECTORS = "messages.bin", "vectors.f32"
# What decoding writes for one direction, and how long it may take.
MAX_VECTOR_BYTES = 4096 * MIB
LIMITS = Limits(wall_s=900, cpu_s=1800, memory_bytes=8192 * MIB, file_bytes=MAX_VECTOR_BYTES)
# The CPU time of a team's decoder: its start (0.05 s with any codec of the kit, seconds if it imports more of torch),
# and ten times what the slowest of the kit's codecs takes for a coordinate of a message (`kseed` with its 1,024 seeds,
# 3 µs; the others, at most 0.06 µs).
START_CPU_S, CPU_S_PER_COORDINATE = 5, 30e-6
DETAIL_CHARACTERS = 300
KIT = "starter_kit"


class SplitMessages(Message):
    """What the first process found: the codec, the shapes of its vectors, and the lengths of messages by direction."""

    codec: CodecTerms
    shapes: list[list[int]]
    numel: int
    lengths: dict[str, list[int]]


class NotDecodedError(RuntimeError):
    """The messages can't be decoded here, though nothing is wrong with them; the text says why."""


def distinct(folded: Folded, way: str) -> list[TranscriptMessage]:
    """Return the messages of one direction with different contents, in the order of their first occurrence."""
    of_way = (message for message in folded.messages if (message.sender == SERVER) == (way == DOWN))
    return list({message.sha256: message for message in reversed(list(of_way))}.values())[::-1]


def decoding_cpu_s(numel: int, messages: int) -> int:
    """Return the seconds of CPU time in which a team's codec must decode so many messages of `numel` coordinates."""
    return min(LIMITS.cpu_s, math.ceil(START_CPU_S + CPU_S_PER_COORDINATE * numel * messages))


def split(inputs: Any, _: Any) -> Any:
    """Write the messages of each direction into a file of their own: in a process that runs no code of the team."""
    try:
        transcript = read_transcript(Path(inputs["transcript"]))
        run = transcript.run
        ways = () if isinstance(run.codec, BuiltIn) else (UP, DOWN)
        folded = folded_rounds(transcript, inputs["challenge"], inputs["drawn"])
        messages = MessageFile(Path(inputs["messages"]), folded)
        lengths = {}
        for way in ways:
            of_way = distinct(folded, way)
            lengths[way] = [message.size_bytes for message in of_way]
            if _exceeds(run.numel, lengths[way]):
                # It isn't decoded.
                continue
            with (Path(inputs["out"]) / way / MESSAGES).open("wb") as file:
                for message in of_way:
                    file.write(messages.read(message, "messages"))
    except ProblemError as error:
        return {"problems": [problem.model_dump(mode="json") for problem in error.problems]}
    found = SplitMessages(
        codec=run.codec,
        shapes=[tensor.shape for tensor in run.trainable],
        numel=run.numel,
        lengths=lengths,
    )
    return {"problems": [], "found": found.model_dump(mode="json")}


def decode_messages(
    sandbox: Sandbox,
    files: Mapping[ArtifactKind, Path],
    folder: Path,
    challenge: str | None,
    drawn: int,
    *,
    confined: bool = True,
) -> bool:
    """Write the vectors of the folded rounds' messages into `folder`, those of each direction into a folder of its own.

    Returns:
        Whether there was something to decode: not with a codec of the evaluator.

    Args:
        challenge: What the site drew for the index of a large run, as in `folded_rounds`.
        drawn: How many rounds it draws at least, besides the last one.
        confined: Whether to refuse where the kernel can't confine the codec: it is other people's code.

    Raises:
        NotDecodedError: They can't be decoded here.
        ProblemError: (`E_TRANSCRIPT_CODEC`) The codec fails; or ``E_TRANSCRIPT_*``: there is something wrong with them.
    """
    # A sandboxed process is in a folder of its own, where a relative path is another one.
    files, folder = {kind: path.absolute() for kind, path in files.items()}, folder.absolute()
    index, content = files[ArtifactKind.TRANSCRIPT], files.get(ArtifactKind.MESSAGES)
    if content is None:
        raise NotDecodedError("The messages of the transcript aren't attached.")
    request = {
        "transcript": str(index),
        "messages": str(content),
        "out": str(folder),
        "challenge": challenge,
        "drawn": drawn,
    }
    found = _split(sandbox, request, [index, content], folder, confined=confined)
    if isinstance(found.codec, BuiltIn):
        return False
    kit = importlib.util.find_spec(KIT)
    if kit is None or not kit.submodule_search_locations:
        raise NotDecodedError("This machine has no starter kit, which codec plug-ins need.")
    if confined:
        try:
            sandbox.require_confinement()
        except UnconfinedError as error:
            raise NotDecodedError(str(error)) from error
    file = _file_of(found.codec, files)
    if any(_exceeds(found.numel, lengths) for lengths in found.lengths.values()):
        raise NotDecodedError(f"Decoded, its messages take more than {MAX_VECTOR_BYTES:,} bytes.")
    # The server of the other one may have loaded code that a codec must not reach.
    with Sandbox() as apart:
        for way in found.lengths:
            _decode(apart, found, way, folder, file, Path(next(iter(kit.submodule_search_locations))))
    return True


def _split(
    sandbox: Sandbox, request: Mapping[str, object], files: list[Path], folder: Path, *, confined: bool
) -> SplitMessages:
    for way in (UP, DOWN):
        (folder / way).mkdir()
    if confined:
        try:
            raw = sandbox.run(
                "evaluator.folding.decoding",
                "split",
                request,
                readable=files,
                writable=[folder],
                limits=LIMITS,
            )
        except SandboxError as error:
            raise NotDecodedError(str(error)) from error
    else:
        raw = split(request, None)
    if problems := raw["problems"]:
        raise ProblemError(*TypeAdapter(list[Problem]).validate_python(problems))
    return SplitMessages.model_validate(raw["found"])


def _exceeds(numel: int, lengths: list[int]) -> bool:
    return 4 * numel * len(lengths) > MAX_VECTOR_BYTES


def _file_of(codec: CodecTerms, files: Mapping[ArtifactKind, Path]) -> Path | None:
    match codec:
        case OwnFile():
            if ArtifactKind.CODEC_FILE not in files:
                raise NotDecodedError("The file of the codec isn't attached.")
            return files[ArtifactKind.CODEC_FILE]
        case KitPlugin(kit_version=version) if version != evaluator_version():
            raise NotDecodedError(
                f"The codec is that of kit {version}; this machine has {evaluator_version()}."
            )
        case _:
            return None


def _decode(
    sandbox: Sandbox, found: SplitMessages, way: str, folder: Path, file: Path | None, kit: Path
) -> None:
    codec = found.codec
    assert not isinstance(codec, BuiltIn)  # noqa: S101 - nothing is decoded for those
    request = {
        "name": codec.name if isinstance(codec, KitPlugin) else "",
        "settings": codec.settings,
        "file": str(file) if file else None,
        "shapes": found.shapes,
        "models": way == DOWN,
        "messages": str(folder / way / MESSAGES),
        "lengths": found.lengths[way],
        "out": str(folder / way / VECTORS),
    }
    cpu_s = decoding_cpu_s(found.numel, len(found.lengths[way])) if file else LIMITS.cpu_s
    try:
        raw = sandbox.run(
            f"{KIT}.compression.decoding",
            "decode",
            request,
            system=readable_files(kit),
            listable=listable_folders(kit),
            readable=[file] if file else [],
            writable=[folder / way],
            limits=replace(LIMITS, cpu_s=cpu_s),
        )
        problem = TypeAdapter(dict[str, str]).validate_python(raw).get("problem", "")
    except SandboxError as error:
        problem = f"{error}. {error.output[-DETAIL_CHARACTERS:]}".strip()
        if error.ending is Ending.CPU_TIME:
            raise _fails(way, f"a decoder that takes at most {cpu_s:,} s of CPU time", problem) from error
    except ValidationError:
        problem = "the process sent something else than an answer"
    if module := denied_import(problem, kit):
        raise _fails(way, f"a codec that imports only {ALLOWED_IMPORTS}", f"it imports {module}")
    if problem:
        raise _fails(way, "messages that the codec decodes without the run's other files", problem)
    if not is_own_file(folder / way / VECTORS):
        raise _fails(way, "vectors in the file that the decoder was given", "a link, or no file")


def _fails(way: str, expected: str, found: str) -> ProblemError:
    place = f"messages to the {'clients' if way == DOWN else 'server'}"
    return ProblemError.of(ErrorCode.TRANSCRIPT_CODEC, where=place, expected=expected, found=found)
