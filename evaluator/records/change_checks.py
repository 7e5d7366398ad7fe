"""Checks of the whole change in the weights: no rounds of the declared kind can have moved them further, or otherwise.

They see every coordinate, where other checks see the blocks that a challenge draws.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from evaluator.checkpoints.weight_vector import WeightVector, weight_vector
from evaluator.errors import ErrorCode
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.lines import RoundLine, RunLine
from evaluator.records.linkage_checks import adapter_tensors
from evaluator.records.noise_checks import EXACT_BITS, expected_providers, stated_providers
from evaluator.records.noise_tests import LEFT_BY_ROUNDING
from evaluator.records.whole_change import (
    Bounds,
    Change,
    Doubles,
    detects_alignment,
    directed_signal,
    longest_hidden,
    lower_findings,
    measure,
    round_weights,
    signal_share,
    upper_ratio,
)

# A larger part of the longest signal than genuine runs show, even with hardly any noise: docs/forging.md.
MOST_ALIGNED = 0.25


@dataclass(frozen=True)
class Unmeasured:
    """Why the change of a run can't be bounded; `is_needless` where nothing could be hidden in it."""

    reason: str
    is_needless: bool = False

    def outcome(self, check: NamedCheck) -> Check:
        """Return the outcome of a check of the change."""
        return check.not_applicable(self.reason) if self.is_needless else check.no_power(self.reason)


@dataclass(frozen=True)
class Part:
    """The change of those tensors that the same rounds move, in a run by a linear rule, from first to last weights.

    Attributes:
        stated: The bounds by the track's numbers of providers alone, which a record can't enlarge.
        directed: How long the signal is at least, by its singular values.
        moves_always: Whether every round moves them.
    """

    ends: tuple[WeightVector, WeightVector]
    change: Change
    bounds: Bounds
    stated: Bounds
    directed: float
    moves_always: bool


def _measured(case: Case) -> list[Part] | Unmeasured:
    """Return the parts of a run's change: one, unless tensors take turns."""
    run, rounds = case.record.run, len(case.record.rounds)
    weights, planned = _weights(run, rounds), _weights(run, max(run.rounds, rounds))
    if weights is None or planned is None:
        return Unmeasured(f"the rule {run.server.rule} isn't linear in the noised sums")
    bounds, stated = (
        [
            replace(bounds_of(case, sums, plan, providers), parts=len(weights))
            for sums, plan in zip(weights, planned, strict=True)
        ]
        for providers in (expected_providers, stated_providers)
    )
    if not any(each.std for each in bounds):
        return Unmeasured("no round has noise", is_needless=True)
    parts = []
    for number, (shapes, moves) in enumerate(zip(_shapes(run), _schedules(run, rounds), strict=True)):
        ends = _ends(case, shapes)
        if ends is None:
            return Unmeasured("the trained tensors are neither in the base weights nor adapters in the annex")
        change = measure(*ends, bounds[number].std)
        directed = directed_signal(*ends, shapes.values(), change, bounds[number])
        always = bool(moves.all())
        parts.append(Part(ends, change, bounds[number], stated[number], directed, moves_always=always))
    return parts


def bounds_of(
    case: Case,
    weights: Doubles,
    planned: Doubles,
    providers: Callable[[RunLine, RoundLine, Sequence[int]], float],
) -> Bounds:
    """Return what the rounds may have done to tensors.

    Args:
        weights, planned: The weights cₜ of the sums of all rounds, and of the rounds that were planned.
        providers: Returns how many providers are expected in a round.
    """
    run, rounds = case.record.run, case.record.rounds
    clip_norms = np.array([line.clip_norm for line in rounds])
    noise = np.array([run.noise_in(line).multiplier_of_sum(line.clients) for line in rounds])
    sampled = np.array([sum(counts.values()) for counts in case.annex.sampled])
    known = case.rules.providers_per_client
    expected = np.array([providers(run, line, known) for line in rounds])
    planned_std = run.noise.multiplier_of_sum(run.clients) * run.clip_norm
    return Bounds(
        std=float(np.linalg.norm(weights * noise * clip_norms)),
        planned_std=float(np.linalg.norm(planned)) * planned_std,
        signal=float(weights @ (sampled * clip_norms)),
        expected_signal=float(weights @ (expected * clip_norms)),
        planned_rounds=run.rounds,
        rounds=len(rounds),
    )


def _shapes(run: RunLine) -> list[dict[str, list[int]]]:
    """Return the shapes by name of the tensors that the same rounds move: of all, unless they take turns."""
    if run.turns is None:
        return [run.shapes]
    named = list(zip(run.shapes.items(), run.turns.of_tensors, strict=True))
    return [
        dict(tensor for tensor, own in named if own == turn) for turn in dict.fromkeys(run.turns.of_tensors)
    ]


def _schedules(run: RunLine, rounds: int) -> Doubles:
    """Return for each of `_shapes` 1 for every round that moves them, and 0 for every other one (n, rounds)."""
    return run.turns.schedules(rounds) if run.turns else np.ones((1, rounds))


def _weights(run: RunLine, rounds: int) -> list[Doubles] | None:
    """Return cₜ of every round (rounds,) for each of `_shapes`.

    None where the change isn't a linear function of the sums.
    """
    weights = [round_weights(run.server, run.normalizer, moves) for moves in _schedules(run, rounds)]
    return [each for each in weights if each is not None] or None


def _ends(case: Case, shapes: Mapping[str, Sequence[int]]) -> tuple[WeightVector, WeightVector] | None:
    run, adapters = case.record.run, case.annex.adapters
    start, end = adapter_tensors(run, adapters.start), adapter_tensors(run, adapters.end)
    if start is None or end is None:
        return None
    first = weight_vector(case.files[RunFile.BASE], shapes, start)
    last = weight_vector(case.files[RunFile.CHECKPOINT], shapes, end)
    return None if first is None or last is None else (first, last)


@record_check(
    NamedCheck(
        "record.whole_change",
        name="whole change",
        meaning="The total change in the weights, measured in every coordinate, is consistent with the declared "
        "rounds. It isn't too large: no set of blocks or coordinates has a larger L2 norm than the noise of all rounds "
        "plus the sampled providers' clipped updates could produce. An honest run is rejected with a probability below "
        "10⁻⁹; docs/proofs has the proof. The change isn't too small either: it contains at least nine tenths of that "
        "noise, judging by its norm, the norm of every block and the spread of the values in blocks. Otherwise, the "
        "run is flagged. The check has no power under a nonlinear update rule.",
        limit="Invented sums that all point in one direction and are as large as clipped updates can be (see "
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
    parts = case.once(_measured)
    if isinstance(parts, Unmeasured):
        return parts.outcome(this)
    rounded = case.record.run.codec.bits_per_parameter < EXACT_BITS
    ratio = max(upper_ratio(part.change, part.bounds) for part in parts)
    if rounded:
        ratio *= LEFT_BY_ROUNDING
    differences = []
    if ratio > 1:
        differences.append(
            Difference(
                "a change that the declared noise and clipped updates can explain",
                f"blocks or coordinates with {ratio:.3g} times the largest possible norm",
                "checkpoint",
                rejects=not rounded,
            )
        )
    else:
        found = chain.from_iterable(
            lower_findings(part.change, *part.ends, part.bounds.std, rounded=rounded) for part in parts
        )
        differences = [Difference(one.expected, one.found, "checkpoint", rejects=False) for one in found]
    return this.judge(differences, otherwise=f"all {case.record.run.numel} coordinates; {_hidden(parts)}")


def _hidden(parts: Sequence[Part]) -> str:
    hidden = [longest_hidden(part.change.numel, part.bounds) for part in parts if part.bounds.expected_signal]
    if not hidden:
        return "no updates are expected, and none would have passed"
    block, everywhere = map(max, zip(*hidden, strict=True))
    return (
        f"a change without noise would have been detected if its norm had exceeded {block:.2g} times (in one block) or "
        f"{everywhere:.2g} times (overall) the largest possible norm of the clipped updates of the expected number of "
        f"providers"
    )


@record_check(
    NamedCheck(
        "record.alignment",
        name="alignment of updates",
        meaning="The change in the weights contains a signal with at most 25% of the largest possible norm. This is "
        "estimated from how far the norm of the change, and the singular values of its matrices, exceed those of "
        "noise. At a small ε, the singular values also reveal noise values that were reordered until they add up to "
        "a trained model. The largest possible signal assumes that the updates of all sampled providers (or of the "
        "number expected from the track's provider counts, if larger) point the same way in all rounds. Genuine runs "
        "reach a small share of it; invented sums can reach nearly all of it. The check reports the share. It has no "
        "power if the noise could hide the largest possible signal, or under a nonlinear update rule.",
        limit="Invented sums that reach a smaller share, or that the estimate can't place above 25% with certainty; "
        "noise that was moved until it adds up to a model, if ε is large or the model's large singular values were "
        "cut off first; and, where the track doesn't state its providers, a record that overstates their number.",
        findings=Findings.PUBLIC,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
    RunFile.ANNEX,
)
def alignment(this: NamedCheck, case: Case) -> Check:
    parts = case.once(_measured)
    if isinstance(parts, Unmeasured):
        return parts.outcome(this)
    longest = _longest_signal(parts)
    if not any(part.stated.expected_signal for part in parts):
        return this.not_applicable("no updates are expected")
    changes = [(part.change, part.stated.std, part.directed) for part in parts]
    share, low, high = signal_share(changes, longest)
    found = f"{share:.0%} of the largest possible signal (between {low:.0%} and {high:.0%})"
    if low > MOST_ALIGNED:
        return this.flagged(found, f"at most {MOST_ALIGNED:.0%}", "checkpoint")
    sizes = [(part.change.numel, part.stated.std) for part in parts]
    return this.passed(found) if detects_alignment(sizes, longest, MOST_ALIGNED) else this.no_power(found)


def _longest_signal(parts: Sequence[Part]) -> float:
    """Return how long the signal in all parts together can be.

    An update that is divided between tensors of every round and tensors of some is shorter in the end than one that
    has only the former; so only where all take turns do their signals add up.
    """
    always = [part.stated.longest_signal for part in parts if part.moves_always]
    return max(always) if always else math.hypot(*(part.stated.longest_signal for part in parts))
