"""Whether a communication log is plausible: checks that it is consistent with itself and with what changed.

They need no training record, so every track has them. They only ever flag: only the participant saw the
messages, a log that passes may still be made up, and an unforeseen codec may pass below the floor. Where a
record declares the tensors that were sent and their codec, `record.bytes` compares exactly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator.checkpoints.weight_changes import TensorChange
from evaluator.communication.log import CommunicationTotals, Exchange
from evaluator.messages.checks import NamedCheck
from evaluator.messages.jobs import Check

# NF4 with a float32 scale for each 64 numbers (Dettmers et al., 2023, arXiv:2305.14314): the tightest codec that runs
# on this benchmark have used.
CHEAPEST_BITS = 4.5
# A sign for each number that describes the change.
MIN_BITS = 1.0
# Two float32 numbers, such as a weight and its optimizer state, for each number that changed.
MAX_BITS = 64.0
# How rarely honest sampling of clients leaves out as many rounds as the log does, for it to be flagged.
RARE = 1e-3


@dataclass
class Deviations:
    """How many exchanges are unlike the others, and the first of them in words."""

    count: int = 0
    first: str = ""

    def add(self, exchange: Exchange) -> None:
        """Count an exchange that is unlike the others."""
        self.count += 1
        self.first = self.first or (
            f"round {exchange.round}, client {exchange.client}: "
            f"{exchange.messages_down} down, {exchange.messages_up} up"
        )


@dataclass
class Sizes:
    """The bytes that a client is sent, or sends, in a round: the smallest and the largest number."""

    smallest: float = math.inf
    largest: float = 0

    def add(self, size_bytes: int) -> None:
        """Include a size."""
        self.smallest = min(self.smallest, size_bytes)
        self.largest = max(self.largest, size_bytes)


@dataclass
class Traffic:
    """What the exchanges of a log have in common, gathered one by one in constant memory.

    Attributes:
        exchanges: The number of clients' exchanges, over all rounds.
        rounds: The number of rounds with a message.
        one_way: Exchanges without a message down, or without one up.
        usual: Messages down and up of the first exchange that went both ways; None as long as there is none.
        unusual: Exchanges both ways with other numbers of messages.
        down: The sizes of the exchanges with a message down; `up` likewise.
    """

    exchanges: int = 0
    rounds: int = 0
    one_way: Deviations = field(default_factory=Deviations)
    usual: tuple[int, int] | None = None
    unusual: Deviations = field(default_factory=Deviations)
    down: Sizes = field(default_factory=Sizes)
    up: Sizes = field(default_factory=Sizes)
    _last_round: int = 0

    def add(self, exchange: Exchange) -> None:
        """Take in the next exchange; rounds don't go backwards."""
        self.exchanges += 1
        self.rounds += exchange.round != self._last_round
        self._last_round = exchange.round
        messages = (exchange.messages_down, exchange.messages_up)
        if not all(messages):
            self.one_way.add(exchange)
        else:
            self.usual = self.usual or messages
            if messages != self.usual:
                self.unusual.add(exchange)
        if exchange.messages_down:
            self.down.add(exchange.bytes_down)
        if exchange.messages_up:
            self.up.add(exchange.bytes_up)


def transfer_bytes(changes: Sequence[TensorChange]) -> int:
    """Return the fewest bytes in which what changed goes over the wire once, at `CHEAPEST_BITS` a parameter."""
    return math.ceil(sum(change.parameters for change in changes) * CHEAPEST_BITS / 8)


def bytes_needed(changes: Sequence[TensorChange]) -> int:
    """Return twice `transfer_bytes`: once up, or the server couldn't know it, and once down, the first download."""
    return 2 * transfer_bytes(changes)


def checks(
    totals: CommunicationTotals, traffic: Traffic, changes: Sequence[TensorChange], *, clients: int
) -> list[Check]:
    """Return the checks of one log, in the order of `LOG_CHECKS`, of a track with so many `clients`."""
    return [
        _both_directions(traffic),
        _regular(totals, traffic, clients),
        _bits(traffic, changes),
        _floor(totals, changes),
    ]


DIRECTIONS = NamedCheck(
    "log.directions",
    name="both directions",
    meaning="In every round, each client that received a message also sent one, and vice versa. The first download of "
    "each client is therefore also in the log.",
    limit="Messages missing in both directions, and missing rounds.",
)


def _both_directions(traffic: Traffic) -> Check:
    expected = "a message down and one up for each client of a round"
    if not traffic.one_way.count:
        return DIRECTIONS.passed(
            expected=expected, found=f"{traffic.exchanges} exchanges, all in both directions"
        )
    found = f"{traffic.one_way.count} of {traffic.exchanges} exchanges went one way"
    return DIRECTIONS.flagged(found, expected, traffic.one_way.first)


REGULAR_ROUNDS = NamedCheck(
    "log.rounds",
    name="regular rounds",
    meaning="All exchanges have the same number of messages down, and the same number up, and there are no more empty "
    "rounds than independent client sampling would produce.",
    limit="Clients or rounds left out in a way that keeps the remaining log regular.",
)


def _regular(totals: CommunicationTotals, traffic: Traffic, clients: int) -> Check:
    if traffic.usual is None:
        return REGULAR_ROUNDS.not_applicable("no exchange went both ways")
    down, up = traffic.usual
    expected = (
        f"in each exchange, messages down: {down}, up: {up}; no more empty rounds than sampling would produce"
    )
    gaps = totals.rounds - traffic.rounds
    found = f"{traffic.unusual.count} irregular exchanges, {gaps} of {totals.rounds} rounds empty"
    if traffic.unusual.count:
        return REGULAR_ROUNDS.flagged(found, expected, traffic.unusual.first)
    if _empty_rounds_are_rare(gaps, totals.rounds, traffic.exchanges / (clients * totals.rounds), clients):
        return REGULAR_ROUNDS.flagged(found, expected)
    return REGULAR_ROUNDS.passed(expected=expected, found=found)


def _empty_rounds_are_rare(gaps: int, rounds: int, client_rate: float, clients: int) -> bool:
    """Return whether independent coins of `client_rate` hardly ever leave `gaps` of `rounds` rounds without clients.

    The probability is at most mean^gaps/gaps!, by a union bound over the choices of the empty rounds.
    """
    if not gaps:
        return False
    log_mean = math.log(rounds) + clients * math.log1p(-client_rate)
    return gaps * log_mean - math.lgamma(gaps + 1) < math.log(RARE)


MESSAGE_SIZES = NamedCheck(
    "log.message_sizes",
    name="bits per parameter",
    meaning="In each direction, all exchanges are the same size: at least 1 bit per parameter, counting only the "
    "parameters needed to describe the change, and at most 64 bits for each entry of the changed tensors.",
    limit="Invented sizes within that range. An honest run is also flagged if its codec's messages vary in size.",
)


def _bits(traffic: Traffic, changes: Sequence[TensorChange]) -> Check:
    if not changes or not traffic.exchanges:
        return MESSAGE_SIZES.not_applicable("nothing changed, or no messages")
    parameters = sum(change.parameters for change in changes)
    entries = sum(change.numel for change in changes)
    least, most = MIN_BITS * parameters / 8, MAX_BITS * entries / 8
    ways = {"down": traffic.down, "up": traffic.up}
    plausible = all(least <= size.smallest == size.largest <= most for size in ways.values())
    expected = f"{math.ceil(least)} to {math.floor(most)} bytes each way, the same in all exchanges"
    found = ", ".join(_describe(way, size, parameters) for way, size in ways.items())
    return (MESSAGE_SIZES.passed if plausible else MESSAGE_SIZES.flagged)(found, expected)


def _describe(way: str, size: Sizes, parameters: int) -> str:
    if size.smallest > size.largest:
        return f"nothing {way}"
    largest = f"{size.largest:.0f} bytes {way}"
    varying = f"{size.smallest:.0f} to " if size.smallest < size.largest else ""
    return f"{varying}{largest} ({8 * size.largest / parameters:.3g} bits for each changed parameter)"


LEAST_BYTES = NamedCheck(
    "log.least_bytes",
    name="minimum size",
    meaning="The bytes in each direction are enough to send the change in the weights once, at 4.5 bits per "
    "parameter, if the change of each matrix is sent as two low-rank factors.",
    limit="Missing messages, as long as the remaining bytes are enough to send the change once. An honest run is also "
    "flagged if its codec needs fewer bits.",
)


def _floor(totals: CommunicationTotals, changes: Sequence[TensorChange]) -> Check:
    least = transfer_bytes(changes)
    expected = f"at least {least} bytes each way"
    found = f"{totals.bytes_down} bytes down, {totals.bytes_up} bytes up"
    enough = min(totals.bytes_down, totals.bytes_up) >= least
    return (LEAST_BYTES.passed if enough else LEAST_BYTES.flagged)(found, expected)


def of_counted(checks: Sequence[Check]) -> list[Check]:
    """Return the checks of a log whose bytes were counted: no guess about sizes says more than the messages."""
    guesses = {check.id: check for check in (MESSAGE_SIZES, LEAST_BYTES)}
    return [
        guesses[check.id].not_applicable("the bytes are counted") if check.id in guesses else check
        for check in checks
    ]


LOG_CHECKS = (DIRECTIONS, REGULAR_ROUNDS, MESSAGE_SIZES, LEAST_BYTES)
