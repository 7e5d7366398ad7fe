"""Forged records of a private run, made by somebody who knows every check and has a model that isn't private.

The sums are invented: no provider's update is ever clipped. Each forgery is consistent in everything that it doesn't
lie about, down to the annex, which is made for a challenge that is drawn after the record is fixed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evaluator.records.certificate import BLOCK, MAX_ROUNDS, Floats
from evaluator.records.lines import RoundLine, RunLine
from evaluator.records.server_steps import AdamStep, OtherStep
from tests.evaluator.records.factories import by_the_sum

ROUNDS = 16


@dataclass(frozen=True)
class Wanted:
    """The model that a cheat wants to be ranked with.

    Attributes:
        start: The base weights (d,).
        change: From there to the model that was trained without privacy (d,).
        seed: Of the forgery's own noise.
    """

    start: Floats
    change: Floats
    seed: int

    def noise(self, line: RoundLine) -> Floats:
        """The noise of a round as declared."""
        random = np.random.default_rng([self.seed, line.round])
        std = np.float32(line.noise_multiplier * line.clip_norm)
        return std * random.standard_normal(len(self.start), np.float32)

    def aligned(self, line: RoundLine, providers: int, share: float) -> Floats:
        """What clipped updates of this share of the longest length would add, all towards the wanted model."""
        length = share * providers * line.clip_norm / float(np.linalg.norm(self.change))
        return np.float32(length) * self.change

    def richest(self, blocks: int) -> Floats:
        """Which coordinates are in the blocks that change the most (d,) bool."""
        starts = np.arange(0, len(self.change), BLOCK)
        energy = np.add.reduceat(self.change**2, starts)
        chosen = np.zeros(len(starts), bool)
        chosen[np.argsort(energy)[-blocks:]] = True
        return np.repeat(chosen, BLOCK)[: len(self.change)]


# The noised sums of all rounds, from the rounds' lines and how many providers each one sampled.
Sums = Callable[[Wanted, RunLine, Sequence[RoundLine], Sequence[int]], list[Floats]]


@dataclass(frozen=True)
class Forgery:
    """A lie, and the run that tells it.

    Attributes:
        wanted_checkpoint: Whether the wanted model is submitted, wherever the sums lead.
        challenges: How many independent challenges it is judged under.
        rate: The server's learning rate, as a multiple of the honest one.
        tensors: What the wanted model was trained on, and what is declared.
    """

    name: str
    sums: Sums
    run: Mapping[str, Any] = field(default_factory=dict)
    wanted_checkpoint: bool = False
    challenges: int = 10
    rate: float = 1.0
    tensors: str = "all tensors"


def honest_noise(
    wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
) -> list[Floats]:
    return [wanted.noise(line) for line in lines]


def canceled(
    wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
) -> list[Floats]:
    """The wanted change in equal parts, and noise whose mean over all rounds is taken out of each."""
    noises = honest_noise(wanted, run, lines, sampled)
    mean = np.mean(noises, axis=0, dtype=np.float32)
    part = _needed(wanted, run) / np.float32(len(lines))
    return [noise - mean + part for noise in noises]


def aligned(share: float) -> Sums:
    """Full noise in every round, and all that clipped updates could add, in the wanted direction."""

    def sums(
        wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
    ) -> list[Floats]:
        return [
            wanted.noise(line) + wanted.aligned(line, count, share)
            for line, count in zip(lines, sampled, strict=True)
        ]

    return sums


def smuggled(blocks: int, *, share: float = 0.0, within: float = math.inf) -> Sums:
    """Aligned updates, and in the last round what is missing to the wanted model in the richest blocks.

    Args:
        within: The most that the change of these blocks may be, in standard deviations of the whole noise.
    """

    def sums(
        wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
    ) -> list[Floats]:
        totals = aligned(share)(wanted, run, lines, sampled)
        chosen = wanted.richest(blocks)
        goal = np.where(chosen, wanted.change, 0)
        std = run.normalizer**-1 * _rate(run) * run.noise.multiplier * run.clip_norm * math.sqrt(len(lines))
        goal *= min(1.0, within * std / float(np.linalg.norm(goal)))
        before = wanted.start + np.float32(_rate(run) / run.normalizer) * np.sum(totals[:-1], axis=0)
        due = (wanted.start + goal - before) * np.float32(run.normalizer / _rate(run))
        totals[-1] = np.where(chosen, due, totals[-1]).astype(np.float32)
        return totals

    return sums


def leaking(part: float, share: float) -> Sums:
    """Aligned updates; each round also takes back a part of a round's noise from the sum of all noise so far."""

    def sums(
        wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
    ) -> list[Floats]:
        totals, so_far = [], np.zeros_like(wanted.start)
        for line, count in zip(lines, sampled, strict=True):
            noise = wanted.noise(line)
            if length := float(np.linalg.norm(so_far)):
                std = line.noise_multiplier * line.clip_norm
                noise -= np.float32(part * std * math.sqrt(len(noise)) / length) * so_far
            so_far += noise
            totals.append(noise + wanted.aligned(line, count, share))
        return totals

    return sums


def by_adam(wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]) -> list[Floats]:
    """Noise everywhere but in the richest blocks, where every step of Adam leads towards the wanted model."""
    chosen = wanted.richest(ADAM_BLOCKS)
    return [np.where(chosen, 1e3 * wanted.change, wanted.noise(line)).astype(np.float32) for line in lines]


ADAM_BLOCKS = 55
ADAM = AdamStep(learning_rate=0.01, beta_1=0.9, beta_2=0.99, epsilon=1e-8, bias_correction=True)


def _needed(wanted: Wanted, run: RunLine) -> Floats:
    """The sum of all rounds' sums that leads to the wanted model (d,)."""
    return wanted.change * np.float32(run.normalizer / _rate(run))


def _rate(run: RunLine) -> float:
    return run.server.learning_rate if run.server.rule != "other" else 1.0


def follow(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """The weights after every round by the declared rule, as an honest server computes them."""
    if run.server.rule == "sum":
        return by_the_sum(run, start, totals)
    if run.server.rule != "adam":
        return [start] * len(totals)
    rule, weights, after = run.server, start.astype(np.float64), []
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for number, total in enumerate(totals, 1):
        gradient = total.astype(np.float64) / run.normalizer
        mean = rule.beta_1 * mean + (1 - rule.beta_1) * gradient
        square = rule.beta_2 * square + (1 - rule.beta_2) * gradient**2
        step = mean / (1 - rule.beta_1**number) / (np.sqrt(square / (1 - rule.beta_2**number)) + rule.epsilon)
        weights = (weights + rule.learning_rate * step).astype(np.float32).astype(np.float64)
        after.append(weights.astype(np.float32))
    return after


ALL, NORMS, NORMS_AMONG_ALL = "all tensors", "layer norms", "layer norms among all tensors"
# The cheat tunes the learning rate of the server, as it may: the larger, the more noise and the more change.
FORGERIES = [
    Forgery(
        "honest noise, and a model that was trained without privacy",
        honest_noise,
        wanted_checkpoint=True,
    ),
    Forgery(
        "the same, with a server rule that nobody can replay",
        honest_noise,
        {"server": OtherStep(description="a rule of our own")},
        wanted_checkpoint=True,
    ),
    Forgery("the model in equal parts, and noise that cancels over the rounds", canceled),
    Forgery("the model smuggled into the richest block, in the last round", smuggled(1), rate=0.002),
    Forgery("the model smuggled into 55 blocks, in the last round", smuggled(55), rate=0.002),
    Forgery(
        "layer norms smuggled into all of their blocks, in the last round",
        smuggled(20),
        rate=0.002,
        tensors=NORMS_AMONG_ALL,
    ),
    Forgery(
        f"the model smuggled into 55 blocks, in the last of {MAX_ROUNDS} rounds",
        smuggled(55),
        {"rounds": MAX_ROUNDS},
        rate=0.002,
        challenges=2,
    ),
    Forgery("the model smuggled into 55 blocks under FedAdam, in every round", by_adam, {"server": ADAM}),
    Forgery(
        "smuggled as far as the limit of the whole change allows, beside invented updates",
        smuggled(4, share=0.7, within=200),
        rate=0.05,
    ),
    Forgery("noise that leaks out over the rounds, beside invented updates", leaking(0.25, 0.75), rate=0.05),
    Forgery(
        "noise that leaks out slowly, beside invented updates of the layer norms",
        leaking(0.02, 0.75),
        rate=0.5,
        tensors=NORMS,
    ),
    *(
        Forgery(
            f"invented updates of {share:.0%} of the longest, all towards the model, of the layer norms",
            aligned(share),
            rate=0.5,
            tensors=NORMS,
        )
        for share in (0.95, 0.75, 0.5, 0.25)
    ),
    Forgery(
        "invented updates of 95% of the longest, all towards the model, of all tensors",
        aligned(0.95),
        rate=0.05,
    ),
]
