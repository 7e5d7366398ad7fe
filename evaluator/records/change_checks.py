"""Checks of the whole change of the weights: no rounds of the declared kind can have moved them further, or otherwise.

They see every coordinate, where other checks see the blocks that a challenge draws.
"""

from dataclasses import dataclass

import numpy as np

from evaluator.checkpoints.weight_vector import WeightVector, weight_vector
from evaluator.errors import ErrorCode
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.certificate import COMMON, block_count
from evaluator.records.linkage_checks import adapter_tensors
from evaluator.records.noise_checks import EXACT_BITS, expected_providers
from evaluator.records.noise_tests import LEFT_BY_ROUNDING
from evaluator.records.whole_change import (
    Bounds,
    Change,
    Doubles,
    detects_alignment,
    longest_hidden,
    lower_findings,
    measure,
    round_weights,
    signal_share,
    upper_ratio,
)

# A larger part of the longest signal than genuine runs show: docs/genuine-runs.md.
MOST_ALIGNED = 0.8


@dataclass(frozen=True)
class Unmeasured:
    """Why the change of a run can't be bounded; `is_needless` where nothing could be hidden in it."""

    reason: str
    is_needless: bool = False

    def outcome(self, check: NamedCheck) -> Check:
        """Return the outcome of a check of the change."""
        return check.not_applicable(self.reason) if self.is_needless else check.no_power(self.reason)


@dataclass(frozen=True)
class Measured:
    """The change of a run by a linear rule, between its first and last weights."""

    ends: tuple[WeightVector, WeightVector]
    change: Change
    bounds: Bounds


def _measured(case: Case) -> Measured | Unmeasured:
    record, run = case.record, case.record.run
    weights = round_weights(run.server, run.normalizer, len(record.rounds))
    if weights is None:
        blocks = block_count(run.numel)
        opened = min(blocks, COMMON)
        return Unmeasured(
            f"the rule {run.server.rule} isn't linear in the noised sums, and {opened} of {blocks} blocks are opened",
            is_needless=run.server.rule != "other" and opened == blocks,
        )
    bounds = bounds_of(case, weights)
    if not bounds.std:
        return Unmeasured("no round has noise", is_needless=True)
    ends = _ends(case)
    if ends is None:
        return Unmeasured("the trained tensors are neither in the base weights nor adapters in the annex")
    return Measured(ends, measure(*ends, bounds.std), bounds)


def bounds_of(case: Case, weights: Doubles) -> Bounds:
    """Return what the rounds may have done, with the `weights` cₜ of their sums (rounds,)."""
    run, rounds = case.record.run, case.record.rounds
    clip_norms = np.array([line.clip_norm for line in rounds])
    noise = np.array([run.noise_in(line).multiplier_of_sum(line.clients) for line in rounds])
    sampled = np.array([sum(counts.values()) for counts in case.annex.sampled])
    known = case.rules.providers_per_client
    expected = np.array([expected_providers(run, line, known) for line in rounds])
    planned = round_weights(run.server, run.normalizer, max(run.rounds, len(rounds)))
    planned_std = run.noise.multiplier_of_sum(run.clients) * run.clip_norm
    return Bounds(
        std=float(np.linalg.norm(weights * noise * clip_norms)),
        planned_std=0.0 if planned is None else float(np.linalg.norm(planned)) * planned_std,
        signal=float(weights @ (sampled * clip_norms)),
        expected_signal=float(weights @ (expected * clip_norms)),
        planned_rounds=run.rounds,
        rounds=len(rounds),
    )


def _ends(case: Case) -> tuple[WeightVector, WeightVector] | None:
    run, adapters = case.record.run, case.annex.adapters
    start, end = adapter_tensors(run, adapters.start), adapter_tensors(run, adapters.end)
    if start is None or end is None:
        return None
    first = weight_vector(case.files[RunFile.BASE], run.shapes, start)
    last = weight_vector(case.files[RunFile.CHECKPOINT], run.shapes, end)
    return None if first is None or last is None else (first, last)


@record_check(
    NamedCheck(
        "record.whole_change",
        name="whole change",
        meaning="In every coordinate, the change from the first to the last weights is one that the "
        "declared rounds could have made: no set of blocks or coordinates is longer than all rounds' noise "
        "and the sampled providers' "
        "clipped updates together (an honest run is rejected with a probability below 10⁻⁹; docs/proofs has the "
        "proof), and the change contains at least nine tenths of that noise, as measured by its length, by "
        "the length of every block and by the spread of the values in blocks (otherwise it is flagged). The "
        "check has no power under a nonlinear update rule, unless all blocks are opened.",
        limit="Invented sums that are as long as clipped updates can be, all in one direction (see "
        "`record.alignment`); up to a tenth of the noise, canceled in small parts over the whole run; and a "
        "change without noise that is distributed like noise, within the limits that the check reports.",
        code=ErrorCode.RECORD_MODELS,
        findings=Findings.PUBLIC_POWER,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
    RunFile.ANNEX,
)
def whole_change(this: NamedCheck, case: Case) -> Check:
    measured = case.once(_measured)
    if isinstance(measured, Unmeasured):
        return measured.outcome(this)
    rounded = case.record.run.codec.bits_per_parameter < EXACT_BITS
    ratio = upper_ratio(measured.change, measured.bounds)
    if rounded:
        ratio *= LEFT_BY_ROUNDING
    differences = []
    if ratio > 1:
        differences.append(
            Difference(
                "a change no longer than the declared noise and clipped updates",
                f"blocks or coordinates that are {ratio:.3g} times as long as they can be",
                "checkpoint",
                rejects=not rounded,
            )
        )
    else:
        found = lower_findings(measured.change, *measured.ends, measured.bounds.std, rounded=rounded)
        differences = [Difference(one.expected, one.found, "checkpoint", rejects=False) for one in found]
    return this.judge(
        differences, otherwise=f"all {case.record.run.numel} coordinates; {_hidden(case, measured.bounds)}"
    )


def _hidden(case: Case, bounds: Bounds) -> str:
    if not bounds.expected_signal:
        return "no updates are expected, and none would have passed"
    block, everywhere = longest_hidden(case.record.run.numel, bounds)
    return (
        f"a change without noise would have passed if it was at most {block:.2g} times (in one block) or "
        f"{everywhere:.2g} times (in all blocks together) as long as the expected providers' clipped updates can be"
    )


@record_check(
    NamedCheck(
        "record.alignment",
        name="alignment of updates",
        meaning="The signal in the change of the weights is at most 80 % as long as the clipped updates "
        "could make it. The longest possible signal assumes that the updates of all sampled providers (or "
        "of the expected number, if that is larger) point the same way in all rounds. Genuine runs reach a "
        "fraction of it; invented sums reach nearly all of it. The check reports the share. It has no power "
        "if the noise could hide a signal of 80 %, or under a nonlinear update rule.",
        limit="Invented sums that reach a smaller share, or that claim more providers than were sampled.",
        findings=Findings.PUBLIC,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
    RunFile.ANNEX,
)
def alignment(this: NamedCheck, case: Case) -> Check:
    measured = case.once(_measured)
    if isinstance(measured, Unmeasured):
        return measured.outcome(this)
    if not measured.bounds.expected_signal:
        return this.not_applicable("no updates are expected")
    share, low, high = signal_share(measured.change, measured.bounds)
    found = f"{share:.0%} of the longest possible signal (between {low:.0%} and {high:.0%})"
    if low > MOST_ALIGNED:
        return this.flagged(found, f"at most {MOST_ALIGNED:.0%}", "checkpoint")
    has_power = detects_alignment(case.record.run.numel, measured.bounds, MOST_ALIGNED)
    return this.passed(found) if has_power else this.no_power(found)
