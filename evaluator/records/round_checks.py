"""Checks of a record's rounds: that they are all there, and that their bytes are those of the communication log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.communication.log import Exchange, read_log
from evaluator.errors import ErrorCode
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.jobs import Check, TrackRules
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.lines import TrainingRecord

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


@record_check(
    NamedCheck(
        "record.rounds",
        name="rounds",
        meaning="The record contains the declared number of rounds, numbered without gaps, and each round uses the "
        "planned sampling, clip norm and noise. Rounds that differ from the plan are flagged, and ε is computed from "
        "their recorded values. Runs that were interrupted and resumed are flagged too.",
        limit="Unrecorded rounds and unrecorded interruptions.",
        code=ErrorCode.RECORD_ROUNDS,
        findings=Findings.PUBLIC,
    )
)
def rounds(this: NamedCheck, case: Case) -> Check:
    return this.judge(
        _round_differences(case.record), otherwise=f"{len(case.record.rounds)} rounds as planned"
    )


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


@record_check(
    NamedCheck(
        "record.bytes",
        name="bytes",
        meaning="In every round, the byte count follows from the declared tensors, codec and clients (within 1% for "
        "framing), and the byte counts and clients match the communication log.",
        limit="Messages missing from both the record and the log.",
        code=ErrorCode.RECORD_BYTES,
        findings=Findings.PUBLIC,
    ),
    RunFile.LOG,
)
def message_bytes(this: NamedCheck, case: Case) -> Check:
    traffic = read_traffic(case.files[RunFile.LOG], case.rules)
    total = case.record.end.bytes_down + case.record.end.bytes_up
    return this.judge(_byte_differences(case.record, traffic), otherwise=f"{total} bytes")


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
                    f"{least:.0f} bytes and up to {FRAMING:.0%} more: {line.clients} clients, {numel} parameters of "
                    f"{record.run.codec.bits_per_parameter:g} bits",
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
