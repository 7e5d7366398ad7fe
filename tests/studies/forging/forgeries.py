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

ROUNDS = 16


@dataclass(frozen=True)
class Wanted:
    """The model that a cheat wants to be ranked with.

    Attributes:
        start: The base weights (d,).
        change: From there to the model that was trained without privacy (d,).
        shapes: Of the tensors that are one after the other in these.
        seed: Of the forgery's own noise.
    """

    start: Floats
    change: Floats
    shapes: Sequence[Sequence[int]]
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

    def like_noise(self, above_edge: float) -> Floats:
        """The change as noise of variance 1, ordered alike in every block, without large singular values (d,).

        Args:
            above_edge: By how much a singular value of a matrix may exceed what noise has.
        """
        found = self._as_noise(self.change)
        # Each ordering brings back some of what was cut.
        for _ in range(3):
            flat, start = [], 0
            for shape in self.shapes:
                values = found[start : start + math.prod(shape)]
                flat.append(_without_directions(values, shape, above_edge))
                start += len(values)
            found = self._as_noise(np.concatenate(flat))
        return found

    def _as_noise(self, values: Floats) -> Floats:
        """Draw noise for each block and put it in the order of `values`."""
        random = np.random.default_rng(self.seed)
        noise = random.standard_normal(len(values), np.float32)
        for start in range(0, len(values), BLOCK):
            block, order = noise[start : start + BLOCK], values[start : start + BLOCK]
            # Where nothing is wanted, in no order: neighbors must not be alike.
            block[np.lexsort((random.random(len(order)), order))] = np.sort(block)
        return noise


def _without_directions(values: Floats, shape: Sequence[int], above_edge: float) -> Floats:
    """Return a matrix of variance 1 whose singular values stay near those of noise, with the others in their place."""
    rows, columns = shape[0], len(values) // shape[0]
    if min(rows, columns) == 1:
        return values
    left, found, right = np.linalg.svd(values.reshape(rows, columns), full_matrices=False)
    most = math.sqrt(rows) + math.sqrt(columns) + above_edge
    cut = np.minimum(found, most)
    rest = np.where(cut < most, cut, 0)
    # What was cut off goes to the others, as the length of noise is known.
    growth = math.sqrt(1 + float(np.sum(found**2 - cut**2)) / max(float(np.sum(rest**2)), 1e-12))
    grown = np.minimum(np.where(rest > 0, cut * growth, cut), most)
    flat: Floats = ((left * grown) @ right).reshape(-1)
    return flat


# The noised sums of all rounds, from the rounds' lines and how many providers each one sampled.
Sums = Callable[[Wanted, RunLine, Sequence[RoundLine], Sequence[int]], list[Floats]]


@dataclass(frozen=True)
class Forgery:
    """A lie, and the run that tells it.

    Attributes:
        wanted_checkpoint: Whether the wanted model is submitted, wherever the sums lead.
        challenges: How many independent challenges it is judged under.
        rate: The server's learning rate, as a multiple of the honest one.
        normalizer: By which the sums are divided, as a multiple of the honest one.
        tensors: What the wanted model was trained on, and what is declared.
        epsilon: Of the noise that is declared.
        passes: Whether the checks of the files are known not to detect it.
    """

    name: str
    sums: Sums
    run: Mapping[str, Any] = field(default_factory=dict)
    wanted_checkpoint: bool = False
    challenges: int = 10
    rate: float = 1.0
    normalizer: float = 1.0
    tensors: str = "all tensors"
    epsilon: float = 1.0
    passes: bool = False


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


def rearranged(
    wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
) -> list[Floats]:
    """Honest noise, whose coordinates trade places within blocks until its sum is ordered as the wanted change.

    They do so in the same way in every round, so that no length, product or distribution in a block changes.
    """
    noises, random = np.array(honest_noise(wanted, run, lines, sampled)), np.random.default_rng(wanted.seed)
    for start in range(0, noises.shape[1], BLOCK):
        block, change = noises[:, start : start + BLOCK], wanted.change[start : start + BLOCK]
        # Where nothing is wanted, in no order: neighbors must not be alike.
        places = np.lexsort((random.random(len(change)), change))
        block[:, places] = block[:, np.argsort(block.sum(axis=0))]
    return list(noises)


def bridged(above_edge: float) -> Sums:
    """Honest noise, and in each round a part of what its sum lacks of a change that looks like noise itself."""

    def sums(
        wanted: Wanted, run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]
    ) -> list[Floats]:
        noises = honest_noise(wanted, run, lines, sampled)
        std = np.float32(run.noise.multiplier * run.clip_norm * math.sqrt(len(lines)))
        lacking = std * wanted.like_noise(above_edge) - np.sum(noises, axis=0, dtype=np.float32)
        return [noise + lacking / np.float32(len(lines)) for noise in noises]

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


ALL, NORMS, NORMS_AMONG_ALL = "all tensors", "layer norms", "layer norms among all tensors"
NORMS_BESIDE_POSITIONS = "layer norms beside position embeddings"
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
    Forgery(
        "the same of the layer norms, beside a normalizer that claims 20 times the providers",
        aligned(0.95),
        normalizer=20.0,
        rate=20 * 0.5,
        tensors=NORMS,
    ),
    # The check of alignment measures shares to about 8 %, and flags what is above 25 % for certain.
    Forgery(
        "invented updates of 31% of the longest of the layer norms, beside position embeddings that stay",
        aligned(0.31),
        rate=2.0,
        tensors=NORMS_BESIDE_POSITIONS,
        passes=True,
    ),
    Forgery("honest noise that was rearranged until it adds up to the model", rearranged, rate=0.2),
    *(
        Forgery(f"the same at ε = {epsilon:.0f}", rearranged, rate=rate, epsilon=epsilon, passes=True)
        for epsilon, rate in ((4.0, 0.6), (8.0, 1.0))
    ),
    Forgery(
        "honest noise that was moved to add up to the model, without its large singular values",
        bridged(7),
        rate=0.25,
        passes=True,
    ),
]
