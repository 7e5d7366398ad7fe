"""The forecast of a run: set up as for training, with one step measured and nothing written."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import torch
from pydantic import TypeAdapter

from evaluator.accounting import official
from evaluator.accounting.calibration import noise_multiplier_for
from evaluator.docvqa.inference import Budget
from evaluator.mechanisms.mechanism import SamplingRule
from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.dp.clipping import clip
from starter_kit.dp.guarantee import accounting_problems
from starter_kit.learning.local_training import Learner, LocalTraining
from starter_kit.learning.pacing import steps_of
from starter_kit.learning.page_features import row_bytes
from starter_kit.learning.stacking import StackedLearner, bytes_saved, make_learner
from starter_kit.memory import forget_peak, host_bytes, peak_bytes, synchronize
from starter_kit.runs.forecast import (
    ACTIVATIONS,
    ACTIVATIONS_OF_PARTS,
    FLOAT,
    ROUND_VECTORS,
    TEXT_BYTES,
    Disk,
    Forecast,
    Memory,
    Privacy,
    Room,
    Timing,
    Traffic,
    shampoo_bytes,
)
from starter_kit.runs.progress import Watcher
from starter_kit.runs.results import scored_questions
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.run_settings import LocalTrainingSettings
from starter_kit.settings.track_rules import DELTA, MAX_ROUNDS, RULE

# Vectors in memory at once: the model, a message of it, an update, its clipped form, the sum, and a message of that.
VECTORS = 6
# More of them while an update is clipped, when a step's tensors are gone: the update, and its clipped form.
CLIPPING_VECTORS = 2
# Different numbers in the update whose message is measured.
DRAWN = 1 << 20
# Providers whose training is measured.
MEASURED_PROVIDERS = 4


def forecast(setup: RunSetup, out: Path, budgets: Sequence[float], *, measure: bool = True) -> Forecast:
    """Return what the run of `setup` will take.

    Args:
        out: Where the run folder would be.
        budgets: The values of ε for which there are boards.
        measure: Whether to time a step, which reads the pages of a batch and trains on it.

    Raises:
        ProblemError: A page can't be read, or the accountants don't cover the settings.
    """
    # Before the step: what a step took isn't all given back, and messages are as large as the model.
    traffic = _traffic(setup)
    measured = _Measured(setup) if measure else None
    pages = len(setup.dataset.pages)
    vector = FLOAT * setup.model.tensors.size
    on_device = setup.guarantee is not None and setup.model.device.type != "cpu"
    return Forecast(
        experiment=setup.settings.experiment,
        method=setup.settings.method,
        parameters=setup.model.parameters,
        trained=setup.model.tensors.size,
        traffic=traffic,
        privacy=_privacy(setup, budgets),
        memory=Memory(
            model_bytes=FLOAT * setup.model.parameters,
            gradient_bytes=vector,
            optimizer_bytes=setup.optimizer_bytes,
            preconditioners_bytes=_preconditioners_bytes(setup),
            activations_bytes=measured.activations_bytes if measured else 0,
            vectors_bytes=VECTORS * vector,
            # Between rounds they are in files.
            states_bytes=setup.plan.clients_in_a_round * _state_bytes(setup),
            texts_bytes=TEXT_BYTES * pages,
            round_bytes=ROUND_VECTORS * vector if on_device else 0,
            clipping_bytes=CLIPPING_VECTORS * vector if on_device else 0,
        ),
        timing=_timing(setup, measured, pages) if measured else None,
        disk=Disk(
            features_bytes=pages * row_bytes(setup.model, setup.settings.compute.features),
            run_bytes=_run_bytes(setup),
        ),
        room=_room(setup, out),
        device_peak_bytes=measured.peak_bytes if measured else None,
    )


def as_values(found: Forecast, changes: Sequence[str]) -> dict[str, object]:
    """Return the forecast as plain values, for JSON."""
    return {
        "forecast": TypeAdapter(Forecast).dump_python(found, mode="json"),
        "changes": list(changes),
        "bytes_expected": found.traffic.expected_bytes,
        "bytes_most": found.traffic.most_bytes,
        "step_bytes": found.memory.step_bytes,
        "host_bytes": found.host_bytes,
        "device_bytes": None if found.room.device is None else found.memory.device_bytes,
    }


def micro_batch_size(setup: RunSetup) -> int:
    """Return how many examples pass through the model at once."""
    local = _local(setup)
    batch = local.batch_size if local else 1
    return min(batch, setup.settings.compute.micro_batch_size or batch)


def _local(setup: RunSetup) -> LocalTraining | None:
    return setup.settings.local if isinstance(setup.settings, LocalTrainingSettings) else None


def _gradients(setup: RunSetup) -> LocalTraining:
    """Return the steps of a method that trains nothing locally and computes gradients, of single questions unless its
    settings have a batch size."""
    return LocalTraining(learning_rate=1e-9, batch_size=getattr(setup.settings, "batch_size", 1))


def _traffic(setup: RunSetup) -> Traffic:
    """The bytes of the run: those of messages of the vector's size, and what secure aggregation adds to them."""
    wire = setup.wire
    start = wire.start
    # Other numbers than zeros, since the size may depend on them. Drawing each takes seconds for hundreds of millions.
    drawn = torch.randn(min(len(start), DRAWN), generator=torch.Generator().manual_seed(0))
    update = drawn.repeat(-(-len(start) // len(drawn)))[: len(start)]
    added = round(
        (setup.bits_per_parameter - (wire.codec.bits_per_parameter or 0.0)) * setup.model.tensors.size / 8
    )
    return Traffic(
        rounds=setup.rounds,
        first_bytes=len(wire.pack_model(wire.start)) + added,
        down_bytes=len(wire.pack_model(wire.start + update)) + added,
        up_bytes=len(wire.pack_update(update)) + added,
        clients=_clients_in_a_round(setup),
        most_clients=setup.plan.clients_in_a_round,
    )


def _privacy(setup: RunSetup, budgets: Sequence[float]) -> Privacy | None:
    guarantee, terms = setup.guarantee, setup.record_terms
    if guarantee is None:
        return None
    if terms is None:
        epsilon = guarantee.epsilon(setup.rounds)
        return Privacy(guarantee.unit, guarantee.delta, epsilon, None, None, recorded=False, needed={})
    rounds = min(setup.settings.rounds, MAX_ROUNDS)
    with accounting_problems():
        found = {
            rule: official.epsilon(events, DELTA)
            for rule, events in terms.mechanism.releases(setup.rounds).items()
        }
        epsilon = found[RULE]
        needed = {
            budget: noise_multiplier_for(
                terms.mechanism, epsilon=budget, delta=DELTA, rounds=rounds, rule=RULE
            )
            for budget in budgets
            if epsilon > budget * (1 + 1e-9)
        }
    return Privacy(
        unit=guarantee.unit,
        delta=DELTA,
        epsilon=epsilon,
        product=found[SamplingRule.PRODUCT],
        noise_multiplier=terms.mechanism.noise.multiplier,
        recorded=True,
        needed=needed,
        claimed=guarantee.epsilon(setup.rounds),
        rule=getattr(setup.settings, "sampling_rule", RULE),
        claimed_delta=guarantee.delta,
        rounds=setup.rounds,
    )


def _timing(setup: RunSetup, measured: "_Measured", pages: int) -> Timing:
    steps, providers = _work(setup)
    return Timing.of(
        steps,
        providers,
        setup.rounds,
        step_s=measured.step_s,
        provider_s=measured.provider_s if providers else 0.0,
        pages_s=measured.page_s * pages,
        scoring_s=measured.question_s * scored_questions(setup),
    )


def _work(setup: RunSetup) -> tuple[float, float]:
    """How many steps a round has, and how many updates that are clipped one by one, each on average."""
    local, clients, terms = _local(setup) or _gradients(setup), setup.clients, setup.record_terms
    taking_part = _clients_in_a_round(setup)
    if terms is None:
        return taking_part * _mean([steps_of(len(client.examples), local) for client in clients]), 0.0
    sampled = [terms.mechanism.sampling.providers(len(client.providers)).mean for client in clients]
    steps = [
        _mean([steps_of(len(examples), local) for examples in client.providers.values()])
        for client in clients
    ]
    total = taking_part * _mean([count * each for count, each in zip(sampled, steps, strict=True)])
    return total, taking_part * _mean(sampled)


def _clients_in_a_round(setup: RunSetup) -> float:
    """How many clients take part in a round, on average."""
    terms = setup.record_terms
    if terms:
        return terms.mechanism.sampling.clients(len(setup.clients)).mean
    return float(getattr(setup.settings, "client_rate", 1.0) * setup.plan.clients_in_a_round)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _shapes(setup: RunSetup) -> list[Sequence[int]]:
    return [list(parameter.shape) for parameter in setup.model.tensors.parameters.values()]


def _preconditioners_bytes(setup: RunSetup) -> int:
    local = _local(setup)
    return shampoo_bytes(_shapes(setup)) if local and local.optimizer == "shampoo" else 0


def _state_bytes(setup: RunSetup) -> int:
    """What a client stores: preconditioners, what a codec left out, and the vectors of the method."""
    codec = setup.wire.codec
    vectors = setup.settings.client_vectors
    if isinstance(codec, CodecPlugin) and codec.keeps_state:
        vectors += len(setup.wire.start) // setup.model.tensors.size
    return vectors * FLOAT * setup.model.tensors.size + _preconditioners_bytes(setup)


def _run_bytes(setup: RunSetup) -> int:
    """The run folder at its largest: checkpoints, states, and what a record opens or what is saved inside a round."""
    vector, kept = FLOAT * setup.model.tensors.size, setup.settings.checkpoints
    # A new best model is written before the one before it is deleted.
    models = 1 + (setup.rounds // kept.every if kept.every else 0) + 2 * kept.best
    inside = 0
    if setup.record_terms:
        # The noised sum and the weights of every round.
        inside = 2 * setup.rounds * vector
    elif setup.guarantee is None:
        # The replies of clients, and the weights of one that trains with its optimizer's state.
        saved = vector + setup.optimizer_bytes + _preconditioners_bytes(setup)
        inside = setup.plan.clients_in_a_round * vector + saved * (kept.local_steps > 0)
    # The new state of a client is written before its earlier one is deleted.
    states = (len(setup.clients) + setup.plan.clients_in_a_round) * _state_bytes(setup)
    return models * FLOAT * setup.model.parameters + 2 * vector + states + inside


def _room(setup: RunSetup, out: Path) -> Room:
    folder = next(path for path in (out, *out.resolve().parents) if path.exists())
    return Room(memory=host_bytes(), device=setup.free_bytes, disk=shutil.disk_usage(folder).free)


class _Measured:
    """A step of the run, measured on a few providers of the data; pages and examples are drawn, and features stay in
    memory.

    Attributes:
        step_s, provider_s, activations_bytes: See `Timing` and `Memory`.
        page_s: The time of a page's image features.
        question_s: The time of scoring a question; 0 where no round is scored.
        peak_bytes: The most memory that tensors took on a GPU in the step; None on the CPU.
    """

    def __init__(self, setup: RunSetup) -> None:
        local = _local(setup) or _gradients(setup)
        self._local = local.model_copy(update={"max_steps": 1, "epochs": 1})
        self._setup = setup
        providers = self._drawn_providers(local)
        examples = [example for some in providers.values() for example in some]
        setup.set_up_process()
        began = perf_counter()
        documents = setup.documents(examples, Watcher().pages)
        pages = {setup.dataset.questions[example].page for example in examples}
        self.page_s = (perf_counter() - began) / len(pages)
        learner = make_learner(setup.model, documents, local)
        examples_at_once = micro_batch_size(setup)
        leaves_holes = (
            examples_at_once < local.batch_size and learner.device.type == "cpu" and setup.model.dropout
        )
        if isinstance(learner, StackedLearner) and setup.record_terms:
            examples_at_once *= learner.providers_at_once(local)
        of_the_longest = partial(documents.loss, [documents.longest])
        kept = bytes_saved(of_the_longest, beside=setup.model.weights) * examples_at_once
        self.activations_bytes = round((ACTIVATIONS_OF_PARTS if leaves_holes else ACTIVATIONS) * kept)
        # Before the step, which doesn't give back all memory: clipping takes two vectors of the model's size.
        self.provider_s = self._provider_s() if setup.record_terms else 0.0
        self.step_s = self._step_s(learner, providers, examples)
        self.peak_bytes = peak_bytes(learner.device)
        self.question_s = self._question_s(examples) if setup.settings.evaluate_every else 0.0

    def _drawn_providers(self, local: LocalTraining) -> dict[str, list[int]]:
        """A few providers with examples, enough of them for a batch."""
        drawn: dict[str, list[int]] = {}
        all_of = [
            (name, examples)
            for client in self._setup.clients
            for name, examples in client.providers.items()
            if examples
        ]
        self._setup.stream.at("plan").random().shuffle(all_of)
        for name, examples in all_of:
            drawn[name] = examples[: local.batch_size]
            if len(drawn) >= MEASURED_PROVIDERS and sum(map(len, drawn.values())) >= local.batch_size:
                break
        return drawn

    def _step_s(self, learner: Learner, providers: dict[str, list[int]], examples: Sequence[int]) -> float:
        """The time of a step, after one with a single example, which loads what the first step of a process needs."""
        weights = self._setup.model.start.to(learner.device)
        stream = self._setup.stream
        learner.train(weights, examples[:1], self._local, stream)
        synchronize(learner.device)
        forget_peak(learner.device)
        began = perf_counter()
        if isinstance(learner, StackedLearner) and self._setup.record_terms:
            steps = sum(1 for _ in learner.provider_changes(weights, providers, self._local, stream))
        else:
            of_a_step = sorted(providers.values(), key=len)[len(providers) // 2]
            chosen = of_a_step if self._setup.record_terms else examples[: self._local.batch_size]
            learner.train(weights, chosen, self._local, stream)
            steps = 1
        synchronize(learner.device)
        return (perf_counter() - began) / steps

    def _question_s(self, examples: Sequence[int]) -> float:
        setup = self._setup
        asked = [
            setup.dataset.questions[example] for example in examples[: Budget.of(setup.model.device).rows]
        ]
        began = perf_counter()
        setup.model.predict(setup.model.start, setup.tokenizer, setup.dataset, asked)
        return (perf_counter() - began) / len(asked)

    def _provider_s(self) -> float:
        start = self._setup.model.start.to(self._setup.model.device)
        total = torch.zeros_like(start)
        began = perf_counter()
        clipped = clip(start, 1e-3)
        if clipped is not None:
            total += clipped
        synchronize(start.device)
        return perf_counter() - began
