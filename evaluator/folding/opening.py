"""Which rounds of a run are folded: all, or of a large run the last one and those that the site's challenge draws.

The file of messages has the distinct messages of these rounds, in the order in which they first appear. Where rounds
were drawn, it begins with the server's state before each of them but the run's first one: the weights (d,), float32 and
little-endian, and then the vectors that the server keeps, in the order of their names. The round before commits to it.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.folding.lines import TranscriptMessage, TranscriptRound
from evaluator.folding.reading import MAX_MESSAGES_BYTES, Transcript
from evaluator.folding.server_step import kept_vectors
from evaluator.records.round_keys import replayed_rounds


@dataclass(frozen=True)
class Folded:
    """The rounds of a transcript that are folded.

    Attributes:
        is_drawn: Whether they were drawn, so that each is folded from the state before it.
    """

    transcript: Transcript
    rounds: list[TranscriptRound]
    is_drawn: bool = False

    @property
    def messages(self) -> Iterator[TranscriptMessage]:
        """The messages of these rounds, in the order in which they were sent."""
        return (message for line in self.rounds for message in line.messages)

    @property
    def distinct(self) -> list[TranscriptMessage]:
        """Those of different contents, in the order in which they first appear."""
        found: dict[str, TranscriptMessage] = {}
        for message in self.messages:
            found.setdefault(message.sha256, message)
        return list(found.values())

    @property
    def opened(self) -> list[int]:
        """The numbers of the rounds whose state before them is in the file."""
        return [line.round for line in self.rounds if line.round > 1] if self.is_drawn else []

    @property
    def model_bytes(self) -> int:
        """The size of the weights (d,), float32."""
        return 4 * self.transcript.run.numel

    @property
    def state_bytes(self) -> int:
        """The size of one state."""
        return self.model_bytes * (1 + len(kept_vectors(self.transcript.run.server)))

    @property
    def size_bytes(self) -> int:
        """The size of the file of messages."""
        return len(self.opened) * self.state_bytes + sum(message.size_bytes for message in self.distinct)


def folded_rounds(transcript: Transcript, challenge: str | None, drawn: int) -> Folded:
    """Return the rounds to fold: all of them without a challenge, and otherwise the last one and those that it draws.

    It draws `drawn` others, and more as long as the file of messages stays within its limit. There is always room for
    the first downloads, so that their size has no influence on whether the first round is among those drawn.
    """
    if challenge is None or not transcript.rounds:
        return Folded(transcript, transcript.rounds)

    def folded(drawn: int) -> Folded:
        numbers = replayed_rounds(challenge, len(transcript.rounds), drawn)
        return Folded(transcript, [transcript.rounds[number - 1] for number in numbers], is_drawn=True)

    first = transcript.first_downloads

    def size_bytes(drawn: int) -> int:
        chosen = folded(drawn)
        return chosen.size_bytes - sum(first[one.sha256] for one in chosen.distinct if one.sha256 in first)

    more = range(drawn + 1, len(transcript.rounds))
    fitting = bisect_right(more, MAX_MESSAGES_BYTES - sum(first.values()), key=size_bytes)
    return folded(drawn + fitting)


def missed(rounds: int, drawn: int, false: int = 1) -> float:
    """Return how probable it is that none of so many false rounds is folded, if the last round isn't one of them."""
    others = rounds - 1
    return math.comb(others - false, drawn) / math.comb(others, drawn) if drawn <= others - false else 0.0
