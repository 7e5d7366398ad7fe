"""Training and scoring where a GPU would be: no tensor of the CPU meets one of the device, and the host rarely waits.

What waits is once a training, a round or a run; `WAITS` says why. The results are the CPU's but for rounding.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import Answerer, Prediction, predict
from evaluator.docvqa.loading import shards
from evaluator.docvqa.reference import open_reference
from starter_kit.compression.lora import LoRA
from starter_kit.learning.compute import Compute
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.training import train
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from starter_kit.site.credentials import Credentials
from tests.simulated_device import DeviceTensor, Watch, device
from tests.starter_kit.learning.test_compute import ALL, LOCAL, STREAM, Steps
from tests.starter_kit.training_runs import KEY, RUN_TOKEN

# Functions in which the host may wait for a GPU, and why there.
WAITS = {
    "TrainableTensors.read": "the model's change leaves for the server",
    "TrainableTensors.take_gradient": "a gradient leaves for the server",
    "Learner.train": "the mean loss of a training that has ended",
    "TrainableModel.page_features": "features of 64 pages are stored",
    "Shampoo.export_state": "a client's state is stored",
    "slope": "the two losses that are a client's whole message",
    "_norm": "the norm of an update that is clipped",
    "AdaptiveClipping.client_update": "the sum of a client's updates leaves for the server",
    "ProviderDP.client_update": "the sum of a client's updates leaves for the server",
    "write_safetensors": "the checkpoint is written",
    "write_adapter": "the adapters are written",
    "_on_cpu": "the adapters are merged, in float64 on the CPU",
}
METHODS: dict[str, list[str]] = {
    "fedavg": [],
    "fl-provider-dp": [],
    "client-dp": [],
    "lora": [],
    "dp-lora": [],
    "dp-clgecl": [],
    "fedshampoo": [],
    "fedkseed": ["codec={type: kseed, seeds: 16}"],
    "laplace-fedavg": [],
    "laplace-iadmm": [],
    "plugins/adaptive-clipping": [],
    "plugins/fedprox": [],
}


@dataclass(frozen=True)
class Seen:
    """What came of something on the device, and how often the host waited for it."""

    result: Tensor
    waits: Counter[str]
    unpinned: Counter[str]

    @classmethod
    def of(cls, result: Tensor, watch: Watch) -> "Seen":
        held = result.held if isinstance(result, DeviceTensor) else result
        return cls(held, watch.waits, watch.unpinned)


@pytest.fixture(scope="module")
def run_alone() -> Iterator[Callable[..., object]]:
    """Calls a function in a process that knows the device from its beginning."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_start) as process:
        yield lambda function, *args: process.submit(function, *args).result()


def _start() -> None:
    torch.set_num_threads(1)
    with device():
        pass


def _trained(base: Path, data: Path, lora: LoRA | None, compute: Compute) -> Seen:
    with device() as (place, watch):
        steps = Steps(base, data, lora=lora, device=place, settings=compute)
        weights = steps.model.start.to(place)
        # Whether a step fits is tried as in a private run.
        steps.documents.fit(2, beside_bytes=1000)
        steps.model.tensors.write(weights)
        watch.waits.clear()
        watch.unpinned.clear()
        return Seen.of(steps.learner.train(weights, ALL, LOCAL, STREAM).change, watch)


@pytest.mark.parametrize("lora", [None, LoRA()], ids=["whole", "adapters"])
@pytest.mark.parametrize(
    "compute",
    [
        pytest.param(Compute(), marks=pytest.mark.slow),
        Compute(micro_batch_size=2, features="float16"),
    ],
    ids=["exact", "in parts"],
)
def test_steps_never_wait_but_for_the_last_loss(
    run_alone: Callable[..., Seen], base: Path, data: Path, lora: LoRA | None, compute: Compute
) -> None:
    seen = run_alone(_trained, base, data, lora, compute)
    assert seen.waits == {"Learner.train": 1}
    assert not seen.unpinned
    expected = Steps(base, data, lora=lora, settings=compute).change()
    assert float((seen.result - expected).norm() / expected.norm()) < 1e-3


def _run(config: str, base: Path, data: Path, out: Path) -> Seen:
    changes = ["rounds=1", "max_input_tokens=32", *METHODS[config]]
    if isinstance(load_settings(config), LocalTrainingSettings):
        # How many fit into a GPU's memory isn't simulated.
        changes += ["local.max_steps=1", "local.providers_at_once=2"]
    with device() as (place, watch):
        train(
            load_settings(config, changes).model_copy(update={"device": str(place)}),
            data=data,
            base=base,
            out=out,
            track="track-2",
            credentials=lambda: Credentials(KEY, RUN_TOKEN),
            watcher=Watcher(),
            resume=False,
        )
        return Seen(torch.zeros(0), watch.waits, watch.unpinned)


@pytest.mark.parametrize("config", METHODS)
def test_a_run_of_each_method_waits_where_it_must(
    run_alone: Callable[..., Seen], base: Path, data: Path, tmp_path: Path, config: str
) -> None:
    seen = run_alone(_run, config, base, data, tmp_path / "run")
    assert RunFolder(tmp_path / "run").files()
    assert seen.waits.keys() <= WAITS.keys()


def _predicted(base: Path, data: Path) -> tuple[list[Prediction], list[float], Seen]:
    with device() as (place, watch):
        model, tokenizer = open_reference(base)
        dataset = Dataset(data, "valid")
        answerer = Answerer(model, tokenizer, device=place)
        watch.waits.clear()
        watch.unpinned.clear()
        predictions = predict(model, tokenizer, dataset, device=place)
        seen = Seen(torch.zeros(0), Counter(watch.waits), Counter(watch.unpinned))
        return predictions, _losses(answerer, dataset), seen


def _losses(answerer: Answerer, dataset: Dataset) -> list[float]:
    plan = shards(dataset.questions, 16)
    loaded = answerer.loader(dataset, dataset.questions).load(plan)
    gold = [question.answers[0] for question in dataset.questions]
    return [
        loss
        for shard, some in zip(plan, loaded, strict=True)
        for _, _, loss in answerer.answer(some, [gold[place] for place in shard.questions])
    ]


def test_scoring_waits_once_for_each_token_of_an_answer(
    run_alone: Callable[..., tuple[list[Prediction], Sequence[float], Seen]], base: Path, data: Path
) -> None:
    predictions, losses, seen = run_alone(_predicted, base, data)
    model, tokenizer = open_reference(base)
    dataset = Dataset(data, "valid")
    expected = predict(model, tokenizer, dataset)
    assert [each.answer for each in predictions] == [each.answer for each in expected]
    assert losses == pytest.approx(_losses(Answerer(model, tokenizer), dataset), rel=1e-4)
    # 19 tokens at most, then the tokens and their probabilities.
    assert seen.waits.keys() == {"Generator.decode"}
    assert seen.waits["Generator.decode"] <= 19 + 2
    assert not seen.unpinned
