import random

import numpy as np
import torch

from evaluator.mechanisms.units import PrivacyUnit
from starter_kit.conformance.synthetic import LARGEST_PROVIDER, Federation, make_federation
from starter_kit.learning.local_training import LocalTraining
from starter_kit.randomness import Stream


def federation(seed: int = 1) -> Federation:
    return make_federation(
        random.Random(seed), PrivacyUnit.PROVIDER, clients=3, units=12, coordinates=4, background=50
    )


def test_a_provider_moves_its_own_coordinates_and_no_others() -> None:
    data = federation()
    examples = next(iter(data.clients[0].providers.values()))
    local = LocalTraining(optimizer="sgd", learning_rate=0.5, max_steps=1)
    change = data.learner().train(torch.zeros(data.size), examples, local, Stream(1)).change
    own = data.coordinates[data.unit_of[examples[0]]]
    assert set(np.flatnonzero(change.numpy())) == set(own)
    assert torch.allclose(change[torch.from_numpy(own)], -0.5 * data.gradients[data.unit_of[examples[0]]])
    quick = data.learner(quick=True).train(torch.zeros(data.size), examples, local, Stream(1)).change
    assert torch.allclose(quick, 2 * change)


def test_no_two_examinations_have_the_same_data() -> None:
    first, second = federation(1), federation(2)
    assert first.shapes.keys().isdisjoint(second.shapes)
    assert not {n for c in first.clients for n in c.providers} & {
        n for c in second.clients for n in c.providers
    }
    assert first.clients == federation(1).clients


def test_the_neighbor_lacks_the_removed_units_and_nothing_else() -> None:
    data = federation()
    smaller = data.without({0, 5})
    left = {int(data.unit_of[e]) for client in smaller.clients for e in client.examples}
    assert left == set(range(data.units)) - {0, 5}
    assert [client.id for client in smaller.clients] == [client.id for client in data.clients]


def test_providers_have_from_1_to_200_examples_and_most_have_few() -> None:
    data = make_federation(
        random.Random(3), PrivacyUnit.PROVIDER, clients=4, units=400, coordinates=2, background=50
    )
    sizes = [len(examples) for client in data.clients for examples in client.providers.values()]
    assert min(sizes) == 1
    assert 150 < max(sizes) <= LARGEST_PROVIDER
    assert 8 < sorted(sizes)[len(sizes) // 2] < 24


def test_gradients_get_the_lengths_that_are_asked_for() -> None:
    lengths = torch.linspace(0.5, 3.0, 12)
    for order in (1, 2):
        gradients = federation().of_lengths(lengths, order).gradients
        assert torch.allclose(torch.linalg.vector_norm(gradients, ord=order, dim=1), lengths)
