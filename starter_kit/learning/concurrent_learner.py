"""Training the providers of one client at once, on several devices.

Each device has a replica of the model, and batches and gradients of its own; the texts and image features of the
examples are there once. A provider goes to the next device that is free, in a thread of its own. What its training
makes of the weights depends on nothing but these, its examples and its stream, so that it is what a single device of
the same kind would make, to the bit. Changes come out in the order of the providers, whichever device was first.

Where adapters are trained, `StackedLearner` trains several providers at once, and a stack goes to one device. So that
all devices have some, stacks are smaller than they would be on a single one: changes then differ by rounding, as they
do between other numbers of `providers_at_once`.

An update is as large as what is trained. A device keeps those that it has finished until their turn comes, and begins
another part, a provider or a stack, while one of its parts waits, but not while two do.

`torch` has one generator for everything that is drawn on the CPU, and each training seeds it and puts it back
afterwards. Several at once would take numbers from each other, so that providers train one after another on the first
device where anything could draw from it (`why_one_by_one`). Where nothing does, the generator has no influence; when
all trainings have ended it is what it was before the first. A caller that draws from it in between gets no particular
numbers.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Self

import torch
from torch import Tensor

from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner, LocalTraining
from starter_kit.learning.plugins import OptimizerPlugin
from starter_kit.learning.stacking import StackedLearner, make_learner
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream

# How many finished parts may wait at a device that begins another.
WAITING = 1

# The examples of some providers, by their names.
Part = Mapping[str, Sequence[int]]


def why_one_by_one(model: TrainableModel, local: LocalTraining | None) -> str:
    """Return why providers train one after another, on the first device alone; empty where they train at once."""
    if model.dropout and model.device.type == "cpu":
        return "dropout on the CPU draws all masks from one generator"
    if local and isinstance(local.optimizer, OptimizerPlugin):
        return (
            f"local.optimizer {local.optimizer} is a plug-in, which may draw random numbers or keep something"
        )
    if local and local.hook:
        return f"local.hook {local.hook} is a plug-in, which may draw random numbers or keep something"
    return ""


class ConcurrentLearner(Learner):
    """A learner whose providers train at once, on several devices; all else is computed on the first one.

    Args:
        model: On the first device.
        documents: The training examples for it.
        local: How providers train; None where the method needs only gradients.
        devices: All of them, the first included.
    """

    def __init__(
        self,
        model: TrainableModel,
        documents: Documents,
        local: LocalTraining | None,
        devices: Sequence[torch.device],
    ) -> None:
        super().__init__(
            model.tensors, documents.loss, backward=documents.backward, prepare=documents.prepare
        )
        self._model = model
        replicas = [model.copied_to(device) for device in devices[1:]]
        self._learners = [
            make_learner(model, documents, local),
            *(make_learner(replica, documents.for_model(replica), local) for replica in replicas),
        ]

    def provider_changes(
        self, weights: Tensor, providers: Mapping[str, Sequence[int]], local: LocalTraining, stream: Stream
    ) -> Iterator[Tensor]:
        """Yield the change (d,) that each provider's own training from `weights` (d,) makes, in their order.

        An error in a training is raised in the place of its change. When the iterator ends, also early, no thread is
        left: the trainings that have begun by then are waited for.
        """
        if why_one_by_one(self._model, local):
            return self._learners[0].provider_changes(weights, providers, local, stream)
        return self._at_once(weights, providers, local, stream)

    def _at_once(
        self, weights: Tensor, providers: Part, local: LocalTraining, stream: Stream
    ) -> Iterator[Tensor]:
        generator = torch.get_rng_state()
        try:
            # Here, not in the threads, so that a device has the weights once.
            devices = [_Device(learner, weights.to(learner.device)) for learner in self._learners]
            parts = self._parts(providers, local)
            with _Trainings(devices, parts, local, stream) as trainings:
                for _ in parts:
                    changes = trainings.next()
                    while changes:
                        # As large as all weights: nothing here holds it while the caller has it.
                        yield changes.popleft().to(weights.device)
        finally:
            torch.set_rng_state(generator)

    def _parts(self, providers: Part, local: LocalTraining) -> list[Part]:
        """Divide the providers into parts for one device each, as large as on a single device, or smaller where the
        devices would not all have as many."""
        first, devices, at_once = self._learners[0], len(self._learners), 1
        if isinstance(first, StackedLearner) and any(providers.values()):
            at_once = first.providers_at_once(local)
        count = -(-len(providers) // (at_once * devices)) * devices
        size = max(1, -(-len(providers) // max(1, count)))
        names = list(providers)
        return [
            {name: providers[name] for name in names[start : start + size]}
            for start in range(0, len(names), size)
        ]


@dataclass
class _Device:
    """A device, as its learner, with the weights that providers begin with.

    Attributes:
        waiting: How many finished parts wait here.
        busy: Whether a thread works for it.
    """

    learner: Learner
    weights: Tensor
    waiting: int = 0
    busy: bool = False

    def train(self, part: Part, local: LocalTraining, stream: Stream) -> deque[Tensor]:
        """Return the change (d,) of each provider, on this device."""
        with self._as_current():
            return deque(self.learner.provider_changes(self.weights, part, local, stream))

    def _as_current(self) -> AbstractContextManager[object]:
        device = self.learner.device
        return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


class _Trainings:
    """The trainings of some parts, which devices begin in their order. They end with the context.

    A thread never waits for another one: it ends where its device has no more to do, and `next` starts one again. So a
    process can end even where an iterator of changes was neither used up nor closed.
    """

    def __init__(
        self, devices: Sequence[_Device], parts: Sequence[Part], local: LocalTraining, stream: Stream
    ) -> None:
        self._devices = devices
        self._local = local
        self._stream = stream
        self._lock = Lock()
        self._results: deque[Future[tuple[_Device, deque[Tensor]]]] = deque(Future() for _ in parts)
        self._left = deque(zip(parts, self._results, strict=True))
        self._threads = ThreadPoolExecutor(len(devices), "providers")

    def __enter__(self) -> Self:
        self._start_threads()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._left.clear()
        self._threads.shutdown()

    def next(self) -> deque[Tensor]:
        """Return the changes (d,) of the next part, on its device, once they are there.

        Raises:
            Exception: What its training raised.
        """
        device, changes = self._results.popleft().result()
        with self._lock:
            device.waiting -= 1
        self._start_threads()
        return changes

    def _start_threads(self) -> None:
        with self._lock:
            for device in self._devices:
                if not device.busy and self._left and device.waiting <= WAITING:
                    device.busy = True
                    self._threads.submit(self._work, device)

    def _work(self, device: _Device) -> None:
        """Train parts on the device for as long as there are some, and no more than `WAITING` wait."""
        while begun := self._begin(device):
            part, result = begun
            try:
                changes = device.train(part, self._local, self._stream)
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                with self._lock:
                    # Nobody gets as far as the parts after it.
                    self._left.clear()
                result.set_exception(error)
            else:
                with self._lock:
                    device.waiting += 1
                result.set_result((device, changes))

    def _begin(self, device: _Device) -> tuple[Part, Future[tuple[_Device, deque[Tensor]]]] | None:
        """Return the part that the device begins now; None if there is none for it."""
        with self._lock:
            device.busy = bool(self._left) and device.waiting <= WAITING
            return self._left.popleft() if device.busy else None
