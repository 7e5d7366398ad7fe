"""Whether a run's bytes are counted: a transcript is folded where one is attached that can be folded here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.checkpoints.weight_changes import TensorChange
from evaluator.communication.log import CommunicationTotals
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.folding import WeightFiles, fold
from evaluator.folding.lines import BuiltIn, CodecTerms, OwnFile
from evaluator.folding.opening import Folded, folded_rounds, missed
from evaluator.folding.reading import MessageFile, check_log, read_transcript
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind, TrackRules
from evaluator.messages.progress import OnProgress
from evaluator.records.round_checks import FRAMING

# How probable it may be that one false round of a large run isn't among those that are opened.
MOST_MISSED = 0.9


@dataclass(frozen=True)
class Decoded:
    """What became of the messages of a codec plug-in before the step; see `evaluator.folding.decoding`.

    Attributes:
        folder: Where their vectors are.
        because: Why there are none.
    """

    folder: Path | None = None
    because: str = ""


NOT_DECODED = Decoded()


@dataclass(frozen=True)
class Counting:
    """How a run's bytes were counted.

    Attributes:
        is_counted: Whether the checkpoint follows from the messages.
        because: Why they aren't counted though there is a transcript; empty otherwise.
        rounds_folded: How many rounds were computed.
        decoder_bytes: The size of the team's own codec, with its settings.
    """

    is_counted: bool
    because: str = ""
    rounds_folded: int = 0
    decoder_bytes: int = 0


def count(
    files: Mapping[ArtifactKind, Path],
    base: Path,
    rules: TrackRules,
    totals: CommunicationTotals,
    changes: list[TensorChange],
    on_progress: OnProgress,
    decoded: Decoded,
    challenge: str | None,
) -> Counting:
    """Fold the run's transcript, or of a large one the rounds that the site drew.

    Args:
        changes: The tensors of the checkpoint that differ from the base weights.
        decoded: What became of the messages of a codec plug-in.
        challenge: What the site drew for the index of a large run; None for a run that attaches all messages.

    Raises:
        ProblemError: ``E_TRANSCRIPT_*``: the transcript isn't that of this log and this checkpoint.
    """
    index = files.get(ArtifactKind.TRANSCRIPT)
    if index is None:
        # Of a model that nobody trained there is nothing to compute.
        return Counting(totals.messages == 0 and not changes)
    transcript = read_transcript(index)
    log = files[ArtifactKind.COMMUNICATION_LOG]
    check_log(transcript, log, clients=rules.clients, max_rounds=rules.max_rounds)
    folded = folded_rounds(transcript, challenge, rules.drawn_rounds)
    if because := _obstacle(files, folded, decoded):
        return Counting(is_counted=False, because=because)
    messages = MessageFile(files[ArtifactKind.MESSAGES], folded)
    weights = WeightFiles(base, files[ArtifactKind.CHECKPOINT], changes)
    fold(folded, messages, weights, on_progress, decoded=decoded.folder)
    return Counting(
        is_counted=True,
        # Rounds after the last message have none to fold.
        rounds_folded=min(len(folded.rounds), totals.rounds),
        decoder_bytes=_decoder_bytes(transcript.run.codec, files),
    )


def _obstacle(files: Mapping[ArtifactKind, Path], folded: Folded, decoded: Decoded) -> str:
    """Return why a transcript can't be folded here, though nothing is wrong with it; empty where it can."""
    if ArtifactKind.MESSAGES not in files:
        return "The messages of the transcript aren't attached."
    rounds = folded.transcript.rounds
    if folded.is_drawn and (empty := next((line for line in rounds if not line.messages), None)):
        # Rounds that cost nothing would dilute the draw.
        return f"Rounds are drawn only where each has messages, and round {empty.round} has none."
    if folded.is_drawn and (chance := missed(len(rounds), len(folded.rounds) - 1)) > MOST_MISSED:
        # Rounds that cost next to nothing would do so as well.
        return (
            f"Only {len(folded.rounds)} of {len(rounds)} rounds fit into the file of messages, so that a false round "
            f"would be missed with a probability of {chance:.1%}; at most {MOST_MISSED:.0%} is accepted."
        )
    first = sum(folded.transcript.first_downloads.values())
    if folded.is_drawn and first > folded.model_bytes * (1 + FRAMING):
        # Room is kept for them, which other rounds would need.
        return f"The first downloads have {first} bytes, and a model has only {folded.model_bytes}."
    if isinstance(folded.transcript.run.codec, BuiltIn) or decoded.folder:
        return ""
    return decoded.because or "The codec isn't one of the evaluator's own, and its messages weren't decoded."


def _decoder_bytes(codec: CodecTerms, files: Mapping[ArtifactKind, Path]) -> int:
    """Return the size of a team's own codec with its settings; raises `ProblemError` for another file."""
    if not isinstance(codec, OwnFile):
        return 0
    found = sha256_of(files[ArtifactKind.CODEC_FILE])
    size = files[ArtifactKind.CODEC_FILE].stat().st_size
    if (found, size) != (codec.sha256, codec.size_bytes):
        raise ProblemError.of(
            ErrorCode.TRANSCRIPT_CODEC,
            where="codec file",
            expected=f"{codec.size_bytes} bytes of SHA-256 {codec.sha256}, as in the transcript",
            found=f"{size} bytes of SHA-256 {found}",
        )
    return size + len(codec.settings.encode())
