"""Checks C8 and C9: the blocks that the annex opens are those of the committed noised sums, and contain the noise."""

import numpy as np

from evaluator.contracts import Check
from evaluator.records import noise_tests
from evaluator.records.annex import Annex
from evaluator.records.certificate import drawn_openings, is_opening_of
from evaluator.records.difference import Difference, judge, not_applicable
from evaluator.records.lines import TrainingRecord
from evaluator.records.noise_tests import Finding, OpenedRound


def noise(record: TrainingRecord, annex: Annex) -> list[Check]:
    """Run checks C8 and C9.

    Rounds without clients in which only clients would draw noise carry none, and are left out.
    """
    if wrong := _wrong_openings(record, annex):
        return [judge("C8", wrong, otherwise=""), not_applicable("C9", "the openings are wrong")]
    opened = _opened_rounds(record, annex)
    if not opened:
        reason = "no round has noise"
        return [not_applicable("C8", reason), not_applicable("C9", reason)]
    return [
        judge(
            "C8",
            _differences(
                noise_tests.size(opened) + noise_tests.block_size(opened) + noise_tests.shape(opened)
            ),
            otherwise=_summary(opened),
        ),
        judge("C9", _differences(noise_tests.repetition(opened)), otherwise=f"{len(opened)} rounds"),
    ]


def _wrong_openings(record: TrainingRecord, annex: Annex) -> list[Difference]:
    numel = record.run.numel
    drawn = drawn_openings(record.challenge, len(record.rounds), numel)
    if annex.openings.keys() != set(drawn):
        right = len(annex.openings.keys() & set(drawn))
        found = f"{right} of them and {len(annex.openings) - right} others"
        return [Difference(f"the {len(drawn)} openings that the record asks for", found, "annex")]
    return [
        Difference("values with the record's update_root", "others", f"annex, round {number}, block {block}")
        for number, block in drawn
        if not is_opening_of(annex.openings[number, block], record.rounds[number - 1].update_root, numel)
    ]


def _opened_rounds(record: TrainingRecord, annex: Annex) -> list[OpenedRound]:
    blocks: dict[int, list[noise_tests.Doubles]] = {}
    for (number, _), opening in sorted(annex.openings.items(), key=lambda item: item[0]):
        blocks.setdefault(number, []).append(opening.values.astype(np.float64))
    opened, numel = [], record.run.numel
    for number, values in blocks.items():
        line = record.rounds[number - 1]
        multiplier = record.run.noise_in(line).multiplier_of_sum(line.clients)
        if multiplier:
            opened.append(
                OpenedRound(
                    number,
                    np.concatenate(values) / (multiplier * line.clip_norm),
                    signal=sum(annex.sampled[number - 1].values()) / multiplier,
                    numel=numel,
                )
            )
    return opened


def _differences(findings: list[Finding]) -> list[Difference]:
    return [
        Difference(finding.expected, finding.found, f"round {finding.round}", rejects=False)
        for finding in findings
    ]


def _summary(opened: list[OpenedRound]) -> str:
    ratios = [float(np.sqrt(np.mean(one.values**2))) for one in opened]
    shaped = sum(one.shows_shape for one in opened)
    return (
        f"{len(opened)} rounds, {len(opened[0].values)} coordinates of each: norms of {min(ratios):.4f} to "
        f"{max(ratios):.4f} of the noise's; {shaped or 'no'} rounds show the noise's shape"
    )
