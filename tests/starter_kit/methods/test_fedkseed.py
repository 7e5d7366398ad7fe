"""FedKSeed: steps along seeds from two passes forward, in messages of seeds and scalars."""

from typing import cast

import numpy as np
import pytest
import torch

from evaluator.errors import ProblemError
from starter_kit.compression.directions import coefficients_of, combined, direction
from starter_kit.learning.local_training import batches
from starter_kit.methods.fedkseed import Settings
from starter_kit.plugins.codecs.kseed import Codec
from starter_kit.scaffolding.toy import DIMENSION, Toy
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.toy import STREAM

SIZE, SEEDS = 500, 40
DRAW = np.random.default_rng(4)
SETTINGS = cast(
    Settings,
    load_settings(
        "fedkseed", ["codec.seeds=3", "clients_per_round=1", "local.max_steps=1", "local.learning_rate=0.05"]
    ),
)


def test_a_direction_follows_from_its_number_on_every_machine() -> None:
    assert direction(5, 16).tolist() == [1, -1, -1, -1, 1, -1, -1, 1, -1, -1, 1, 1, -1, -1, -1, -1]
    many = torch.stack([direction(number, 4096) for number in range(32)])
    assert torch.allclose(many @ many.T / 4096, torch.eye(32), atol=0.08)


def test_a_combination_has_its_coefficients_and_other_vectors_those_of_the_nearest_one() -> None:
    coefficients = DRAW.normal(size=SEEDS)
    vector = combined(coefficients, SIZE)
    directions = torch.stack([direction(number, SIZE) for number in range(SEEDS)])
    assert torch.allclose(vector, torch.from_numpy(coefficients).float() @ directions, atol=1e-4)
    assert coefficients_of(vector, SEEDS) == pytest.approx(coefficients, abs=1e-6)
    other = torch.randn(SIZE, generator=torch.Generator().manual_seed(1))
    missed = other - combined(coefficients_of(other, SEEDS), SIZE)
    assert torch.allclose(directions @ missed, torch.zeros(SEEDS), atol=1e-3)


def test_a_message_has_two_bytes_for_each_seed_or_four_for_each_that_is_used() -> None:
    codec, few = Codec(seeds=SEEDS), np.zeros(SEEDS)
    few[[3, 30]] = [1.0, -0.25]
    for coefficients, length in ((few, 4 + 2 * 4), (DRAW.normal(size=SEEDS), 4 + 2 * SEEDS), (0 * few, 0)):
        vector = combined(coefficients, SIZE)
        message = codec.encode(vector, {})
        assert len(message) == length
        arrived = coefficients_of(codec.decode(message, SIZE), SEEDS)
        assert arrived == pytest.approx(coefficients, abs=np.abs(coefficients).max() / 32767)
    dense = codec.encode(combined(DRAW.normal(size=SEEDS), SIZE), {})
    levels, scale = np.frombuffer(dense, "<i2", offset=4).tolist(), float(np.frombuffer(dense, "<f4", 1)[0])
    signs = [direction(number, SIZE).int().tolist() for number in range(SEEDS)]
    sums = [
        sum(level * sign[place] for level, sign in zip(levels, signs, strict=True)) for place in range(SIZE)
    ]
    # To the bit, as every machine must decode the same numbers.
    assert torch.equal(codec.decode(dense, SIZE), torch.tensor(sums, dtype=torch.float64).mul(scale).float())
    sparse = codec.encode(combined(few, SIZE), {})
    assert sparse[4:8] == np.array([3, 30], "<u2").tobytes()
    for wrong in (
        sparse[:-1],
        sparse[:-2],
        sparse + bytes(4 * SEEDS),
        b"\0\0\0\0" + sparse[4:],
        sparse[:4] + sparse[6:8] + sparse[4:6] + sparse[8:],
        sparse[:6] + np.uint16(SEEDS).tobytes() + sparse[8:],
    ):
        with pytest.raises(ValueError, match=r"coefficient|scale|seed"):
            codec.decode(wrong, SIZE)


def test_a_step_goes_against_the_slope_along_a_seed() -> None:
    toy = Toy()
    method = SETTINGS.plan(toy.clients).method
    (round_,) = Toy().run(method, 1)
    (client,) = (one for one in toy.clients if one.id == round_.clients[0])
    stream = STREAM.at("round", 1, "client", client.id)
    (batch,) = batches(client.examples, SETTINGS.local, stream)
    gradient = toy.learner.gradient(toy.weights, batch, len(batch))
    along = direction(stream.at("seeds").random().randrange(3), DIMENSION)
    # The loss is quadratic, whose slope two points show exactly.
    expected = -0.05 * float(gradient @ along) * along
    assert torch.allclose(round_.weights, expected, atol=1e-4)


def test_rounds_along_seeds_lower_the_loss_and_send_scalars() -> None:
    local = SETTINGS.local.model_copy(update={"epochs": 20, "max_steps": None})
    rounds = Toy().run_settings(SETTINGS.model_copy(update={"local": local, "codec": Codec(seeds=8)}), 10)
    first, last = rounds[0].loss, rounds[-1].loss
    assert first is not None
    assert last is not None
    assert last < 0.5 * first
    assert max(entry.size_bytes for done in rounds for entry in done.messages) == 4 + 2 * 8


@pytest.mark.parametrize(
    ("change", "expected"),
    [("codec=nf4", "set codec to kseed"), ("local.optimizer=adamw", "set local.optimizer to sgd")],
)
def test_settings_that_do_not_go_together_are_rejected_with_their_correction(
    change: str, expected: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        load_settings("fedkseed", [change])
    assert expected in caught.value.problem.expected
