"""A training run from settings to a run folder: setup, engine and recorder put together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from pydantic import ValidationError

from evaluator import evaluator_version
from evaluator.contracts import ArtifactKind, ScoringResult, TrackRules
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import predict
from evaluator.errors import ErrorCode, refuse
from evaluator.metrics import GoldAnswers
from evaluator.pipeline import Bench, Findings, score
from evaluator.records.lines import Codec, RunLine, TrainableTensor
from starter_kit.dp.guarantee import Guarantee, RecordTerms, first_problem
from starter_kit.engines.local import LocalEngine
from starter_kit.federation.rounds import AT_ITS_NODE, Engine, Round, Server
from starter_kit.reporting.metrics import RoundMetrics, RunSummary
from starter_kit.runs.provenance import code_sha256
from starter_kit.runs.recording import Recorder
from starter_kit.runs.resuming import RunState
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.watching import Watcher
from starter_kit.settings.configuration import snapshot
from starter_kit.settings.run_settings import RecordedSettings, RunSettings
from starter_kit.site.credentials import Credentials

OpenEngine = Callable[[RunSetup, Watcher], AbstractContextManager[Engine]]


@contextmanager
def in_process(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
    """All clients in this process, one after another."""
    yield LocalEngine(setup.participant(watcher.pages), watcher.client_done)


def train(
    settings: RunSettings,
    *,
    data: Path,
    base: Path,
    out: Path,
    track: str,
    credentials: Callable[[], Credentials],
    watcher: Watcher,
    resume: bool = False,
    open_engine: OpenEngine = in_process,
) -> None:
    """Train from the weights in `base` on the training split of `data`, and write the run folder `out`.

    `track` is named in the training record.

    Args:
        credentials: For the training record; asked for once, when a private run is about to begin its first round.
        resume: Go on with the unfinished run of `out`, which has the same settings.
        open_engine: Where clients run, for as long as its context is open.

    Raises:
        ProblemError: The data, the base, the settings or the output folder can't be used, a round would exceed the
            privacy budget, or training diverged.
    """
    setup = RunSetup(settings, data=data, base=base)
    _check_validation(settings, data)
    terms = setup.guarantee.record if setup.guarantee else None
    if setup.guarantee:
        setup.guarantee.epsilon(setup.rounds)  # refuses noise that bounds nothing before anything is written
    with Recorder(out, snapshot(settings), setup.inputs, resume=resume) as recorder, ExitStack() as stack:
        if recorder.complete:
            return
        if resume and terms and recorder.state is None:
            raise refuse(
                ErrorCode.RUN_FOLDER,
                where=str(out),
                expected="a private run of which a round had begun",
                found="one that was broken off before, and has no run token yet",
                next_step="Leave --resume out to begin it.",
            )
        state = recorder.state or RunState(0, setup.payload.start)
        budget = Spending(setup.guarantee, state)
        budget.check(setup.rounds)
        engine = stack.enter_context(open_engine(setup, watcher))
        _check_kept(engine, state)
        engine.states.update(state.clients)
        if terms:
            signed = credentials()
            providers = {client.id: len(client.providers) for client in setup.clients}
            claim = budget.epsilon(setup.rounds) or 0.0
            try:
                run = run_line(
                    setup, terms, claim, track=track, run_token=signed.run_token, apart=engine.apart
                )
            except ValidationError as error:
                raise refuse(
                    ErrorCode.CONFIGURATION,
                    where="the training record",
                    expected="settings that it can tell",
                    found=first_problem(error),
                ) from error
            recorder.keep_record(run, signed.key, providers)
        server = Server(
            setup.method,
            engine,
            setup.gathering,
            setup.stream,
            state.server,
            needs_all=setup.needs_every_client,
        )
        masks = settings.secure_aggregation is not None
        began = monotonic()
        watcher.begins(state.round + 1, setup.rounds, _sent_bytes(recorder.metrics))
        for number in range(state.round + 1, setup.rounds + 1):
            budget.check(number)
            recorder.begin(number, state)
            (finished,) = server.run(state.weights, [number])
            if not finished.weights.isfinite().all():
                raise refuse(
                    ErrorCode.CHECKPOINT_NOT_FINITE, where=f"the model after round {finished.number}"
                )
            state = replace(
                state, round=number, weights=finished.weights, server=server.state, clients=engine.states
            )
            spent, seconds = budget.epsilon(number), monotonic() - began
            metrics = _metrics(setup, finished, data, spent, seconds, masked=engine.apart and masks)
            recorder.round(finished, metrics, state)
            watcher.round_done(metrics)
            began = monotonic()
        with setup.payload.model_with(state.weights) as model:
            recorder.finish(model, lambda sha256: _summary(setup, recorder.metrics, state, budget, sha256))


def evaluate(
    checkpoint: Path, *, base: Path, data: Path, split: str, on_progress: Callable[[int, int], None]
) -> Findings[ScoringResult]:
    """ANLS and accuracy of a checkpoint on a split of a data folder, by the evaluator's own scoring step."""
    rules = TrackRules(reference="local", test_set="local", clients=1)
    bench = Bench({ArtifactKind.CHECKPOINT: checkpoint}, rules, reference=base, test_set=data, split=split)
    return score(bench, on_progress)


def run_line(
    setup: RunSetup,
    terms: RecordTerms,
    claimed_epsilon: float,
    *,
    track: str,
    run_token: str | None,
    apart: bool,
) -> RunLine:
    """The first line of the training record. Raises ValueError for settings that are not private.

    Args:
        apart: Whether clients run apart from the server; where they don't, secure aggregation is a simulation.
    """
    settings, guarantee = setup.settings, setup.guarantee
    if not isinstance(settings, RecordedSettings) or guarantee is None:
        raise ValueError(f"a run of {settings.method} has no training record")
    secure = "none" if settings.secure_aggregation is None else "real" if apart else "simulated"
    return RunLine(
        run_token=run_token,
        kit_version=evaluator_version(),
        code_sha256=code_sha256(snapshot(settings)),
        track=track,
        method=settings.method,
        unit=guarantee.unit,
        delta=guarantee.delta,
        clients=len(setup.clients),
        sampling=terms.sampling,
        clip_norm=terms.clip_norm,
        noise=terms.noise.model_copy(update={"secure_aggregation": secure}),
        normaliser=terms.normaliser,
        server=terms.server,
        codec=Codec(name=settings.codec, bits_per_parameter=setup.bits_per_parameter),
        rounds=setup.rounds,
        base_sha256=setup.base_sha256,
        trainable=[
            TrainableTensor(name=name, shape=list(parameter.shape))
            for name, parameter in setup.payload.tensors.parameters.items()
        ],
        tuning=settings.tuning,
        validation_on_private_data=settings.validation_on_private_data,
        claimed_epsilon=claimed_epsilon,
    )


@dataclass(frozen=True)
class Spending:
    """ε of a run as it goes on: of its rounds, and of those that were broken off where anything of them was seen."""

    guarantee: Guarantee | None
    state: RunState

    def check(self, round_number: int) -> None:
        """Raises `ProblemError` (`E_PRIVACY_BUDGET`) for a round that would exceed the budget."""
        if self.guarantee:
            self.guarantee.check_before(round_number + self._broken)

    def epsilon(self, rounds: int) -> float | None:
        return self.guarantee.epsilon(rounds + self._broken) if self.guarantee else None

    @property
    def _broken(self) -> int:
        return self.state.broken_rounds if self.guarantee and self.guarantee.seen_by_server else 0


def _metrics(
    setup: RunSetup, finished: Round, data: Path, epsilon: float | None, seconds: float, *, masked: bool
) -> RoundMetrics:
    """A round's numbers; of a private run, only those that don't follow from who took part.

    Args:
        masked: Whether clients run apart and tell the server nothing but sums.
    """
    private = epsilon is not None
    anls, accuracy = _validate(setup, finished, data)
    return RoundMetrics(
        round=finished.number,
        clients=len(finished.clients),
        providers=None if private or masked else sum(finished.sampled.values()),
        bytes_down=finished.bytes_down,
        bytes_up=finished.bytes_up,
        loss=None if private else finished.loss,
        epsilon=epsilon,
        anls=anls,
        accuracy=accuracy,
        seconds=None if private else seconds,
    )


def _check_kept(engine: Engine, state: RunState) -> None:
    """Raises `ProblemError` (`E_CLIENTS_LOST`) where clients go on here that kept something at their nodes."""
    away = [str(client) for client, kept in sorted(state.clients.items()) if AT_ITS_NODE in kept]
    if away and not engine.apart:
        raise refuse(
            ErrorCode.CLIENTS_LOST,
            where=f"round {state.round + 1}",
            expected="the nodes, which have what their clients keep from round to round",
            found=f"nothing of client {', '.join(away)} here",
            next_step="Begin the run anew.",
        )


def _check_validation(settings: RunSettings, data: Path) -> None:
    """Raises `ProblemError` (`E_DATASET_FORMAT`) where there is nothing to validate on, before a round was trained."""
    if settings.evaluate_every and not Dataset(data, "valid").questions:
        raise refuse(
            ErrorCode.DATASET_FORMAT,
            where=f"{data}, valid",
            expected="questions, as evaluate_every is set",
            found="none",
        )


def _validate(setup: RunSetup, finished: Round, data: Path) -> tuple[float, float] | tuple[None, None]:
    """ANLS and accuracy of the round's model on the validation split, where the settings ask for it now."""
    every = setup.settings.evaluate_every
    if not every or (finished.number % every and finished.number != setup.rounds):
        return None, None
    dataset = Dataset(data, "valid")
    with setup.payload.model_with(finished.weights) as model:
        found = predict(model, setup.tokenizer, dataset, device=setup.settings.device)
        setup.set_dropout()
    gold = GoldAnswers([question.answers for question in dataset.questions])
    scores = gold.score([prediction.answer for prediction in found]).means()
    return scores.anls, scores.accuracy


def _sent_bytes(rounds: Sequence[RoundMetrics]) -> int:
    return sum(line.bytes_down + line.bytes_up for line in rounds)


def _summary(
    setup: RunSetup,
    rounds: Sequence[RoundMetrics],
    state: RunState,
    budget: Spending,
    checkpoint_sha256: str,
) -> RunSummary:
    settings, guarantee = setup.settings, setup.guarantee
    last = rounds[-1] if rounds else None
    return RunSummary(
        experiment=settings.experiment,
        method=settings.method,
        rounds=state.round,
        parameters_sent=setup.payload.tensors.size,
        trainable=setup.payload.tensors.size,
        codec=settings.codec,
        bytes_total=_sent_bytes(rounds),
        epsilon=budget.epsilon(state.round),
        delta=guarantee.delta if guarantee else None,
        unit=guarantee.unit if guarantee else None,
        budget=guarantee.budget if guarantee else None,
        anls=last.anls if last else None,
        accuracy=last.accuracy if last else None,
        split="valid" if last and last.anls is not None else None,
        seconds=None if guarantee else sum(line.seconds or 0 for line in rounds),
        kit_version=evaluator_version(),
        resumed=state.breaks,
        base_sha256=setup.base_sha256,
        checkpoint_sha256=checkpoint_sha256,
    )
