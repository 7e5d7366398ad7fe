import weakref
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, cast

import pytest
import torch
from torch import Tensor

from evaluator.communication.log import LogEntry
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import SERVER
from starter_kit.federation.rounds import ClientTask, ClientUpdate, Engine, Message, Reply, Sum
from starter_kit.learning.local_training import LocalTraining, State
from starter_kit.methods.fedavg import FedAvg
from starter_kit.randomness import Stream
from tests.starter_kit.toy import DIMENSION, Toy, run_rounds, server

LOCAL = LocalTraining(learning_rate=0.05, batch_size=4)


class Nobody(FedAvg):
    """A method whose rounds may stay without clients."""

    def choose_clients(self, clients: Sequence[int], stream: Stream) -> list[int]:
        return []


class Watched(FedAvg):
    """Notes, whenever a client trains, how many messages of earlier ones are still in memory at the server."""

    made: ClassVar[list["weakref.ref[Tensor]"]] = []
    held: ClassVar[list[int]] = []

    def client_update(self, task: ClientTask) -> ClientUpdate:
        self.held.append(sum(made() is not None for made in self.made))
        return super().client_update(task)

    def accumulator(self, weights: Tensor, state: State) -> Sum:
        accumulator = super().accumulator(weights, state)
        add = accumulator.add

        def noted(message: Message) -> None:
            self.made.append(weakref.ref(message.vector))
            add(message)

        accumulator.add = noted  # type: ignore[method-assign]
        return accumulator


def test_no_message_is_in_memory_while_the_next_client_trains() -> None:
    toy = Toy()
    toy.server(Watched(4, LOCAL)).round(1, toy.weights)
    assert Watched.held == [0] * 4


def test_every_message_is_counted_both_ways_from_the_first_download_on() -> None:
    toy = Toy()
    (first, second) = run_rounds(toy.server(FedAvg(4, LOCAL)), toy.weights, range(1, 2 + 1))
    size_bytes = 4 * DIMENSION
    assert first.messages == [LogEntry(1, SERVER, c, size_bytes) for c in range(4)] + [
        LogEntry(1, c, SERVER, size_bytes) for c in range(4)
    ]
    assert {message.round for message in second.messages} == {2}


def test_bytes_are_totalled_by_direction() -> None:
    toy = Toy()
    only = toy.server(FedAvg(3, LOCAL)).round(1, toy.weights)
    assert (only.bytes_down, only.bytes_up) == (3 * 4 * DIMENSION, 3 * 4 * DIMENSION)


def test_rounds_count_from_one_and_build_on_each_other() -> None:
    toy = Toy()
    rounds = list(run_rounds(toy.server(FedAvg(4, LOCAL)), toy.weights, range(1, 30 + 1)))
    assert rounds[0].start is toy.weights
    assert all(later.start is earlier.weights for earlier, later in pairwise(rounds))
    assert [finished.number for finished in rounds] == list(range(1, 31))
    assert toy.distance(rounds[-1].weights) < 0.2 * toy.distance(toy.weights)


def test_a_round_without_clients_happens_and_sends_nothing() -> None:
    toy = Toy()
    only = toy.server(Nobody(4, LOCAL)).round(1, toy.weights)
    assert only.clients == []
    assert only.messages == []
    assert torch.equal(only.weights, toy.weights)


def test_the_weights_of_a_finished_round_stay_as_they_were() -> None:
    toy = Toy()
    rounds = run_rounds(toy.server(FedAvg(4, LOCAL)), toy.weights, range(1, 2 + 1))
    first = next(rounds)
    kept = first.weights.clone()
    next(rounds)
    assert torch.equal(first.weights, kept)
    assert torch.equal(toy.weights, torch.zeros(DIMENSION))


def test_the_same_seed_gives_the_same_rounds() -> None:
    runs = []
    for _ in range(2):
        toy = Toy()
        runs.append(list(run_rounds(toy.server(FedAvg(2, LOCAL)), toy.weights, range(1, 6))))
    assert [finished.clients for finished in runs[0]] == [finished.clients for finished in runs[1]]
    assert len({tuple(finished.clients) for finished in runs[0]}) > 1
    assert torch.equal(runs[0][-1].weights, runs[1][-1].weights)


def test_rounds_may_begin_anywhere_with_the_same_outcome() -> None:
    toy = Toy()
    whole = list(run_rounds(toy.server(FedAvg(2, LOCAL)), toy.weights, range(1, 6)))
    later = list(run_rounds(toy.server(FedAvg(2, LOCAL)), whole[2].weights, range(4, 6)))
    assert torch.equal(whole[-1].weights, later[-1].weights)


def test_a_lossy_codec_is_given_differences_so_that_the_first_download_is_exact() -> None:
    toy = Toy()
    start = torch.randn(DIMENSION)
    seen: list[torch.Tensor] = []

    class Seeing(FedAvg):
        def client_update(self, task):
            seen.append(task.weights)
            return super().client_update(task)

    rounds = list(
        run_rounds(
            server(Seeing(4, LOCAL), toy.clients, toy.learner, start, codec_name="nf4"), start, range(1, 3)
        )
    )
    assert all(torch.equal(weights, start) for weights in seen[:4])
    assert not torch.equal(seen[4], rounds[0].weights)
    assert torch.allclose(seen[4], rounds[0].weights, atol=0.2)
    assert rounds[0].bytes_up == rounds[0].bytes_down == 4 * (DIMENSION // 2 + 4)


def test_a_reply_that_does_not_come_is_left_out_of_the_mean_and_of_the_log() -> None:
    toy = Toy()
    whole = toy.server(FedAvg(4, LOCAL))

    class Losing:
        clients = whole.engine.clients
        unsent: list[int] = []

        def ask(self, requests):
            return (reply for reply in whole.engine.ask(requests) if reply.client != 2)

    only = replace(whole, engine=cast(Engine, Losing())).round(1, toy.weights)
    assert only.clients == [0, 1, 3]
    assert len(only.messages) == 4 + 3
    assert torch.allclose(only.weights, only.aggregate.total / 3)


def test_a_model_that_could_not_be_sent_is_not_in_the_log() -> None:
    toy = Toy()
    whole = toy.server(FedAvg(4, LOCAL))

    class Away:
        clients = whole.engine.clients
        unsent: list[int] = []

        def ask(self, requests):
            self.unsent = [2]
            return whole.engine.ask([request for request in requests if request.client != 2])

    only = replace(whole, engine=cast(Engine, Away())).round(1, toy.weights)
    assert {message.receiver for message in only.messages} == {SERVER, 0, 1, 3}
    assert len(only.messages) == 6


def test_an_answer_that_is_no_update_ends_the_round_and_names_the_client() -> None:
    toy = Toy()
    whole = toy.server(FedAvg(4, LOCAL))

    class Garbled:
        clients = whole.engine.clients
        unsent: list[int] = []

        def ask(self, requests):
            return (Reply(request.client, bytes(3)) for request in requests)

    with pytest.raises(ProblemError) as rejected:
        replace(whole, engine=cast(Engine, Garbled())).round(7, toy.weights)
    assert rejected.value.problem.code is ErrorCode.CLIENTS_LOST
    assert rejected.value.problem.where == "round 7, client 0"


def test_the_server_holds_one_update_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy()
    order: list[str] = []

    class Noting(FedAvg):
        def client_update(self, task):
            order.append(f"train {task.client.id}")
            return super().client_update(task)

        def accumulator(self, weights, state):
            summed = super().accumulator(weights, state)
            add = summed.add
            monkeypatch.setattr(
                summed, "add", lambda message: (order.append(f"add {message.client}"), add(message))
            )
            return summed

    toy.server(Noting(3, LOCAL)).round(1, toy.weights)
    assert order[::2] == [f"train {name[-1]}" for name in order[1::2]]
    assert [name.split()[0] for name in order] == ["train", "add"] * 3
