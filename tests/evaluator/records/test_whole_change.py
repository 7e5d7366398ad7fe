"""How far all rounds may have moved the weights: no honest run is beyond it, and what is smuggled is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from evaluator.checkpoints.weight_vector import WeightVector, weight_vector
from evaluator.messages.jobs import CheckStatus
from evaluator.records import whole_change
from evaluator.records.annex import Annex
from evaluator.records.certificate import BLOCK, Floats
from evaluator.records.lines import RoundLine, RunLine, TrainableTensor
from evaluator.records.server_steps import AdamStep, MomentumStep, OtherStep, SumStep
from evaluator.records.whole_change import (
    Bounds,
    detects_alignment,
    directed_signal,
    longest_hidden,
    lower_findings,
    measure,
    round_weights,
    signal_share,
    upper_ratio,
)
from tests.evaluator.records.checked import checks, odd
from tests.evaluator.records.factories import make_record, noise_only, write_weights

ROUNDS = 16
SIGNAL = 200.0  # of 800 providers at ε = 1, in standard deviations of the whole noise


def bounds(std: float = 1.0, signal: float = SIGNAL) -> Bounds:
    return Bounds(std, std, signal * std, signal * std, ROUNDS, ROUNDS)


def ends(folder: Path, change: Floats) -> tuple[WeightVector, WeightVector]:
    base = folder / "base.safetensors"
    save_file({"other": np.zeros(1, np.float32)}, base)
    start = np.zeros(len(change), np.float32)
    vectors = [weight_vector(base, {"w": [len(change)]}, {"w": one}) for one in (start, start + change)]
    assert vectors[0] is not None
    assert vectors[1] is not None
    return vectors[0], vectors[1]


def noise(numel: int, seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(numel).astype(np.float32)


@pytest.mark.parametrize("numel", [1, 500, BLOCK, 3 * BLOCK + 7, 200 * BLOCK])
def test_an_honest_change_is_within_the_limits_wherever_its_signal_lies(tmp_path: Path, numel: int) -> None:
    """Also where all updates lie in one coordinate, in the block with the most noise, or along all noise."""
    for seed in range(5):
        change = noise(numel, seed)
        one, block = np.zeros(numel, np.float32), np.zeros(numel, np.float32)
        one[int(np.argmax(np.abs(change)))] = 1
        begin = BLOCK * int(np.argmax(np.add.reduceat(change**2, np.arange(0, numel, BLOCK))))
        block[begin : begin + BLOCK] = change[begin : begin + BLOCK]
        for direction in (one, block, change):
            signal = np.float32(SIGNAL / np.linalg.norm(direction)) * direction
            signal = signal * np.sign(change @ signal)
            vectors = ends(tmp_path, change + signal)
            assert 0 < upper_ratio(measure(*vectors, 1.0), bounds()) < 1


@pytest.mark.parametrize("spread", ["one block", "many blocks", "single coordinates"])
def test_what_is_smuggled_past_the_opened_blocks_is_beyond_the_limits(tmp_path: Path, spread: str) -> None:
    numel = 382 * BLOCK
    change, random = noise(numel, 1), np.random.default_rng(2)
    where = {
        "one block": np.arange(7 * BLOCK, 8 * BLOCK),
        "many blocks": np.concatenate([np.arange(b * BLOCK, (b + 1) * BLOCK) for b in range(0, 110, 2)]),
        "single coordinates": random.choice(numel, 900, replace=False),
    }[spread]
    change[where] = 40 * random.standard_normal(len(where))
    assert upper_ratio(measure(*ends(tmp_path, change), 1.0), bounds()) > 1.5


def test_the_limit_is_stated_as_multiples_of_what_clipped_updates_can_do(tmp_path: Path) -> None:
    numel = 382 * BLOCK
    block, everywhere = longest_hidden(numel, bounds())
    change = noise(numel, 3)
    change[:BLOCK] = 1.01 * block * SIGNAL / BLOCK**0.5
    assert upper_ratio(measure(*ends(tmp_path, change), 1.0), bounds()) > 1
    assert 1 < block < 1.3 < everywhere < 5


def leaking(numel: int, part: float) -> Floats:
    """Noise of which every round takes back a part of a round's length from the sum so far."""
    total = np.zeros(numel)
    for number in range(ROUNDS):
        if number:
            total -= part * numel**0.5 / np.linalg.norm(total) * total
        total += noise(numel, 100 + number)
    return (total / ROUNDS**0.5).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "finds"),
    [
        (noise(40 * BLOCK, 5), False),
        (noise(40 * BLOCK, 5) + 0.3, False),
        (np.float32(0.8) * noise(40 * BLOCK, 5), True),
        (leaking(40 * BLOCK, 0.25), True),
        (np.where(np.arange(40 * BLOCK) < BLOCK, 0, noise(40 * BLOCK, 5)), True),
        (np.where(np.arange(40 * BLOCK) < BLOCK, 1.1, noise(40 * BLOCK, 5)), True),
    ],
    ids=["noise", "with a signal", "less", "leaking", "a bare block", "a block of a constant"],
)
def test_missing_noise_is_found(tmp_path: Path, change: Floats, finds: bool) -> None:
    vectors = ends(tmp_path, change.astype(np.float32))
    found = list(lower_findings(measure(*vectors, 1.0), *vectors, 1.0, rounded=False))
    assert bool(found) == finds


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_the_signal_is_measured_where_the_noise_is_far_larger(tmp_path: Path, share: float) -> None:
    numel = 382 * BLOCK
    signal = noise(numel, 7)
    signal *= np.float32(share * SIGNAL / np.linalg.norm(signal))
    measured = measure(*ends(tmp_path, noise(numel, 8) + signal), 1.0)
    found, low, high = signal_share([(measured, 1.0, 0.0)], SIGNAL)
    assert low <= share <= high
    assert found == pytest.approx(share, abs=0.08) or share < 0.2
    assert detects_alignment([(numel, 1.0)], SIGNAL, 0.8)
    assert not detects_alignment([(225_000_000, 1.0)], SIGNAL, 0.8)


SHAPES = [[300, 128], [512], [128, 512], [40, 3, 3]]


def of_rank_one(length: float) -> Floats:
    """A signal in the first of `SHAPES`, and none in the others (d,)."""
    rows, columns = (
        np.random.default_rng(3).standard_normal(300),
        np.random.default_rng(4).standard_normal(128),
    )
    matrix = np.outer(rows / np.linalg.norm(rows), columns / np.linalg.norm(columns)) * length
    return np.concatenate([matrix.ravel(), np.zeros(512 + 128 * 512 + 360)]).astype(np.float32)


def rearranged(wanted: Floats, draws: Floats) -> Floats:
    """Noise whose coordinates trade places within blocks until they are in the order of what is wanted."""
    found = draws.copy()
    for begin in range(0, len(wanted), BLOCK):
        block = slice(begin, begin + BLOCK)
        found[block][np.argsort(wanted[block], kind="stable")] = np.sort(draws[block])
    return found


@pytest.mark.parametrize("piece", [2**22, 5_000], ids=["whole matrices", "pieces"])
def test_a_signal_is_seen_by_its_directions_and_is_never_longer_than_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(whole_change, "PIECE", piece)
    numel = len(of_rank_one(1))
    for length in (0.0, 100.0):
        vectors = ends(tmp_path, noise(numel, 8) + of_rank_one(length))
        found = directed_signal(*vectors, SHAPES, measure(*vectors, 1.0), bounds())
        assert found <= length
        assert found > length - 40 * (1 if piece > 5_000 else 5)
    everywhere = SIGNAL * noise(numel, 9) / np.linalg.norm(noise(numel, 9))
    vectors = ends(tmp_path, noise(numel, 8) + everywhere)
    assert directed_signal(*vectors, SHAPES, measure(*vectors, 1.0), bounds()) <= SIGNAL


@pytest.mark.filterwarnings("error")
def test_a_signal_as_long_as_float32_allows_is_measured(tmp_path: Path) -> None:
    wanted = of_rank_one(1)
    change = (wanted / np.abs(wanted).max()) * np.float32(3e38)
    vectors = ends(tmp_path, change)
    directed = directed_signal(*vectors, SHAPES, measure(*vectors, 1.0), bounds())
    assert directed == pytest.approx(float(np.linalg.norm(change.astype(np.float64))), rel=1e-4)


def test_noise_that_was_rearranged_keeps_its_length_and_shows_directions(tmp_path: Path) -> None:
    draws = noise(len(of_rank_one(1)), 8)
    wanted = of_rank_one(1) + np.float32(1e-9) * noise(len(draws), 10)
    change = rearranged(wanted, draws)
    vectors = ends(tmp_path, change)
    measured = measure(*vectors, 1.0)
    assert measured.squares == pytest.approx(float(draws.astype(np.float64) @ draws))
    assert signal_share([(measured, 1.0, 0.0)], SIGNAL)[1] == 0
    directed = directed_signal(*vectors, SHAPES, measure(*vectors, 1.0), bounds())
    assert signal_share([(measured, 1.0, directed)], SIGNAL)[1] == directed / SIGNAL > 0.25


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.floats(0, 0.99), st.floats(1e-3, 1e3))
def test_a_round_weighs_what_momentum_makes_of_it(rounds: int, momentum: float, rate: float) -> None:
    rule = MomentumStep(learning_rate=rate, momentum=momentum)
    weights = round_weights(rule, 7.0, np.ones(rounds))
    assert weights is not None
    sums = np.random.default_rng(rounds).standard_normal(rounds)
    velocity = change = 0.0
    for total in sums:
        velocity = momentum * velocity + total / 7.0
        change += rate * velocity
    assert weights @ sums == pytest.approx(change, rel=1e-9, abs=1e-9 * rate)


def test_rules_that_are_not_linear_have_no_weights() -> None:
    adam = AdamStep(learning_rate=1, beta_1=0.9, beta_2=0.99, epsilon=1e-3, bias_correction=True)
    assert round_weights(SumStep(learning_rate=3.0), 6.0, np.ones(2)) == pytest.approx([0.5, 0.5])
    others = [round_weights(rule, 1.0, np.ones(2)) for rule in (adam, OtherStep(description="?"))]
    assert others == [None, None]


@given(st.floats(1e-3, 1e3), st.integers(1, 500))
def test_a_noise_that_was_not_planned_is_bounded_by_one_of_a_fixed_grid(std: float, rounds: int) -> None:
    """As with clip norms that adapt: the limit is higher, and grows slowly with the distance from the plan."""
    level, tries = Bounds(std, 1.0, 1.0, 1.0, rounds, rounds).level(1e-9)
    assert std * (1 - 1e-6) <= level <= std * 1.0101
    assert 20 < tries < 45


LONG = [TrainableTensor(name="encoder.weight", shape=[100, BLOCK])]


def smuggling(run: RunLine, line: RoundLine, providers: int) -> Floats:
    """Noise, and in one block of the last round ten times what all clipped updates of all rounds could be."""
    total = noise_only(run, line, providers)
    if line.round == run.rounds:
        total[40 * BLOCK : 41 * BLOCK] = 10 * 20 * line.clip_norm * run.rounds / BLOCK**0.5
    return total


def test_rounds_in_which_nobody_is_said_to_have_taken_part_hide_nothing(tmp_path: Path) -> None:
    def alone(line: RoundLine) -> RoundLine:
        return line.model_copy(update={"clients": 0})

    def nobody(annex: Annex) -> Annex:
        return replace(annex, sampled=[{} for _ in annex.sampled])

    base = write_weights(tmp_path / "base.safetensors", tensors=LONG)
    made = make_record(
        tmp_path / "run",
        base=base,
        trainable=LONG,
        rounds=4,
        sums=smuggling,
        change_round=alone,
        change_annex=nobody,
        challenge="7" * 64,
    )
    assert odd(checks(made, challenge="7" * 64))["record.whole_change"] is CheckStatus.FAILED


def test_a_run_that_smuggles_past_the_opened_blocks_is_rejected(tmp_path: Path) -> None:
    base = write_weights(tmp_path / "base.safetensors", tensors=LONG)
    for number in range(12):
        made = make_record(
            tmp_path / f"{number}",
            base=base,
            trainable=LONG,
            rounds=4,
            sums=smuggling,
            challenge=f"{number:064x}",
        )
        found = odd(checks(made, challenge=f"{number:064x}"))
        assert found["record.whole_change"] is CheckStatus.FAILED
