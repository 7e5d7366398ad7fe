"""What a cheat can claim who knows every check, and what catches it.

Each row of `LIES` is a run that is made up in one respect and consistent in all others: hashed, signed and with the
annex that its record asks for. The row says which check rejects or flags it. One without a check is a lie that passes
today; docs/checks.md names it, with the trust level that can show it.

The runs are those of factories.py: 2,409 weights, all of whose blocks are opened, 2 clients with 20 providers each, of
whom a quarter is sampled, σ = 1.1 and S = 0.5. A provider's signal is small against the noise here; what a strong one
hides is for test_noise_tests.py. A run token that is used twice is for the site to reject: test_accounted.py.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import Poisson
from evaluator.messages.jobs import CheckStatus
from evaluator.messages.results import unbound_by
from evaluator.records.annex import Annex
from evaluator.records.certificate import BLOCK, Floats, drawn_blocks
from evaluator.records.check_table import UNCAUGHT
from evaluator.records.lines import Codec, RoundLine, RunLine, TrainableTensor
from evaluator.records.server_steps import AdamStep, MomentumStep, OtherStep, SumStep
from tests.evaluator.records.checked import checks, odd
from tests.evaluator.records.factories import by_the_rule, by_the_sum, make_record, noise_only, write_weights

REJECTED, FLAGGED = CheckStatus.FAILED, CheckStatus.FLAGGED
ROUNDS = 8
PROVIDERS = (20, 20)  # of each client, as the track's rules say
BARE_BLOCKS = 12
ADAM = AdamStep(learning_rate=0.01, beta_1=0.9, beta_2=0.99, epsilon=1e-3, bias_correction=True)
NOISE_CHECKS = ("record.whole_change", "record.noise_size", "record.noise_reuse", "record.noise_shape")


def wanted_change(size: int) -> Floats:
    """What training without privacy would do to the weights: as large as the noise of a whole run is in them."""
    return (0.2 * np.random.default_rng(99).standard_normal(size)).astype(np.float32)


# Lies about the model: the noised sums are what an honest run would have.


def fine_tuned(weights: Floats) -> Floats:
    return weights + np.float32(0.01) * wanted_change(len(weights))


def one_weight_changed(weights: Floats) -> Floats:
    changed = weights.copy()
    changed[17] += np.float32(1e-4)
    return changed


def scaled(weights: Floats) -> Floats:
    return np.float32(0.99) * weights


def by_the_count(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """Divided by how many took part, in place of the normalizer."""
    counts = [9, 11, 10, 8, 12, 10, 7, 11]
    return _followed(start, totals, [1 / count for count in counts])


def by_another_rate(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    return _followed(start, totals, [1.05 / run.normalizer] * len(totals))


def without_the_noise_of_a_round(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """One round is recorded with noise, and left out of the model."""
    factors = [1 / run.normalizer] * len(totals)
    return _followed(start, totals, [*factors[:3], 0.0, *factors[4:]])


def averaged(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """The mean of all rounds' models in place of the last one: less noise, and no more than post-processing."""
    weights = by_the_sum(run, start, totals)
    return [*weights[:-1], np.mean(weights, axis=0, dtype=np.float32)]


def drifting(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """Steps that round to nothing, and in every round as much of the wanted change as rounding explains."""
    change = np.sign(wanted_change(len(start))) * np.float32(7 * 2.0**-23) * np.abs(start)
    weights = [start]
    for total in totals:
        weights.append(weights[-1] + np.float32(1e-9 / run.normalizer) * total + change)
    return weights[1:]


def as_before(run: RunLine, start: Floats, totals: Sequence[Floats]) -> list[Floats]:
    """By η/M = 0.1, whatever the record declares."""
    return _followed(start, totals, [0.1] * len(totals))


def _followed(start: Floats, totals: Sequence[Floats], factors: Sequence[float]) -> list[Floats]:
    weights = [start]
    for total, factor in zip(totals, factors, strict=True):
        weights.append(weights[-1] + np.float32(factor) * total)
    return weights[1:]


# Lies about the sums: the model is what they lead to.


def half_the_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    return np.float32(0.5) * noise_only(run, line, providers)


def same_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    return noise_only(run, line.model_copy(update={"round": 1}), providers)


def zero_sum_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """The wanted change, with noise that all earlier rounds' is subtracted from in the last one."""
    noises = [
        noise_only(run, line.model_copy(update={"round": number}), providers)
        for number in range(1, run.rounds)
    ]
    noise = noises[line.round - 1] if line.round < run.rounds else -np.sum(noises, axis=0)
    share = np.float32(run.normalizer / run.rounds) * wanted_change(run.numel)
    return (noise + share).astype(np.float32)


def known_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Noise of the declared size from a seed that the cheat keeps."""
    random = np.random.default_rng([2026, line.round])
    std = line.noise_multiplier * line.clip_norm
    return (std * random.standard_normal(run.numel)).astype(np.float32)


def signal(run: RunLine, line: RoundLine, length: float, seed: int = 1) -> Floats:
    """An update that is `length` clip norms long, in the same direction in every round."""
    direction = np.random.default_rng(seed).standard_normal(run.numel)
    return (length * line.clip_norm * direction / np.linalg.norm(direction)).astype(np.float32)


def never_clipped(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Three times what clipped updates could add."""
    return noise_only(run, line, providers) + signal(run, line, 3)


def no_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    return signal(run, line, providers)


def of_unit_variance(run: RunLine, line: RoundLine, values: NDArray[np.float64]) -> Floats:
    return (line.noise_multiplier * line.clip_norm * values).astype(np.float32)


def uniform_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    values = np.random.default_rng(line.round).uniform(-(3**0.5), 3**0.5, run.numel)
    return of_unit_variance(run, line, values) + signal(run, line, providers)


def two_point_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    values = np.random.default_rng(line.round).choice([-1.0, 1.0], run.numel)
    return of_unit_variance(run, line, values) + signal(run, line, providers)


def half_of_the_coordinates_bare(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """The others have so much noise that the length is as declared."""
    noise = np.float32(2**0.5) * noise_only(run, line, providers)
    noise[::2] = 0
    return noise + signal(run, line, providers)


def antithetic_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Each coordinate's noise is the opposite of its neighbor's."""
    half = np.random.default_rng(line.round).standard_normal(run.numel // 2 + 1)
    return of_unit_variance(run, line, np.stack([half, -half], axis=1).reshape(-1)[: run.numel])


def telescoping_noise(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Each round takes the noise of the one before back, and adds its own: half of the variance is in each."""
    before, after = (
        np.random.default_rng(number).standard_normal(run.numel) for number in (line.round - 1, line.round)
    )
    return of_unit_variance(run, line, (after - before) / 2**0.5) + signal(run, line, providers)


def two_rounds(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Two rounds, each with half of the noise's variance, and with updates of its own."""
    return noise_only(run, line, providers) + signal(run, line, providers) + signal(run, line, providers, 2)


def two_rounds_of_unlike_updates(run: RunLine, line: RoundLine, providers: int) -> Floats:
    both = (signal(run, line, providers / 2, 2 * line.round + which) for which in (0, 1))
    return noise_only(run, line, providers) + sum(both)


def of_the_same_providers(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Whose updates are at right angles to each other."""
    return noise_only(run, line, providers) + signal(run, line, providers**0.5)


def bare_in_some_blocks(run: RunLine, line: RoundLine, providers: int) -> Floats:
    noise = noise_only(run, line, providers)
    noise[: BARE_BLOCKS * BLOCK] = 0
    return noise


def sorted_noise(run: RunLine, lines: Sequence[RoundLine], sampled: Sequence[int]) -> list[Floats]:
    """Fresh noise, whose coordinates trade places within blocks until the sum of all rounds is in the wanted order."""
    noises = np.array([noise_only(run, line, 0) for line in lines])
    wanted = wanted_change(run.numel)
    for start in range(0, run.numel, BLOCK):
        block = slice(start, start + BLOCK)
        places = np.argsort(wanted[block])
        noises[:, block][:, places] = noises[:, block][:, np.argsort(noises[:, block].sum(axis=0))]
    return list(noises)


def in_a_round_without_clients(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Only clients draw noise, and the wanted change is the sum of a round in which there are none."""
    if line.clients:
        return noise_only(run, line, providers)
    return np.float32(run.normalizer) * wanted_change(run.numel)


def of_a_fixed_number(annex: Annex) -> Annex:
    """The true counts: a quarter of each client's 20 providers in every round."""
    return replace(annex, sampled=[dict.fromkeys(counts, 5) for counts in annex.sampled])


@dataclass(frozen=True)
class Lie:
    """A run that is made up in one respect; `caught` has the outcome of each check that isn't as in an honest run."""

    name: str
    caught: dict[str, CheckStatus]
    run: dict[str, Any] = field(default_factory=dict)
    fabricated: bool = False


LIES = [
    Lie(
        "a checkpoint that no private training made, beside sums of pure noise",
        {"record.linkage": REJECTED, "record.alignment": FLAGGED},
        fabricated=True,
    ),
    Lie("fine-tuned afterwards, and signed again", {"record.linkage": REJECTED}, {"finish": fine_tuned}),
    Lie("a single weight changed afterwards", {"record.linkage": REJECTED}, {"finish": one_weight_changed}),
    Lie("scaled afterwards", {"record.linkage": REJECTED}, {"finish": scaled}),
    Lie("divided by how many took part", {"record.linkage": REJECTED}, {"follow": by_the_count}),
    Lie("another learning rate than declared", {"record.linkage": REJECTED}, {"follow": by_another_rate}),
    Lie(
        "a learning rate declared after the fact",
        {"record.linkage": REJECTED, "record.whole_change": FLAGGED},
        {
            "server": SumStep(learning_rate=1000.0),
            "follow": as_before,
        },
    ),
    Lie(
        "a normalizer declared after the fact",
        {"record.linkage": REJECTED, "record.whole_change": REJECTED, "record.alignment": FLAGGED},
        {"normalizer": 50_000.0, "follow": as_before},
    ),
    Lie(
        "momentum declared and not used",
        {"record.linkage": REJECTED, "record.whole_change": FLAGGED},
        {
            "server": MomentumStep(learning_rate=1.0, momentum=0.5),
            "follow": as_before,
        },
    ),
    Lie(
        "a round left out of the model",
        {"record.linkage": REJECTED},
        {"follow": without_the_noise_of_a_round},
    ),
    Lie(
        "the mean of all models, declared as the last one",
        {"record.linkage": REJECTED, "record.whole_change": FLAGGED},
        {"follow": averaged},
    ),
    Lie(
        "a made-up checkpoint, with a rule that can't be replayed",
        {"record.linkage": FLAGGED},
        {"server": OtherStep(description="secret")},
        fabricated=True,
    ),
    Lie(
        "steps so small that rounding hides a drift",
        {"record.linkage": FLAGGED, "record.alignment": FLAGGED},
        {"server": SumStep(learning_rate=1e-9), "follow": drifting},
    ),
    Lie(
        "half of the noise",
        dict.fromkeys(NOISE_CHECKS, FLAGGED),
        {"sums": half_the_noise},
    ),
    Lie(
        "the same noise in every round",
        {"record.whole_change": REJECTED}
        | dict.fromkeys(("record.alignment", "record.noise_reuse", "record.noise_shape"), FLAGGED),
        {"sums": same_noise},
    ),
    Lie(
        "the wanted change, and noise that is taken back at the end",
        dict.fromkeys(("record.alignment", "record.noise_size", "record.noise_reuse"), FLAGGED),
        {"sums": zero_sum_noise},
    ),
    Lie(
        "no noise",
        dict.fromkeys(NOISE_CHECKS, FLAGGED),
        {"sums": no_noise},
    ),
    Lie(
        "noise in every second coordinate only",
        dict.fromkeys(
            ("record.whole_change", "record.alignment", "record.noise_reuse", "record.noise_shape"), FLAGGED
        ),
        {"sums": half_of_the_coordinates_bare},
    ),
    Lie(
        "uniform noise",
        dict.fromkeys(("record.alignment", "record.noise_shape"), FLAGGED),
        {"sums": uniform_noise},
    ),
    Lie(
        "two-point noise",
        dict.fromkeys(("record.alignment", "record.noise_reuse", "record.noise_shape"), FLAGGED),
        {"sums": two_point_noise},
    ),
    Lie("antithetic pairs within a round", {"record.noise_shape": FLAGGED}, {"sums": antithetic_noise}),
    Lie(
        "telescoping noise",
        dict.fromkeys(NOISE_CHECKS, FLAGGED),
        {"sums": telescoping_noise},
    ),
    Lie(
        "ten times the providers, at a tenth of the rate",
        {"record.providers": REJECTED},
        {"providers": 200, "sampling": Poisson(provider_rate=0.025)},
    ),
    Lie(
        "fixed-size sampling declared as Poisson, in 20 rounds",
        {"record.providers": FLAGGED},
        {"rounds": 20, "change_annex": of_a_fixed_number},
    ),
    Lie(
        "two rounds declared as one under twenty times the normalizer, whose updates all point the same way",
        {"record.alignment": FLAGGED},
        {"normalizer": 200.0, "server": SumStep(learning_rate=20.0), "sums": two_rounds},
    ),
    Lie(
        "a model in a round without clients, whose noise only clients draw",
        {"record.linkage": REJECTED, "record.whole_change": REJECTED, "record.alignment": FLAGGED},
        {
            "sampling": Poisson(client_rate=0.3, provider_rate=0.25),
            "noise": Noise(multiplier=2.0, placement=Placement.CLIENT_FULL),
            "sums": in_a_round_without_clients,
        },
    ),
    Lie(
        "the same under FedAdam",
        {"record.linkage": REJECTED},
        {
            "sampling": Poisson(client_rate=0.3, provider_rate=0.25),
            "noise": Noise(multiplier=2.0, placement=Placement.CLIENT_FULL),
            "server": ADAM,
            "follow": by_the_rule,
            "sums": in_a_round_without_clients,
        },
    ),
    Lie(
        "two rounds declared as one, whose updates all point the same way",
        {"record.alignment": FLAGGED},
        {"sums": two_rounds},
    ),
    # These pass: nothing in record, annex and checkpoint is other than in an honest run.
    Lie("noise known to the cheater", {}, {"sums": known_noise}),
    Lie(
        "noise that was rearranged until it adds up to a change without large singular values",
        {},
        {"all_sums": sorted_noise},
    ),
    Lie("unclipped updates hidden by the noise", {}, {"sums": never_clipped}),
    Lie("a whole run of invented sums, and the model they lead to", {}),
    Lie("two rounds declared as one", {}, {"sums": two_rounds_of_unlike_updates}),
    Lie(
        "another sampling declared as Poisson or as random allocation, with few providers in each round or with "
        "invented counts",
        {},
        {"change_annex": of_a_fixed_number},
    ),
    Lie(
        "the same providers in every round, or in the same round of every cycle",
        {},
        {"sums": of_the_same_providers},
    ),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_a_lie_is_caught_by_these_checks_and_no_others(tmp_path: Path, lie: Lie) -> None:
    run: dict[str, Any] = {"rounds": ROUNDS} | lie.run
    if lie.fabricated:
        base = make_record(tmp_path / "base", rounds=0).base
        run |= {"base": base, "checkpoint": made_without_privacy(tmp_path, base)}
        run.setdefault("follow", by_the_sum if "server" not in run else as_before)
    found = odd(checks(make_record(tmp_path / "run", **run), providers=PROVIDERS))
    assert found == lie.caught


@pytest.mark.parametrize(
    ("run", "check"),
    [
        ({"codec": Codec(name="ours", bits_per_parameter=31.0)}, "record.noise_shape"),
        ({"server": ADAM, "follow": by_the_rule}, "record.whole_change"),
    ],
    ids=["a codec that is said to round", "a rule with which the sums aren't added"],
)
def test_what_no_check_can_look_at_leaves_a_run_unbound(
    tmp_path: Path, run: dict[str, Any], check: str
) -> None:
    made = make_record(tmp_path / "run", rounds=ROUNDS, **run)
    assert unbound_by(checks(made, providers=PROVIDERS).values()).startswith(f"{check}: no power")


def test_the_documentation_names_the_lies_that_pass() -> None:
    assert [lie.name for lie in LIES if not lie.caught] == list(UNCAUGHT)


def test_trying_many_records_hides_nothing_from_a_challenge_that_comes_after_them(tmp_path: Path) -> None:
    """A tenth of the blocks has no noise. Of 10⁴ records a few would open none of these, if each drew its blocks."""
    tensors = [TrainableTensor(name="encoder.weight", shape=[256, BLOCK])]
    base = write_weights(tmp_path / "base.safetensors", tensors=tensors)
    run: dict[str, Any] = {"base": base, "trainable": tensors, "sums": bare_in_some_blocks}
    tried = (hashlib.sha256(f"record {number}".encode()).hexdigest() for number in range(10_000))
    lucky = [
        one
        for one in tried
        if min(block for _, block in drawn_blocks(one, 2, [256 * BLOCK]).updates) >= BARE_BLOCKS
    ]
    assert 0 < len(lucky) < 100
    chosen, drawn = lucky[0], hashlib.sha256(b"drawn by the site").hexdigest()
    unseen = checks(make_record(tmp_path / "lucky", challenge=chosen, **run), challenge=chosen)
    # Only the check that needs no challenge sees it.
    assert odd(unseen) == {"record.whole_change": FLAGGED}
    # The site draws after it has the record: the annex can't answer with the one that was chosen.
    refused = checks(make_record(tmp_path / "kept", challenge=chosen, **run), challenge=drawn)
    assert odd(refused) == {"record.challenge": REJECTED, "record.whole_change": FLAGGED}
    shown = checks(make_record(tmp_path / "drawn", challenge=drawn, **run), challenge=drawn)
    assert odd(shown).keys() == set(NOISE_CHECKS)


def made_without_privacy(folder: Path, base: Path) -> Path:
    tensors = load_file(base)
    for name in ("bias", "encoder.weight"):
        tensors[name] = tensors[name] + wanted_change(tensors[name].size).reshape(tensors[name].shape)
    save_file(tensors, folder / "fabricated.safetensors")
    return folder / "fabricated.safetensors"
