"""Training of the full-size VT5 with random weights, measured in a process of its own: run as a program.

`products` is a client's step of full/fedavg, `dp` a round of full/fl-provider-dp-epsilon-8. Each prints its figures as
JSON.
"""

import json
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from starter_kit.dp.keystream import Keystream
from starter_kit.dp.noise import with_gaussian_noise
from starter_kit.federation.rounds import Server
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner, LocalTraining
from starter_kit.learning.stacking import make_learner
from starter_kit.methods.fl_provider_dp import ProviderDP, Settings
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import in_process
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from tests.benchmarks.floors import beside_products, operation_seconds
from tests.studies.rehearsal.inputs import CLIENTS, PROVIDERS, Shape, make_base, make_data

SHAPE = Shape(clients=2, providers=4, pages=8, questions=20)


def make_inputs(folder: Path, *, tiny: bool = False) -> None:
    """Write data and base weights into `folder`."""
    make_data(folder / "data", SHAPE)
    make_base(folder / "base", tiny=tiny)


def products(folder: Path, batch: int) -> dict[str, object]:
    """A client's step on `batch` questions: how long it takes, and its matrix products alone.

    It is what a second step adds to a first one: a client writes and reads the weights once for thousands of steps.
    """
    setup = _setup("full/fedavg", folder, [f"local.batch_size={batch}", "compute.micro_batch_size=2"])
    learner, local = _learner(setup, range(2 * batch))
    learner.train(setup.model.start, [0], local, setup.stream)
    one, two = (
        operation_seconds(
            partial(learner.train, setup.model.start, range(steps * batch), local, setup.stream)
        )
        for steps in (1, 2)
    )
    seconds = {name: each - one.get(name, 0.0) for name, each in two.items()}
    others = beside_products(seconds)
    return {
        "step_s": sum(seconds.values()),
        "products_s": sum(seconds.values()) - sum(others.values()),
        "others_s": dict(list(others.items())[:8]),
    }


def dp(folder: Path, batch: int) -> dict[str, object]:
    """Two rounds of a few providers, who take a step on two questions: the memory of the second one, and the time of a
    provider's parts."""
    changes = ["local.batch_size=2", "local.max_steps=1", "compute.micro_batch_size=1", "rounds=2"]
    setup = _setup(
        "full/fl-provider-dp-epsilon-8",
        folder,
        [*changes, "sampling.client_rate=1.0", "sampling.provider_rate=0.5"],
    )
    method = setup.method
    assert isinstance(method, ProviderDP)
    with in_process(setup, Watcher()) as engine:
        server = Server(method, engine, setup.aggregation, setup.stream, needs_all=True)
        weights = server.round(1, setup.model.start).weights
        Path("/proc/self/clear_refs").write_text("5")
        server.round(2, weights)
        peak = _status_bytes("VmHWM")
    return {
        "trained": len(weights),
        "model_bytes": 4 * setup.model.parameters,
        "peak_bytes": peak,
        "providers_a_round": _providers_a_round(),
        **_parts(setup, method, batch),
    }


def _providers_a_round() -> float:
    """How many providers train in a round of the config on the published data, on average."""
    settings = load_settings("full/fl-provider-dp-epsilon-8")
    assert isinstance(settings, Settings)
    sampling = settings.sampling.fitted(dict.fromkeys(range(CLIENTS), PROVIDERS // CLIENTS))
    return sampling.expected_providers(dict.fromkeys(range(CLIENTS), PROVIDERS // CLIENTS))


def _parts(setup: RunSetup, method: ProviderDP, questions: int) -> dict[str, float]:
    """The CPU time of training a provider with so many questions, in one step, and of what privacy adds to it."""
    learner, local = _learner(setup, range(questions))
    local = local.model_copy(update={"batch_size": questions})
    start = setup.model.start
    total = torch.zeros_like(start)
    began = time.process_time()
    change = learner.train(start, list(range(questions)), local, setup.stream).change
    trained = time.process_time()
    clipped = method.noise.clip(change)
    assert clipped is not None
    total += clipped
    summed = time.process_time()
    with_gaussian_noise(torch.zeros(len(start)), 1.0, 2.0**-20, Keystream())
    return {
        "train_s": trained - began,
        "clip_and_sum_s": summed - trained,
        "noise_s": time.process_time() - summed,
    }


def _setup(config: str, folder: Path, changes: Sequence[str]) -> RunSetup:
    return RunSetup(load_settings(config, changes), data=folder / "data", base=folder / "base")


def _learner(setup: RunSetup, examples: Sequence[int]) -> tuple[Learner, LocalTraining]:
    assert isinstance(setup.settings, LocalTrainingSettings)
    documents = Documents(
        setup.model,
        setup.tokenizer,
        setup.dataset,
        examples=examples,
        max_input_tokens=setup.max_input_tokens,
        on_page=lambda done, total: None,
        compute=setup.settings.compute,
    )
    local = setup.settings.local
    return make_learner(setup.model, documents, local), local


def _status_bytes(key: str) -> int:
    (found,) = re.findall(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found) * 1024


if __name__ == "__main__":
    print(json.dumps({"products": products, "dp": dp}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))))
