"""The setup of a run from its settings, data and base weights, on which server and clients must agree.

Every party of a federation builds its own from the same settings and base weights; only the participants read pages.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from evaluator.docvqa.manifest import manifest_sha256
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.threads import set_threads_for
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5, WEIGHTS
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.errors.codes import EXPLANATIONS
from evaluator.messages.file_hash import sha256_of
from evaluator.records.round_checks import FRAMING
from starter_kit.compression.codecs import Codec, codec
from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.console import log
from starter_kit.data.page_file import PagesOnDisk
from starter_kit.federation.auxiliary import NO_AUXILIARY
from starter_kit.federation.clients import clients_of
from starter_kit.federation.plain_aggregation import PlainAggregation
from starter_kit.federation.rounds import Aggregation, KnowsLayout, Method, Participant
from starter_kit.federation.secure_aggregation import SecureAggregation, overhead_bytes
from starter_kit.federation.wire import Wire
from starter_kit.learning.compute import Compute
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import LocalStep
from starter_kit.learning.stacking import make_learner
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.learning.training_saves import TrainingSaves
from starter_kit.memory import free_bytes
from starter_kit.plugin import reported
from starter_kit.randomness import Stream
from starter_kit.runs.forecast import FLOAT, ROUND_VECTORS, optimizer_bytes
from starter_kit.secure_aggregation.fixed_point import finest_grid
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import LocalTrainingSettings, PrivateSettings, RunSettings

# Whether torch finds a device, of the kinds that a machine may lack.
IS_THERE: dict[str, Callable[[], bool]] = {
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
}


class RunSetup:
    """One party's view of a run.

    Attributes:
        clients: The clients of the whole federation, as the method sees them.
        guarantee, record_terms, rounds: See `Plan`.
        needs_every_client: Whether a round counts only if every chosen client has answered.
        model: The model and its trained part; in memory once, even where server and clients are in one process.
        aggregation: How updates reach the server.
        free_bytes: The memory that the device had free before; None where it has none of its own.
        saves: Where long local trainings of this process are saved while they run, unless something is private; None
            for nowhere.

    Raises:
        ProblemError: The data or the base can't be read, or the settings don't fit them.
    """

    def __init__(self, settings: RunSettings, *, data: Path, base: Path) -> None:
        if settings.device in IS_THERE and not IS_THERE[settings.device]():
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="device",
                expected="cpu, because torch finds no GPU on this machine",
                found=settings.device,
                next_step="Add --set device=cpu.",
            )
        self.settings = settings
        self.saves: TrainingSaves | None = None
        self._started_from: str | None = None
        self.data = data
        self.base_folder = base
        # Before the model is there: what a run needs is compared with it.
        self.free_bytes = free_bytes(torch.device(settings.device))
        model, self.tokenizer = _open_base(base)
        _check_finite(model, base)
        self.dataset = PagesOnDisk(data, "train")
        self.plan = settings.plan(clients_of(self.dataset))
        _check_marked_private(settings, self.plan)
        self.clients = list(self.plan.clients)
        self.guarantee, self.record_terms = self.plan.guarantee, self.plan.record_terms
        _check_float64(settings, self.plan)
        self.rounds = self.plan.rounds
        self.needs_every_client = self.record_terms is not None or self.plan.needs_every_client
        if not any(client.examples for client in self.clients):
            raise ProblemError.of(
                ErrorCode.DATASET_FORMAT,
                where=f"{data}, train",
                expected="questions to train on",
                found="none",
            )
        self._check_images()
        self.stream = Stream(settings.seed)
        self.model = TrainableModel(
            model.to(settings.device),
            trainable=settings.trainable,
            frozen=settings.frozen,
            lora=settings.lora,
            dropout=settings.dropout,
            compute=self.compute,
        )
        self.wire = Wire(self._codec(), self.plan.auxiliary.appended(self.model.start))
        _check_stated_bits(self.wire, self.plan)
        if self.guarantee is None:
            self.start_from(self.public_start)
        self.method = self._fitted(self.plan.method)
        self.aggregation = self._aggregation()

    @property
    def public_start(self) -> str:
        """What the first values of adapters follow from where nothing is private, the same on every processor."""
        return f"seed {self.settings.seed}"

    @property
    def parametrization(self) -> dict[str, Any]:
        """What a record and a transcript state of the adapters."""
        lora = self.settings.lora
        return {"lora_scale": lora.scale, "parametrization": lora.type} if lora else {"lora_scale": None}

    @property
    def bits_per_parameter(self) -> float:
        """The bits per parameter of a message, including everything else that is sent with the parameters."""
        bits = self.wire.codec.bits_per_parameter or 0.0
        if isinstance(self.aggregation, SecureAggregation):
            size = self.model.tensors.size
            bits += 8 * overhead_bytes(self.plan.clients_in_a_round, size) / size
        return bits

    def _check_images(self) -> None:
        """Reject data in which a page of an example lacks its image, which is read much later, and slowly."""
        pages = {
            self.dataset.questions[example].page for client in self.clients for example in client.examples
        }
        missing = sorted(page for page in pages if not self.dataset.image_path(page).is_file())
        if missing:
            raise ProblemError.of(
                ErrorCode.DATASET_FORMAT,
                where=str(self.dataset.image_path(missing[0])),
                expected=f"the images of {len(pages):,} pages",
                found=f"{len(missing):,} are missing",
                next_step="Put them there, or import the data again with `pfl data`.",
            )

    def _codec(self) -> Codec | CodecPlugin:
        """Return the codec of the settings, for vectors of this model."""
        found = self.settings.codec
        if not isinstance(found, CodecPlugin):
            return codec(found)
        shapes = [parameter.shape for parameter in self.model.tensors.parameters.values()]
        with reported(found):
            return found.with_layout(self.plan.auxiliary.layout(shapes))

    def _fitted(self, method: Method) -> Method:
        """Return the method, with the layout of the trained vector where it asks for that.

        One that sends more than the record of its run can state is rejected.
        """
        if self.plan.auxiliary != NO_AUXILIARY and self.plan.record_terms:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="method",
                expected="messages as long as the model, as a training record has no place for auxiliary vectors",
                found=f"{self.settings.method}, which sends auxiliary vectors",
                next_step="Return a Plan without auxiliary, or without record_terms: docs/methods.md says what a "
                "record can't state.",
            )
        if isinstance(method, KnowsLayout):
            return method.with_layout(
                {name: parameter.shape for name, parameter in self.model.tensors.parameters.items()}
            )
        return method

    def start_from(self, run_token: str) -> None:
        """Let adapters start from the values that follow from a run token, as a training record requires, or a seed.

        The vector with which all parties begin changes in place, in the model and in the wire.
        """
        if self._started_from == run_token:
            return
        start, tensors = self.model.start, self.model.tensors.parameters
        first_values = self.model.adapters.start_from(run_token) if self.model.adapters else {}
        parts = torch.split(start, [parameter.numel() for parameter in tensors.values()])
        for name, part in zip(tensors, parts, strict=True):
            if name in first_values:
                part.copy_(first_values[name].reshape(-1))
        self.wire.start[: len(start)].copy_(start)
        self._started_from = run_token

    def _aggregation(self) -> Aggregation:
        secure = self.settings.secure_aggregation
        if secure is None:
            return PlainAggregation(self.wire)
        bound = secure.bound if self.plan.coordinate_bound is None else self.plan.coordinate_bound
        if bound is None:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="secure_aggregation.bound",
                expected="the largest change of a weight at one client in a round, such as 1.0",
                found=None,
            )
        try:
            finest_grid(bound, self.plan.clients_in_a_round)
        except ValueError as error:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="secure_aggregation.bound",
                expected="a bound with which sums can be added under masks",
                found=error,
            ) from error
        return SecureAggregation(self.wire, bound, secure.tolerated_losses)

    @property
    def compute(self) -> Compute:
        """How steps are computed: as the settings say, and such that a round can be replayed where that is promised."""
        compute = self.settings.compute
        is_replayed = isinstance(self.settings, PrivateSettings) and self.settings.replayable
        return compute.repeatable() if is_replayed else compute

    @property
    def max_input_tokens(self) -> int:
        """How many tokens of a question with its page are read in training."""
        return self.settings.max_input_tokens or self.model.config.max_input_tokens

    @cached_property
    def base_sha256(self) -> str:
        """The SHA-256 of the file of the base weights."""
        return sha256_of(self.base_folder / WEIGHTS)

    @cached_property
    def data_sha256(self) -> str:
        """The hash of the data manifest: see `evaluator.docvqa.manifest`."""
        return manifest_sha256(self.dataset)

    @property
    def inputs(self) -> str:
        """The SHA-256 of the inputs that the settings don't contain: the base weights, and who has which examples."""
        shares = {client.id: client.providers for client in self.clients}
        return hashlib.sha256(json.dumps([self.base_sha256, shares]).encode()).hexdigest()

    @property
    def optimizer_bytes(self) -> int:
        """The size of the optimizer's state, but for preconditioners; 0 where nothing trains locally."""
        if not isinstance(self.settings, LocalTrainingSettings):
            return 0
        local, parameters = self.settings.local, self.model.tensors.parameters.values()
        return optimizer_bytes(
            [list(each.shape) for each in parameters], str(local.optimizer), local.momentum
        )

    def set_up_process(self) -> None:
        """Have this process compute as the settings and the size of the model ask for."""
        self.compute.set_up_process()
        set_threads_for(self.model.parameters)

    def documents(self, examples: Sequence[int], on_page: Callable[[int, int], None]) -> Documents:
        """Read the pages of these examples. Raises `ProblemError` where one can't be read."""
        return Documents(
            self.model,
            self.tokenizer,
            self.dataset,
            examples=examples,
            max_input_tokens=self.max_input_tokens,
            on_page=on_page,
            compute=self.compute,
            keeps_size=self.guarantee is None,
        )

    def participant(
        self,
        on_page: Callable[[int, int], None],
        only: Collection[int] | None = None,
        on_step: Callable[[LocalStep], None] | None = None,
    ) -> Participant:
        """Read the pages of all clients, or of those whose ids are in `only`, and return their side of the run.

        Args:
            on_page: Called with the number of pages read so far, and of all pages.
            on_step: Called after each step of a local training, unless something is private.

        Raises:
            ProblemError: A page can't be read.
        """
        self.set_up_process()
        clients = [client for client in self.clients if only is None or client.id in only]
        documents = self.documents([example for client in clients for example in client.examples], on_page)
        if documents.cut:
            log(
                f"{documents.cut:,} of {len(documents):,} questions with their pages are longer than the "
                f"{self.max_input_tokens} tokens that are read of them"
            )
        if self.max_input_tokens < self.model.config.max_input_tokens:
            log(
                f"max_input_tokens is {self.max_input_tokens}, and the checkpoint will be judged with the "
                f"{self.model.config.max_input_tokens} tokens of its base weights"
            )
        local = self.settings.local if isinstance(self.settings, LocalTrainingSettings) else None
        if self.guarantee is not None and self.free_bytes is not None:
            round_bytes = ROUND_VECTORS * FLOAT * self.model.tensors.size
            # Methods without local training compute gradients of single questions.
            documents.fit(local.batch_size if local else 1, self.optimizer_bytes + round_bytes)
        learner = make_learner(self.model, documents, local)
        if self.guarantee is None:
            learner.on_step = on_step
            learner.saves = self.saves
        return Participant(
            self.method,
            clients,
            learner,
            self.aggregation,
            self.stream,
            self.plan.auxiliary,
            start_from=self.start_from,
            in_round=self.model.in_round,
        )


def _open_base(base: Path) -> tuple[VT5, Tokenizer]:
    """Open the base weights; where their file is wrong, name them rather than a checkpoint that was trained."""
    try:
        return open_reference(base)
    except ProblemError as error:
        raise ProblemError(*(_in_base(found, base / WEIGHTS) for found in error.problems)) from error


def _in_base(found: Problem, weights: Path) -> Problem:
    if not found.code.startswith("E_CHECKPOINT"):
        return found
    return found.model_copy(
        update={
            "where": found.where.replace(WEIGHTS, str(weights)) or str(weights),
            "next_step": EXPLANATIONS[ErrorCode.REFERENCE_FORMAT].next_step,
        }
    )


def _check_finite(model: torch.nn.Module, base: Path) -> None:
    """Reject weights of which one is NaN or infinite, as training can't begin from them."""
    for name, tensor in model.state_dict().items():
        if not tensor.isfinite().all():
            raise ProblemError.of(
                ErrorCode.CHECKPOINT_NOT_FINITE,
                message="The base weights hold NaN or an infinite value.",
                where=f"{base / WEIGHTS}, tensor {name}",
                next_step=EXPLANATIONS[ErrorCode.REFERENCE_FORMAT].next_step,
            )


def _check_stated_bits(wire: Wire, plan: Plan) -> None:
    """Reject a plug-in whose messages don't take the bits that a training record states of them."""
    codec, size = wire.codec, len(wire.start)
    if plan.record_terms is None or not isinstance(codec, CodecPlugin) or codec.bits_per_parameter is None:
        return
    update = torch.randn(size, generator=torch.Generator().manual_seed(0))
    stated = size * codec.bits_per_parameter / 8
    for what, message in (
        ("the first model", wire.pack_model(wire.start)),
        ("a model", wire.pack_model(wire.start + update)),
        ("an update", wire.pack_update(update)),
    ):
        if not stated - 1 < len(message) <= stated * (1 + FRAMING) + 1:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                message="A codec's messages don't take the bits that it says they do.",
                where=f"codec {codec}, bits_per_parameter",
                expected=f"messages of {codec.bits_per_parameter:g} bits for each of {size:,} numbers, and at most "
                f"{FRAMING:.0%} more",
                found=f"{what} of {len(message):,} bytes",
                next_step="Correct bits_per_parameter in its file, or what it sends: the record states one number for "
                "all messages, which check `record.bytes` compares with the log.",
            )


def _check_float64(settings: RunSettings, plan: Plan) -> None:
    """Reject an Apple GPU, which has no float64, where a method computes in it."""
    local = settings.local if isinstance(settings, LocalTrainingSettings) else None
    if settings.device == "mps" and (plan.guarantee is not None or (local and local.optimizer == "shampoo")):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="device",
            expected="cpu or cuda: this method computes in float64, which Apple's GPUs don't have",
            found=settings.device,
            next_step="Add --set device=cpu.",
        )


def _check_marked_private(settings: RunSettings, plan: Plan) -> None:
    """Reject settings that don't mark a private method as such: loggers and sweeps ask them before there is a plan."""
    if plan.guarantee is None or isinstance(settings, PrivateSettings):
        return
    parent = type(settings).__mro__[1]
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        message="A method with a guarantee must have settings of private methods.",
        where=f"method {settings.method}",
        expected="Settings derived from PrivateSettings or RecordedSettings",
        found=f"Settings derived from {parent.__module__}.{parent.__name__}",
        next_step="Derive the method's Settings from one of these two.",
    )
