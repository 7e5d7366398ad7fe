from itertools import chain

import torch
from torch import nn

from starter_kit.learning import Learner, LocalTraining, batches
from starter_kit.tensors import TrainableTensors
from tests.starter_kit.toy import Toy

LOCAL = LocalTraining(learning_rate=0.05, batch_size=4, epochs=3)


def test_an_epoch_sees_every_example_once_in_batches_of_the_given_size() -> None:
    made = list(batches(range(10), LocalTraining(learning_rate=1, batch_size=4, epochs=2)))
    assert [len(batch) for batch in made] == [4, 4, 2, 4, 4, 2]
    assert sorted(chain(*made[:3])) == list(range(10))


def test_training_stops_at_the_last_step_allowed() -> None:
    assert (
        len(list(batches(range(10), LocalTraining(learning_rate=1, batch_size=4, epochs=2, max_steps=4))))
        == 4
    )


def test_an_update_lowers_the_loss() -> None:
    toy = Toy()
    examples = toy.clients[0].examples
    before = toy.loss(examples).item()
    toy.learner.tensors.write(toy.weights + toy.learner.update(toy.weights, examples, LOCAL))
    assert toy.loss(examples).item() < before


def test_no_examples_make_no_change() -> None:
    toy = Toy()
    assert torch.equal(toy.learner.update(toy.weights, [], LOCAL), torch.zeros_like(toy.weights))


def test_an_update_does_not_depend_on_what_was_trained_before() -> None:
    toy = Toy()
    one_batch = LocalTraining(learning_rate=0.05, batch_size=100, epochs=3)
    mine, others = [0, 1], toy.clients[1].examples
    alone = toy.learner.update(toy.weights, mine, one_batch)
    toy.learner.update(torch.randn_like(toy.weights), others, one_batch)
    assert torch.allclose(toy.learner.update(toy.weights, mine, one_batch), alone, atol=1e-6)


def test_dropout_is_fresh_although_the_caller_seeded_torch() -> None:
    layer, dropout = nn.Linear(100, 1), nn.Dropout(0.5)
    learner = Learner(
        TrainableTensors(dict(layer.named_parameters())),
        lambda _: layer(dropout(torch.ones(1, 100))).square().sum(),
    )
    weights = learner.tensors.read()
    updates = []
    for _ in range(2):
        torch.manual_seed(42)
        updates.append(learner.update(weights, [0], LOCAL))
        assert torch.initial_seed() == 42
    assert not torch.equal(*updates)
