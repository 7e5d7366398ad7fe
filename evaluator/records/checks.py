"""Checks of a training record against itself, against hashes of the run's other files and against the track's rules.

Each is a function of values that returns a `Check`; `check_texts` describes them, and `check_groups` lists all of them
with the files that they need.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.communication.log import Exchange, read_log
from evaluator.mechanisms.units import PrivacyUnit
from evaluator.messages.jobs import Check, PrivacyRules, TrackRules
from evaluator.records.annex import Annex
from evaluator.records.difference import Difference, judge, no_power, not_applicable
from evaluator.records.lines import RunLine, TrainingRecord

# The share of a message's bytes that may be sent around the tensors.
FRAMING = 0.01


@dataclass
class RoundTraffic:
    """The traffic of a round according to the communication log."""

    clients: int = 0
    bytes_down: int = 0
    bytes_up: int = 0

    def add(self, exchange: Exchange) -> None:
        """Count one client's exchange."""
        self.clients += 1
        self.bytes_down += exchange.bytes_down
        self.bytes_up += exchange.bytes_up


def read_traffic(log: Path, rules: TrackRules) -> dict[int, RoundTraffic]:
    """Read the traffic of each round with a message from the communication log.

    Raises:
        ProblemError: (``E_LOG_*``) The log can't be read.
    """
    traffic: dict[int, RoundTraffic] = {}
    read_log(
        log,
        clients=rules.clients,
        max_rounds=rules.max_rounds,
        on_exchange=lambda exchange: traffic.setdefault(exchange.round, RoundTraffic()).add(exchange),
    )
    return traffic


def rounds(record: TrainingRecord) -> Check:
    """Check C2: the record has as many rounds as declared, in order.

    A round that differs from the plan is flagged, and so is an interruption.
    """
    return judge("C2", _round_differences(record), otherwise=f"{len(record.rounds)} rounds as planned")


def _round_differences(record: TrainingRecord) -> Iterator[Difference]:
    count = len(record.rounds)
    for where, declared in (("line 1, rounds", record.run.rounds), ("end line, rounds", record.end.rounds)):
        if declared != count:
            yield Difference(f"{count}, the number of round lines", declared, where)
    for number, line in enumerate(record.rounds, 1):
        if line.round != number:
            yield Difference(f"round {number}", f"round {line.round}", f"line {number + 1}")
    for resume in record.resumes:
        broken = "in that round" if resume.begun else "before it"
        yield Difference(
            "an uninterrupted run", f"interrupted {broken}", f"resumed at round {resume.round}", rejects=False
        )
    run = record.run
    planned = {
        "sampling": run.sampling,
        "clip_norm": run.clip_norm,
        "noise_multiplier": run.noise.multiplier,
    }
    for line in record.rounds:
        for name, value in planned.items():
            if (found := getattr(line, name)) != value:
                yield Difference(f"{value}, as planned", found, f"round {line.round}, {name}", rejects=False)


def models(record: TrainingRecord, *, first: str | None, last: str | None) -> Check:
    """Check C3: the weights before the first round are the base weights, and those after the last one the checkpoint.

    Args:
        first: The root of the base weights' trainable tensors, in the order of the record; None where they have others.
        last: The same root of the checkpoint.
    """
    if first is None or last is None:
        return not_applicable(
            "C3", "the trainable tensors are in neither the base weights nor the checkpoint; see C21"
        )
    ends = {
        "line 1, weights_root": (first, record.run.weights_root),
        f"{last_weights(record)}, weights_root": (last, record.last_weights_root),
    }
    broken = [
        Difference(expected, found, where) for where, (expected, found) in ends.items() if expected != found
    ]
    return judge(
        "C3", broken, otherwise=f"{len(record.rounds)} rounds from the base weights to the checkpoint"
    )


def last_weights(record: TrainingRecord) -> str:
    """Return which line has the root of the weights that the run ends with."""
    return f"round {record.rounds[-1].round}" if record.rounds else "line 1"


def message_bytes(record: TrainingRecord, traffic: Mapping[int, RoundTraffic]) -> Check:
    """Check C4: bytes follow from tensors, codec and clients, and are those of the communication log."""
    total = record.end.bytes_down + record.end.bytes_up
    return judge("C4", _byte_differences(record, traffic), otherwise=f"{total} bytes")


def _byte_differences(record: TrainingRecord, traffic: Mapping[int, RoundTraffic]) -> Iterator[Difference]:
    numel = record.run.numel
    message = numel * record.run.codec.bits_per_parameter / 8
    silent = RoundTraffic()
    for line in record.rounds:
        logged = traffic.get(line.round, silent)
        if logged.clients != line.clients:
            yield Difference(
                f"the log's {logged.clients} clients", line.clients, f"round {line.round}, clients"
            )
        for name in ("bytes_down", "bytes_up"):
            where, found = f"round {line.round}, {name}", getattr(line, name)
            least = line.clients * message
            if not least - 1 < found <= least * (1 + FRAMING) + 1:
                yield Difference(
                    f"{least:.0f} bytes and up to {FRAMING:.0%} more: {line.clients} clients, {numel} "
                    f"parameters of {record.run.codec.bits_per_parameter:g} bits",
                    found,
                    where,
                )
            if found != getattr(logged, name):
                yield Difference(f"the log's {getattr(logged, name)}", found, where)
    if beyond := traffic.keys() - {line.round for line in record.rounds}:
        yield Difference("no additional rounds in the log", f"round {min(beyond)}", "communication log")
    for name in ("bytes_down", "bytes_up"):
        total = sum(getattr(line, name) for line in record.rounds)
        if (found := getattr(record.end, name)) != total:
            yield Difference(f"{total}, the sum of all rounds", found, f"end line, {name}")


def checkpoint_file(record: TrainingRecord, sha256: str) -> Check:
    """Check C16: the record is that of this checkpoint file."""
    return _same("C16", sha256, record.end.checkpoint_sha256, "end line, checkpoint_sha256")


def base_weights(run: RunLine, sha256: str) -> Check:
    """Check C18: training began from the track's base weights."""
    return _same("C18", sha256, run.base_sha256, "line 1, base_sha256")


def _same(check: str, expected: str, found: str, where: str) -> Check:
    return judge(check, [Difference(expected, found, where)] if expected != found else [], otherwise=expected)


def annex_file(record: TrainingRecord, annex: Annex) -> Check:
    """Check C17: the annex is the one that the record names, with the same token and as many rounds."""
    sha256 = annex.body_sha256
    pairs = {
        "end line, annex_body_sha256": (sha256, record.end.annex_body_sha256),
        "annex, run_token": (record.run.run_token, annex.run_token),
        "annex, rounds": (len(record.rounds), len(annex.sampled)),
    }
    differences = [
        Difference(expected, found, where) for where, (expected, found) in pairs.items() if expected != found
    ]
    return judge("C17", differences, otherwise=sha256)


def challenge(record: TrainingRecord, annex: Annex, drawn: str | None) -> Check:
    """Check C23: the annex answers the challenge that was drawn after the record.

    Args:
        drawn: What the site drew; None where no site was asked, as on a participant's own disk.
    """
    if drawn is not None:
        return _same("C23", drawn, annex.challenge, "annex, challenge")
    if annex.challenge == record.own_challenge:
        return no_power(
            "C23",
            "a dry run: the opened blocks follow from the record's own hash; after the upload, the site draws other "
            "blocks",
        )
    return not_applicable("C23", "the annex answers a challenge; only the site can confirm it")


def training_data(annex: Annex, sha256: str) -> Check:
    """Check C24: the run trained on the data that the organizers gave out; `sha256` is empty where they don't say.

    The hashes are not reported: whoever can guess the data could compare.
    """
    if not sha256:
        return not_applicable("C24", "not compared: the track has no data manifest")
    expected = "the data manifest set by the organizers"
    other = Difference(expected, "another one", "annex, data_sha256")
    return judge("C24", [other] if annex.data_sha256 != sha256 else [], otherwise=expected)


def track_rules(run: RunLine, rules: PrivacyRules, clients_of_track: int) -> Check:
    """Check C19: the record declares what the track accounts."""
    pairs = {
        "unit": (PrivacyUnit.PROVIDER, run.unit),
        "adjacency": (rules.adjacency, run.adjacency),
        "delta": (rules.delta, run.delta),
        "clients": (clients_of_track, run.clients),
    }
    differences = [
        Difference(expected, found, f"line 1, {name}")
        for name, (expected, found) in pairs.items()
        if expected != found
    ]
    return judge("C19", differences, otherwise=f"{run.unit}, {run.adjacency}, δ = {run.delta:g}")


def other_uses(run: RunLine) -> Check:
    """Check C20: no private data was used outside the rounds that ε is computed from."""
    uses = {
        "validation_on_private_data": run.validation_on_private_data,
        "tuning.private_runs": run.tuning.private_runs,
    }
    differences = [
        Difference("none: ε doesn't cover such uses", found, f"line 1, {name}", rejects=False)
        for name, found in uses.items()
        if found
    ]
    return judge("C20", differences, otherwise="none declared")
