"""Checks C8, C9 and C22: the blocks that the annex opens are those of the committed noised sums, and contain the noise.

What a check reports where it finds nothing follows from the record alone: what it would have found, by the expected
number of providers. The annex's numbers only decide whether something is found.
"""

import math
from collections.abc import Sequence

import numpy as np

from evaluator.messages.jobs import Check
from evaluator.records import noise_tests
from evaluator.records.annex import Annex
from evaluator.records.certificate import drawn_openings, is_opening_of
from evaluator.records.difference import Difference, judge, no_power, not_applicable
from evaluator.records.lines import RoundLine, RunLine, TrainingRecord
from evaluator.records.noise_power import RoundSize, bare_share_detected, noise_detected, reuse_detected
from evaluator.records.noise_tests import Finding, OpenedRound

# A check that wouldn't have detected noise of half the declared size, or its lack in half of the coordinates, or that a
# round takes back all of an earlier one's noise, has no power: what it misses more than doubles ε.
HALF = 0.5
# A codec of fewer bits rounds.
EXACT_BITS = 32


def noise(record: TrainingRecord, annex: Annex, known: Sequence[int] = ()) -> list[Check]:
    """Run checks C8, C9 and C22.

    Rounds without clients in which only clients would draw noise carry none, and are left out.

    Args:
        known: How many providers each client has by the track's rules; empty where they don't say.
    """
    if wrong := _wrong_openings(record, annex):
        return [
            judge("C8", wrong, otherwise=""),
            *(not_applicable(name, "the openings are wrong") for name in ("C9", "C22")),
        ]
    opened = _opened_rounds(record, annex)
    if not opened:
        return [not_applicable(name, "no round has noise") for name in ("C8", "C9", "C22")]
    sizes = [_size(record, one, known) for one in opened]
    return [_size_check(opened, sizes), _repetition_check(opened, sizes), _shape_check(opened, sizes)]


def _size_check(opened: Sequence[OpenedRound], sizes: Sequence[RoundSize]) -> Check:
    differences = _differences(noise_tests.size(opened) + noise_tests.block_size(opened))
    least, what = noise_detected(sizes), _opened(sizes)
    if differences or least > HALF:
        return judge(
            "C8",
            differences,
            otherwise=f"{what}; would have detected noise below {_percent(least)} of the declared level",
        )
    return no_power(
        "C8",
        f"{what}; the expected providers' updates could hide half of the noise or more",
    )


def _repetition_check(opened: Sequence[OpenedRound], sizes: Sequence[RoundSize]) -> Check:
    if len(opened) < 2:
        return not_applicable("C9", "fewer than two rounds have noise")
    found = noise_tests.repetition(opened)
    # Rounding moves the shape of what is left.
    if not opened[0].rounded:
        found += noise_tests.taken_back(opened)
    differences, part, what = _differences(found), reuse_detected(sizes), _opened(sizes)
    if differences or part <= 1:
        return judge(
            "C9",
            differences,
            otherwise=f"{what}; would have detected {_percent(part, up=True)} of a round's noise being reused or "
            "canceled in a later round",
        )
    return no_power(
        "C9",
        f"{what}; the expected providers' updates could hide that a round cancels earlier noise",
    )


def _shape_check(opened: Sequence[OpenedRound], sizes: Sequence[RoundSize]) -> Check:
    what = _opened(sizes)
    if opened[0].rounded:
        return no_power("C22", f"{what}; the codec rounded the noise, which changed its distribution")
    differences, share = _differences(noise_tests.shape(opened)), bare_share_detected(sizes)
    if differences or share <= HALF:
        return judge(
            "C22",
            differences,
            otherwise=f"{what}; would have detected missing noise in {_one_in(share)}",
        )
    without_signal = bare_share_detected([_silent(one) for one in sizes])
    detected = (
        f"would have detected missing noise in {_one_in(without_signal)} only if updates are alike"
        if without_signal <= 1
        else "too few coordinates"
    )
    return no_power(
        "C22", f"{what}; {detected}, and the expected providers' updates could be distributed like the noise"
    )


def _wrong_openings(record: TrainingRecord, annex: Annex) -> list[Difference]:
    numel = record.run.numel
    drawn = drawn_openings(annex.challenge, len(record.rounds), numel)
    if annex.openings.keys() != set(drawn):
        right = len(annex.openings.keys() & set(drawn))
        found = f"{right} of them and {len(annex.openings) - right} others"
        return [Difference(f"the {len(drawn)} openings selected by the challenge", found, "annex")]
    return [
        Difference("values with the record's update_root", "others", f"annex, round {number}, block {block}")
        for number, block in drawn
        if not is_opening_of(annex.openings[number, block], record.rounds[number - 1].update_root, numel)
    ]


def _opened_rounds(record: TrainingRecord, annex: Annex) -> list[OpenedRound]:
    blocks: dict[int, list[noise_tests.Doubles]] = {}
    for (number, _), opening in sorted(annex.openings.items(), key=lambda item: item[0]):
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


def _size(record: TrainingRecord, opened: OpenedRound, known: Sequence[int]) -> RoundSize:
    """Return the public numbers of an opened round; its providers are the expected ones of the clients that took part.

    Their number over all clients is the run's normalizer, or what the track's numbers lead to, if that is more.
    """
    run, line = record.run, record.rounds[opened.number - 1]
    everywhere = max(run.normalizer, line.sampling.expected_providers(dict(enumerate(known))))
    expected = everywhere * line.clients / line.sampling.clients(run.clients).mean
    return RoundSize(
        coordinates=len(opened.values),
        numel=run.numel,
        signal=expected / _multiplier(run, line),
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


def _opened(sizes: Sequence[RoundSize]) -> str:
    return f"{len(sizes)} rounds, {sizes[0].coordinates} coordinates of each"


def _silent(one: RoundSize) -> RoundSize:
    return RoundSize(one.coordinates, one.numel, signal=0.0, rounded=one.rounded)


def _percent(share: float, *, up: bool = False) -> str:
    """Return a share in tenths of a percent, rounded to the side that promises less."""
    tenths = math.ceil(share * 1000) if up else math.floor(share * 1000)
    return f"{tenths / 10:g} %"


def _one_in(share: float) -> str:
    return f"one coordinate in {max(1, math.floor(1 / share))}"
