from collections.abc import Sequence
from itertools import chain

import torch
from torch import nn

from starter_kit.learning.local_training import Learner, LocalTraining, State, batches
from starter_kit.learning.tensors import TrainableTensors
from tests.starter_kit.toy import STREAM, Toy

LOCAL = LocalTraining(learning_rate=0.05, batch_size=4, epochs=3)


def test_an_epoch_sees_every_example_once_in_batches_of_the_given_size() -> None:
    made = list(batches(range(10), LocalTraining(learning_rate=1, batch_size=4, epochs=2), STREAM))
    assert [len(batch) for batch in made] == [4, 4, 2, 4, 4, 2]
    assert sorted(chain(*made[:3])) == list(range(10))


def test_training_stops_at_the_last_step_allowed() -> None:
    assert (
        len(
            list(
                batches(
                    range(10), LocalTraining(learning_rate=1, batch_size=4, epochs=2, max_steps=4), STREAM
                )
            )
        )
        == 4
    )


def test_the_next_steps_examples_are_read_while_a_step_is_computed() -> None:
    toy = Toy()
    calls: list[tuple[str, list[int]]] = []

    def backward(batch: Sequence[int]) -> torch.Tensor:
        calls.append(("computed", list(batch)))
        loss = toy.loss(batch)
        torch.autograd.backward(loss)
        return loss.detach()

    learner = Learner(
        toy.learner.tensors,
        toy.loss,
        backward=backward,
        prepare=lambda batch: calls.append(("prepared", list(batch))),
    )
    local = LocalTraining(learning_rate=0.05, batch_size=2)
    change = learner.train(toy.weights, range(6), local, STREAM).change
    first, second, third = batches(range(6), local, STREAM)
    assert calls == [
        ("prepared", second),
        ("computed", first),
        ("prepared", third),
        ("computed", second),
        ("computed", third),
    ]
    assert torch.equal(change, toy.learner.train(toy.weights, range(6), local, STREAM).change)


def test_an_update_lowers_the_loss() -> None:
    toy = Toy()
    examples = toy.clients[0].examples
    before = toy.loss(examples).item()
    toy.learner.tensors.write(toy.weights + toy.learner.train(toy.weights, examples, LOCAL, STREAM).change)
    assert toy.loss(examples).item() < before


def test_no_examples_make_no_change() -> None:
    toy = Toy()
    assert torch.equal(
        toy.learner.train(toy.weights, [], LOCAL, STREAM).change, torch.zeros_like(toy.weights)
    )


def test_an_update_does_not_depend_on_what_was_trained_before() -> None:
    toy = Toy()
    one_batch = LocalTraining(learning_rate=0.05, batch_size=100, epochs=3)
    mine, others = [0, 1], toy.clients[1].examples
    alone = toy.learner.train(toy.weights, mine, one_batch, STREAM).change
    toy.learner.train(torch.randn_like(toy.weights), others, one_batch, STREAM)
    assert torch.allclose(toy.learner.train(toy.weights, mine, one_batch, STREAM).change, alone, atol=1e-6)


def test_dropout_follows_from_the_stream_and_leaves_the_callers_generator_alone() -> None:
    layer, dropout = nn.Linear(100, 1), nn.Dropout(0.5)
    learner = Learner(
        TrainableTensors(dict(layer.named_parameters())),
        lambda _: layer(dropout(torch.ones(1, 100))).square().sum(),
    )
    weights = learner.tensors.read()
    torch.manual_seed(42)
    before = torch.get_rng_state()
    first, again, other = (
        learner.train(weights, [0], LOCAL, STREAM.at(name)).change for name in ("a", "a", "b")
    )
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_batches_follow_from_the_stream() -> None:
    first, again, other = (list(batches(range(50), LOCAL, STREAM.at(name))) for name in ("a", "a", "b"))
    assert first == again != other


def test_a_provider_trains_the_same_whoever_else_is_there() -> None:
    toy = Toy()
    several = {"a": [0, 1], "b": [2, 3, 4, 5, 6, 7], "c": [8, 9]}
    together = dict(
        zip(several, toy.learner.provider_changes(toy.weights, several, LOCAL, STREAM), strict=True)
    )
    (alone,) = toy.learner.provider_changes(toy.weights, {"b": several["b"]}, LOCAL, STREAM)
    assert torch.equal(together["b"], alone)


def test_the_gradient_is_that_of_the_mean_loss_and_leaves_none_behind() -> None:
    toy = Toy()
    examples = toy.clients[0].examples
    gradient = toy.learner.gradient(toy.weights, examples, batch_size=4)
    inputs = toy.inputs[examples]
    expected = 2 * inputs.T @ (inputs @ (toy.weights - toy.truth)) / len(examples)
    assert torch.allclose(gradient, expected, atol=1e-5)
    assert toy.model.weight.grad is None
    assert torch.equal(toy.learner.gradient(toy.weights, [], batch_size=4), torch.zeros_like(toy.weights))


def test_sgd_takes_steps_along_the_gradient_with_momentum() -> None:
    toy = Toy()
    local = LocalTraining(
        optimizer="sgd", learning_rate=0.1, momentum=0.5, batch_size=100, max_steps=2, epochs=2
    )
    change = toy.learner.train(toy.weights, [0, 1], local, STREAM).change
    first = toy.learner.gradient(toy.weights, [0, 1], 2)
    second = 0.5 * first + toy.learner.gradient(toy.weights - 0.1 * first, [0, 1], 2)
    assert torch.allclose(change, -0.1 * (first + second), atol=1e-6)


def test_adamw_takes_the_same_steps_as_the_default_of_pytorch() -> None:
    toy, examples = Toy(), [0, 1, 2, 3]
    local = LocalTraining(learning_rate=0.05, batch_size=2, epochs=3, weight_decay=0.3, adam_epsilon=1e-4)
    change = toy.learner.train(toy.weights + 1, examples, local, STREAM).change
    toy.learner.tensors.write(toy.weights + 1)
    default = torch.optim.AdamW(toy.model.parameters(), lr=0.05, weight_decay=0.3, eps=1e-4, foreach=False)
    for batch in batches(examples, local, STREAM):
        default.zero_grad()
        toy.loss(batch).backward()
        default.step()
    assert torch.allclose(change, toy.learner.tensors.read() - 1, atol=1e-5)
    assert change.norm() > 0.1


def test_shampoo_continues_where_the_client_left_it() -> None:
    toy = Toy()
    local = LocalTraining(optimizer="shampoo", learning_rate=0.1, batch_size=4, max_steps=10, epochs=10)
    state: State = {}
    toy.learner.train(toy.weights, range(20), local, STREAM, state)
    kept = {name: value.clone() for name, value in state.items()}
    toy.learner.train(toy.weights, range(20), local, STREAM, state)
    assert kept
    assert any(not torch.equal(kept[name], state[name]) for name in kept)
