"""Checks that the blocks that the annex opens are those of the committed noised sums, and contain the noise.

What a check reports where it finds nothing follows from the record alone: what it would have found, by the expected
number of providers. The annex's numbers only decide whether something is found.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evaluator.errors import ErrorCode
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records import noise_tests
from evaluator.records.annex import Annex, Openings
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.certificate import DrawnBlocks, drawn_blocks, is_opening_of, would_have_passed
from evaluator.records.lines import RoundLine, RunLine, TrainingRecord
from evaluator.records.noise_power import (
    RoundSize,
    bare_share_detected,
    noise_detected,
    noise_left_by_leaks,
    reuse_detected,
)
from evaluator.records.noise_tests import Finding, OpenedRound

# A check that wouldn't have detected noise of half the declared size, or its lack in half of the coordinates, or that a
# round takes back all of an earlier one's noise, has no power: what it misses more than doubles ε.
HALF = 0.5
# A codec of fewer bits rounds.
EXACT_BITS = 32


@dataclass(frozen=True)
class NoisedRounds:
    """The opened rounds with noise, and the public numbers of each; nothing where openings are `wrong`.

    Rounds without clients in which only clients would draw noise carry none, and are left out.

    Attributes:
        opened, sizes: Of all blocks that are opened of a round.
        common, common_sizes: Of the blocks that are opened of every round.
        missing: What the blocks that aren't opened may hide.
    """

    wrong: list[Difference]
    opened: list[OpenedRound] = field(default_factory=list)
    sizes: list[RoundSize] = field(default_factory=list)
    common: list[OpenedRound] = field(default_factory=list)
    common_sizes: list[RoundSize] = field(default_factory=list)
    missing: str = ""

    @property
    def nothing(self) -> str:
        """Why there is nothing to look at; empty where there is something."""
        return "the openings are wrong" if self.wrong else "" if self.opened else "no round has noise"

    def __str__(self) -> str:
        fewest = min(size.coordinates for size in self.sizes)
        return f"{len(self.sizes)} rounds, at least {fewest} coordinates in each; {self.missing}"


def _noised_rounds(case: Case) -> NoisedRounds:
    record, annex, known = case.record, case.annex, case.rules.providers_per_client
    drawn = drawn_blocks(annex.challenge, len(record.rounds), record.run.numels)
    if wrong := _wrong_openings(record, annex, drawn):
        return NoisedRounds(wrong)
    common = set(drawn.common)
    opened = _opened_rounds(record, annex, annex.openings)
    shared = _opened_rounds(
        record, annex, {place: one for place, one in annex.openings.items() if place[1] in common}
    )
    return NoisedRounds(
        [],
        opened,
        [_size(record, one, known) for one in opened],
        shared,
        [_size(record, one, known) for one in shared],
        would_have_passed(record.run.numel, len(record.rounds)),
    )


@record_check(
    NamedCheck(
        "record.noise_size",
        name="noise level",
        meaning="Blocks of the noised sums, drawn at random after all sums were committed to, match the "
        "commitments and vary as much as the declared noise. An honest run is flagged with a probability "
        "below 4·10⁻⁶ (below 10⁻⁵ for "
        "`record.noise_size`, `record.noise_reuse` and `record.noise_shape` together). The check reports "
        "the lowest noise level that could have passed, as a share of the declared level: with 99% "
        "probability, the check would have detected any lower level, even if the updates of the expected "
        "number of providers all pointed the same way. The check has no power if that share is 50% or less.",
        limit="Noise known to someone (noise from a known seed looks like any other); unclipped updates hidden by the "
        "noise; invented sums that were never used; and missing noise in a share s of all blocks, which "
        "goes undetected with a probability of (1 − s)ⁿ if n blocks are opened (there is only one attempt; "
        "see `record.challenge`). "
        "If the track doesn't state the number of providers, a normalizer that is too small makes the check overstate "
        "its power.",
        code=ErrorCode.RECORD_ANNEX,
        findings=Findings.PUBLIC_POWER,
    ),
    RunFile.ANNEX,
)
def noise_size(this: NamedCheck, case: Case) -> Check:
    rounds = case.once(_noised_rounds)
    if rounds.wrong:
        return this.judge(rounds.wrong, otherwise="")
    if rounds.nothing:
        return this.not_applicable(rounds.nothing)
    differences = _differences(noise_tests.size(rounds.opened) + noise_tests.block_size(rounds.opened))
    least = noise_detected(rounds.sizes)
    if differences or least > HALF:
        detected = f"would have detected noise below {_percent(least)} of the declared level"
        return this.judge(differences, otherwise=f"{rounds}; {detected}")
    return this.no_power(
        f"{rounds}; the updates of the expected number of providers could hide half of the noise or more"
    )


@record_check(
    NamedCheck(
        "record.noise_reuse",
        name="fresh noise in every round",
        meaning="The opened blocks of a round are not correlated with those of any earlier round, or with "
        "the sum of all earlier rounds, more than clipped updates can explain. Adding up the blocks of "
        "different rounds doesn't cancel the noise. An honest run is flagged with a probability below 4·10⁻⁶. The "
        "check reports its detection limit: the smallest share of a round's noise that, if reused or canceled in a "
        "later round, would have been detected with the same probability as in `record.noise_size`. The check has no "
        "power if that share exceeds 100%.",
        limit="Noise canceled in later rounds, if the updates of many providers could hide this; and noise of which "
        "each round cancels a part just below the detection limit, while a signal hides the cancellation (telescoping "
        "sums). The check "
        "reports how much of the whole run's noise would then remain; `record.whole_change` flags a run with less than "
        "nine tenths.",
        findings=Findings.PUBLIC_POWER,
    ),
    RunFile.ANNEX,
)
def noise_reuse(this: NamedCheck, case: Case) -> Check:
    rounds = case.once(_noised_rounds)
    if rounds.nothing or len(rounds.common) < 2:
        return this.not_applicable(rounds.nothing or "fewer than two rounds have noise")
    found = noise_tests.repetition(rounds.common)
    # Rounding moves the shape of what is left.
    if not rounds.common[0].rounded:
        found += noise_tests.taken_back(rounds.common)
    differences, part = _differences(found), reuse_detected(rounds.common_sizes)
    if differences or part <= 1:
        left = noise_left_by_leaks(rounds.common_sizes)
        return this.judge(
            differences,
            otherwise=f"{rounds}; would have detected the reuse or cancellation of {_percent(part, up=True)} of a "
            f"round's noise in a later round; in the worst case (every round cancels slightly less than that "
            f"share and is not detected), {_percent(left)} of the whole run's noise would remain",
        )
    return this.no_power(
        f"{rounds}; the updates of the expected number of providers could hide a round that cancels earlier noise"
    )


@record_check(
    NamedCheck(
        "record.noise_shape",
        name="noise distribution",
        meaning="All opened blocks, their even and odd coordinates, and pairs of coordinates are spread at "
        "least as widely as independent Gaussian noise (measured by the characteristic function), whatever "
        "the updates are. An honest run "
        "is flagged with a probability below 2·10⁻⁶. The check reports the smallest share of coordinates in "
        "which it would have detected missing noise with 99% probability, even behind the largest possible "
        "updates of the expected number of providers. It has no power if that share exceeds one half, or if "
        "a codec rounded the noise.",
        limit="Missing noise behind a signal that is itself distributed like noise; noise that repeats "
        "within a round, except between neighbors, halves, mirror images or neighboring blocks; and more noise than "
        "declared.",
        findings=Findings.PUBLIC_POWER,
    ),
    RunFile.ANNEX,
)
def noise_shape(this: NamedCheck, case: Case) -> Check:
    rounds = case.once(_noised_rounds)
    if rounds.nothing:
        return this.not_applicable(rounds.nothing)
    if rounds.opened[0].rounded:
        return this.no_power(f"{rounds}; the codec rounded the noise, which changed its distribution")
    differences, share = _differences(noise_tests.shape(rounds.opened)), bare_share_detected(rounds.sizes)
    if differences or share <= HALF:
        detected = f"would have detected missing noise in {_one_in(share)}"
        return this.judge(differences, otherwise=f"{rounds}; {detected}")
    without_signal = bare_share_detected([_silent(one) for one in rounds.sizes])
    detected = (
        f"would have detected missing noise in {_one_in(without_signal)} only if the updates are similar"
        if without_signal <= 1
        else "too few coordinates"
    )
    return this.no_power(
        f"{rounds}; {detected}, and the expected providers' updates could be distributed like the noise"
    )


def _wrong_openings(record: TrainingRecord, annex: Annex, drawn: DrawnBlocks) -> list[Difference]:
    numel, due = record.run.numel, drawn.updates
    if annex.openings.keys() != set(due):
        right = len(annex.openings.keys() & set(due))
        found = f"{right} of them and {len(annex.openings) - right} others"
        return [Difference(f"the {len(due)} openings selected by the challenge", found, "annex")]
    return [
        Difference("values with the record's update_root", "others", f"annex, round {number}, block {block}")
        for number, block in due
        if not is_opening_of(annex.openings[number, block], record.rounds[number - 1].update_root, numel)
    ]


def _opened_rounds(record: TrainingRecord, annex: Annex, openings: Openings) -> list[OpenedRound]:
    blocks: dict[int, list[noise_tests.Doubles]] = {}
    for (number, _), opening in sorted(openings.items(), key=lambda item: item[0]):
        blocks.setdefault(number, []).append(opening.values.astype(np.float64))
    opened = []
    for number, values in blocks.items():
        line = record.rounds[number - 1]
        if multiplier := _multiplier(record.run, line):
            opened.append(
                OpenedRound(
                    number,
                    np.concatenate(values) / (multiplier * line.clip_norm),
                    signal=sum(annex.sampled[number - 1].values()) / multiplier,
                    rounded=record.run.codec.bits_per_parameter < EXACT_BITS,
                )
            )
    return opened


def expected_providers(run: RunLine, line: RoundLine, known: Sequence[int]) -> float:
    """Return the expected number of sampled providers of the clients that took part, from public numbers.

    Their number over all clients is the run's normalizer, or what the track's numbers lead to, if that is more.
    """
    everywhere = line.sampling.expected_providers(dict(enumerate(known)))
    return _of_participants(max(run.normalizer, everywhere), run, line)


def stated_providers(run: RunLine, line: RoundLine, known: Sequence[int]) -> float:
    """Return the same from the track's numbers alone; from the run's normalizer if the track states none."""
    everywhere = line.sampling.expected_providers(dict(enumerate(known)))
    return _of_participants(everywhere or run.normalizer, run, line)


def _of_participants(everywhere: float, run: RunLine, line: RoundLine) -> float:
    return everywhere * line.clients / line.sampling.clients(run.clients).mean


def _size(record: TrainingRecord, opened: OpenedRound, known: Sequence[int]) -> RoundSize:
    """Return the public numbers of an opened round."""
    run, line = record.run, record.rounds[opened.number - 1]
    return RoundSize(
        coordinates=len(opened.values),
        numel=run.numel,
        signal=expected_providers(run, line, known) / _multiplier(run, line),
        rounded=opened.rounded,
    )


def _multiplier(run: RunLine, line: RoundLine) -> float:
    return run.noise_in(line).multiplier_of_sum(line.clients)


def _differences(findings: list[Finding]) -> list[Difference]:
    return [
        Difference(
            finding.expected,
            finding.found,
            "all rounds together" if finding.round is None else f"round {finding.round}",
            rejects=False,
        )
        for finding in findings
    ]


def _silent(one: RoundSize) -> RoundSize:
    return RoundSize(one.coordinates, one.numel, signal=0.0, rounded=one.rounded)


def _percent(share: float, *, up: bool = False) -> str:
    """Return a share in tenths of a percent, rounded to the side that promises less."""
    tenths = math.ceil(share * 1000) if up else math.floor(share * 1000)
    return f"{tenths / 10:g}%"


def _one_in(share: float) -> str:
    return f"one coordinate in {max(1, math.floor(1 / share))}"
