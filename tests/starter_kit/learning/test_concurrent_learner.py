"""Providers that train at once on replicas, all on the CPU, against the same providers one after another."""

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event

import pytest
import torch
from torch import Tensor

from starter_kit.compression.lora import LoRA
from starter_kit.learning.compute import Compute
from starter_kit.learning.concurrent_learner import WAITING, ConcurrentLearner, why_one_by_one
from starter_kit.learning.local_training import Learner, LocalTraining, Trained
from starter_kit.learning.stacking import make_learner
from starter_kit.plugins.hooks.fedprox import Hook as FedProx
from tests.services.forked import server
from tests.starter_kit.learning.test_compute import STREAM, Steps, distance

CPU = torch.device("cpu")
LOCAL = LocalTraining(learning_rate=1e-3, batch_size=2, epochs=2)
# Numbers of steps differ, and the order isn't that of the sizes.
RAGGED = {"a": [0, 1, 2], "b": [3], "ghost": [], "c": [4, 5, 6, 7, 8], "d": [9, 10], "e": [11, 0, 3, 6, 9]}
# After this, a test fails that would wait for ever.
ENDS_WITHIN_S = 60


class Both(Steps):
    """A tiny VT5 with a learner for one device, and one for several; they share the first one's model."""

    def __init__(
        self,
        base: Path,
        data: Path,
        devices: int = 2,
        *,
        local: LocalTraining = LOCAL,
        lora: LoRA | None = None,
        dropout: bool = False,
        compute: Compute | None = None,
    ) -> None:
        super().__init__(base, data, dropout=dropout, lora=lora, settings=compute)
        noise = torch.randn(self.model.tensors.size, generator=torch.Generator().manual_seed(3))
        self.weights = self.model.start + 0.01 * noise
        self.local = local
        self.one = make_learner(self.model, self.documents, local)
        self.several = ConcurrentLearner(self.model, self.documents, local, [CPU] * devices)

    @property
    def learners(self) -> list[Learner]:
        """The learner of each device."""
        return self.several._learners

    def changes(
        self, learner: Learner | None = None, providers: Mapping[str, Sequence[int]] = RAGGED
    ) -> Iterator[Tensor]:
        return (learner or self.several).provider_changes(self.weights, providers, self.local, STREAM)


def instead_of_training(learner: Learner, before: Callable[[], object], after: Callable[[], object]) -> None:
    """Have something called before and after each training of a learner."""
    train = learner.train

    def trained(*arguments: object, **named: object) -> Trained:
        before()
        found = train(*arguments, **named)  # type: ignore[arg-type]
        after()
        return found

    learner.train = trained  # type: ignore[method-assign]


def nothing() -> None:
    pass


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("providers")]


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize(
    ("local", "compute"),
    [
        (LOCAL, None),
        (LOCAL, Compute(micro_batch_size=1, checkpoint_activations=True)),
        (LocalTraining(optimizer="sgd", momentum=0.9, learning_rate=0.1, batch_size=2, epochs=2), None),
        (LOCAL.model_copy(update={"schedule": "linear", "max_gradient_norm": 0.5}), None),
    ],
    ids=["adamw", "checkpointed micro-batches", "momentum", "schedule"],
)
def test_changes_are_those_of_one_device_to_the_bit_and_in_the_order_of_the_providers(
    base: Path, data: Path, devices: int, local: LocalTraining, compute: Compute | None
) -> None:
    both = Both(base, data, devices, local=local, compute=compute)
    found, expected = list(both.changes()), list(both.changes(both.one))
    assert len(found) == len(RAGGED)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert all(change.norm() > 0 for name, change in zip(RAGGED, expected, strict=True) if name != "ghost")


def test_adapters_train_in_the_same_stacks_to_the_bit(base: Path, data: Path) -> None:
    local = LOCAL.model_copy(update={"providers_at_once": 3})
    both = Both(base, data, local=local, lora=LoRA(rank=2))
    found, expected = list(both.changes()), list(both.changes(both.one))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_where_stacks_are_smaller_for_several_devices_changes_differ_by_rounding(
    base: Path, data: Path, devices: int
) -> None:
    both = Both(base, data, devices, local=LOCAL.model_copy(update={"adam_epsilon": 1e-3}), lora=LoRA(rank=2))
    found, expected = list(both.changes()), list(both.changes(both.one))
    assert len(found) == len(RAGGED)
    for name, one, other in zip(RAGGED, found, expected, strict=True):
        assert name == "ghost" or distance(one, other) < 1e-5


@pytest.mark.parametrize(
    ("at_once", "sizes"), [(1, [1] * 6), (2, [2, 2, 2]), (3, [3, 3]), (4, [3, 3]), (100, [3, 3])]
)
def test_devices_have_as_many_stacks_each(base: Path, data: Path, at_once: int, sizes: list[int]) -> None:
    local = LOCAL.model_copy(update={"providers_at_once": at_once})
    both = Both(base, data, local=local, lora=LoRA(rank=2))
    assert sorted(len(part) for part in both.several._parts(RAGGED, local)) == sorted(sizes)


def test_a_client_without_providers_or_examples_changes_nothing(base: Path, data: Path) -> None:
    for lora in (None, LoRA(rank=2)):
        both = Both(base, data, lora=lora)
        assert list(both.changes(providers={})) == []
        (change,) = both.changes(providers={"ghost": []})
        assert torch.equal(change, torch.zeros_like(both.weights))


def test_devices_beyond_the_number_of_providers_stay_idle(base: Path, data: Path) -> None:
    both, used = Both(base, data, 4), list[int]()
    for number, learner in enumerate(both.learners):
        instead_of_training(learner, partial(used.append, number), nothing)
    providers = {"a": [0, 1], "b": [2]}
    found = list(both.changes(providers=providers))
    assert len(used) == 2
    for one, other in zip(found, both.changes(both.one, providers), strict=True):
        assert torch.equal(one, other)


def test_all_devices_train_at_once(base: Path, data: Path) -> None:
    both = Both(base, data, 3)
    # Which lets nobody on before all three are there.
    together = threading.Barrier(3)
    for learner in both.learners:
        instead_of_training(learner, partial(together.wait, ENDS_WITHIN_S), nothing)
    assert len(list(both.changes())) == len(RAGGED)


def test_a_device_that_is_done_begins_the_next_provider_while_another_still_trains(
    base: Path, data: Path
) -> None:
    both, done = Both(base, data), list[int]()
    twice = Event()

    def count(number: int) -> None:
        done.append(number)
        if done == [number] * 2:
            twice.set()

    # Whichever device has the first provider waits until the other one is done with the next two.
    first = threading.Lock()
    for number, learner in enumerate(both.learners):
        instead_of_training(
            learner,
            lambda: first.acquire(blocking=False) and twice.wait(ENDS_WITHIN_S),
            partial(count, number),
        )
    found, expected = list(both.changes()), list(both.changes(both.one))
    assert done[0] == done[1] != done[2]
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_no_more_updates_wait_at_a_device_than_it_may_keep(base: Path, data: Path) -> None:
    both, kept = Both(base, data), [0, 0]
    begun: list[int] = []
    too_many, released, first = Event(), Event(), threading.Lock()

    def begin(number: int) -> None:
        begun.append(number)
        if first.acquire(blocking=False):
            released.wait(ENDS_WITHIN_S)
        elif begun.count(number) > WAITING + 1 and not released.is_set():
            too_many.set()

    def end(number: int) -> None:
        kept[number] += 1
        if kept[number] == WAITING + 1:
            # Long enough for this thread to begin another, which it must not.
            threading.Timer(0.2, released.set).start()

    for number, learner in enumerate(both.learners):
        instead_of_training(learner, partial(begin, number), partial(end, number))
    assert len(list(both.changes(providers={str(n): [n] for n in range(8)}))) == 8
    assert not too_many.is_set()


def test_an_update_is_freed_when_the_caller_lets_go_of_it(base: Path, data: Path) -> None:
    changes = Both(base, data).changes()
    change = next(changes)
    known = weakref.ref(change)
    del change
    assert known() is None
    changes.close()  # type: ignore[attr-defined]


def test_an_error_of_a_training_comes_in_the_place_of_its_change(base: Path, data: Path) -> None:
    both, seen = Both(base, data), list[Tensor]()
    expected = list(both.changes(both.one))
    providers = RAGGED | {"c": [4, 999]}
    before = torch.get_rng_state()
    with pytest.raises(KeyError, match="999"):  # noqa: PT012 - what came before it is compared
        for change in both.changes(providers=providers):
            seen.append(change)
    assert len(seen) == 3
    assert all(torch.equal(one, other) for one, other in zip(seen, expected, strict=False))
    assert threads() == []
    assert torch.equal(torch.get_rng_state(), before)
    # The next call is none the worse for it.
    assert all(torch.equal(one, other) for one, other in zip(both.changes(), expected, strict=True))


def test_an_iterator_that_is_closed_early_leaves_no_thread(base: Path, data: Path) -> None:
    both = Both(base, data)
    expected, before = list(both.changes(both.one)), torch.get_rng_state()
    changes = both.changes()
    assert torch.equal(next(changes), expected[0])
    assert threads() != []
    changes.close()  # type: ignore[attr-defined]
    assert threads() == []
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one, other) for one, other in zip(both.changes(), expected, strict=True))


def leave(base: Path, data: Path) -> None:
    """End this process while it holds an iterator that was neither used up nor closed."""
    left.append(Both(base, data).changes(providers={str(number): [number] for number in range(12)}))
    next(left[0])


left: list[Iterator[Tensor]] = []


def test_a_process_ends_where_an_iterator_was_neither_used_up_nor_closed(base: Path, data: Path) -> None:
    process = server.Process(target=leave, args=(base, data))
    process.start()
    process.join(ENDS_WITHIN_S)
    ended = process.exitcode
    process.kill()
    assert ended == 0


def test_the_generator_of_the_cpu_goes_on_as_before(base: Path, data: Path) -> None:
    both = Both(base, data, local=LOCAL.model_copy(update={"max_steps": 1}))
    in_second, first_ended, first = Event(), Event(), threading.Lock()

    def step(learner: Learner) -> None:
        """The training that began first ends first, when the second one has seeded the generator as well."""
        backward = learner._backward

        def computed(batch: Sequence[int]) -> Tensor:
            if first.acquire(blocking=False):
                in_second.wait(ENDS_WITHIN_S)
            else:
                in_second.set()
                first_ended.wait(ENDS_WITHIN_S)
            return backward(batch)

        learner._backward = computed

    for learner in both.learners:
        step(learner)
        instead_of_training(learner, nothing, first_ended.set)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert len(list(both.changes(providers={"a": [0], "b": [1]}))) == 2
    assert torch.equal(torch.rand(3), expected)


def test_where_masks_are_drawn_on_the_cpu_providers_train_one_after_another(base: Path, data: Path) -> None:
    both, used = Both(base, data, dropout=True), list[int]()
    assert "dropout" in why_one_by_one(both.model, LOCAL)
    for number, learner in enumerate(both.learners):
        instead_of_training(learner, partial(used.append, number), nothing)
    found = list(both.changes())
    assert used == [0] * len(RAGGED)
    assert all(torch.equal(one, other) for one, other in zip(found, both.changes(both.one), strict=True))
    without = list(Both(base, data).changes())
    assert distance(found[0], without[0]) > 1e-3


def test_plug_ins_see_one_provider_after_another(base: Path, data: Path) -> None:
    local = LOCAL.model_copy(update={"hook": FedProx()})
    both, used = Both(base, data, local=local), list[int]()
    assert "local.hook fedprox" in why_one_by_one(both.model, local)
    assert why_one_by_one(both.model, LOCAL) == ""
    for number, learner in enumerate(both.learners):
        instead_of_training(learner, partial(used.append, number), nothing)
    assert len(list(both.changes())) == len(RAGGED)
    assert used == [0] * len(RAGGED)


def test_training_on_all_examples_and_gradients_stay_on_the_first_device(base: Path, data: Path) -> None:
    both = Both(base, data)
    assert both.several.device == CPU
    assert both.several.tensors is both.model.tensors
    change = both.several.train(both.weights, range(12), LOCAL, STREAM).change
    assert torch.equal(change, both.one.train(both.weights, range(12), LOCAL, STREAM).change)
    gradient = both.several.gradient(both.weights, range(12), 5)
    assert torch.equal(gradient, both.one.gradient(both.weights, range(12), 5))
