"""A training run from settings to a run folder: setup, engine, server and writer put together."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from evaluator.communication.log import LogEntry
from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.round_keys import RunKeys, keys_root
from starter_kit.console import log
from starter_kit.federation.local_engine import LocalEngine, MachineEngine
from starter_kit.federation.rounds import Engine, OnMessage, Round, Server
from starter_kit.reporting.metrics import RoundMetrics
from starter_kit.runs.kept_models import KeptModels
from starter_kit.runs.opening import RunPaths, Unfinished, open_run, writing_run
from starter_kit.runs.private_record import (
    PrivateRecordWriter,
    RecordedRounds,
    TrainingData,
    recover_record,
)
from starter_kit.runs.progress import Watcher
from starter_kit.runs.record_line import run_line
from starter_kit.runs.replayable import check_replayable, check_stateless, is_replayable
from starter_kit.runs.results import PrivacySpending, check_validation, round_metrics, run_summary, sent_bytes
from starter_kit.runs.resuming import TrainingState, reading_unfinished_run
from starter_kit.runs.round_progress import ResumingEngine, RoundProgress
from starter_kit.runs.round_secret import new_secret, read_secret
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.transcript import TranscriptWriter, open_transcript
from starter_kit.runs.writing import RunWriter
from starter_kit.settings.configuration import snapshot
from starter_kit.settings.run_settings import RunSettings
from starter_kit.site.credentials import Credentials

OpenEngine = Callable[[RunSetup, Watcher], AbstractContextManager[Engine]]


@contextmanager
def in_process(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
    """Run all clients in this process, one after another."""
    yield LocalEngine(setup.participant(watcher.pages, on_step=watcher.local_step))


def train(
    settings: RunSettings,
    *,
    data: Path,
    base: Path,
    out: Path,
    track: str,
    credentials: Callable[[], Credentials],
    watcher: Watcher,
    on_round: Callable[[RoundMetrics], None] = lambda _: None,
    resume: bool = False,
    open_engine: OpenEngine = in_process,
    on_setup: Callable[[RunSetup], None] = lambda _: None,
) -> None:
    """Train from the weights in `base` on the training split of `data`, and write the run folder `out`.

    Args:
        credentials: Returns the token and the key for the training record; called once, before the first round of a
            private run.
        on_round: Called with the metrics of each round that was recorded and shown.
        resume: Resume the unfinished run of `out`, which has the same settings.
        open_engine: Where clients run, for as long as its context is open.
        on_setup: Called with the run before anything is written; it may raise.

    Raises:
        ProblemError: The data, the base, the settings or the output folder can't be used, a round would exceed the
            privacy budget, or training diverged.
    """
    setup = RunSetup(settings, data=data, base=base)
    _check_before_writing(setup)
    on_setup(setup)
    if setup.guarantee and not setup.record_terms:
        log(
            f"{settings.method} writes no training record: its run can't be submitted to a track that asks for one"
        )
    opened = open_run(
        out, snapshot(settings), setup.inputs, resume=resume, may_add_rounds=setup.guarantee is None
    )
    with opened as run, ExitStack() as stack:
        if run is None:
            return
        if resume:
            _check_token(setup, run)
        state = run.state or TrainingState(0, setup.model.start)
        spending = PrivacySpending(setup.guarantee, state.interrupted_rounds)
        spending.check_before(setup.rounds)
        progress = RoundProgress(run.paths, settings.checkpoints.local_steps)
        if settings.checkpoints.local_steps:
            setup.saves = progress
        engine = stack.enter_context(open_engine(setup, watcher))
        check_replayable(setup, apart=engine.apart)
        engine.restore(state.clients)
        secret = _secret(setup, run)
        record = stack.enter_context(
            _open_record(setup, run, spending, credentials, track=track, apart=engine.apart, secret=secret)
        )
        if isinstance(engine, MachineEngine) and _resumes_inside_rounds(setup):
            engine = ResumingEngine(engine, progress)
        with writing_run(run.paths):
            transcript = open_transcript(setup, run.paths.unfinished, state.round, state.server)
        kept = KeptModels(run.paths, setup.model, settings.checkpoints, transcript)
        draws = RunKeys(secret, record.run_token, state.interrupted_rounds) if record and secret else None
        server, writer = (
            _server(setup, engine, state, watcher, draws, record),
            RunWriter(run, kept, progress, record, transcript),
        )
        if transcript:
            server.on_message = _written_in(run.paths, transcript)
        training = Training(setup, server, writer, spending, watcher, on_round)
        training.finish(training.run_rounds(state))


@dataclass(frozen=True)
class Training:
    """A run that is ready for its next round."""

    setup: RunSetup
    server: Server
    writer: RunWriter
    spending: PrivacySpending
    watcher: Watcher
    on_round: Callable[[RoundMetrics], None]

    def run_rounds(self, state: TrainingState) -> TrainingState:
        """Train and record the rounds after `state`, and return the state after the last one."""
        self.watcher.begins(state.round + 1, self.setup.rounds, sent_bytes(self.writer.metrics))
        for number in range(state.round + 1, self.setup.rounds + 1):
            self.spending.check_before(number)
            self.writer.begin(number, state)
            began = monotonic()
            finished = self.server.round(number, state.weights)
            state = self._after(finished, state)
            self._record(finished, state, began)
        return state

    def finish(self, state: TrainingState) -> None:
        """Write the checkpoint and the results of the run that ended with `state`."""
        self.writer.finish(
            self.setup.model,
            state.weights,
            self.setup.base_sha256,
            lambda sha256: run_summary(self.setup, self.writer.metrics, state, self.spending, sha256),
        )

    def _after(self, finished: Round, state: TrainingState) -> TrainingState:
        if not finished.weights.isfinite().all():
            raise ProblemError.of(
                ErrorCode.CHECKPOINT_NOT_FINITE, where=f"the model after round {finished.number}"
            )
        after = replace(
            state,
            round=finished.number,
            weights=finished.weights,
            server=self.server.state,
            clients=self.server.engine.states,
        )
        check_stateless(self.setup, after)
        return after

    def _record(self, finished: Round, state: TrainingState, began: float) -> None:
        masked = self.server.engine.apart and self.setup.settings.secure_aggregation is not None
        epsilon = self.spending.epsilon(finished.number)
        metrics = round_metrics(self.setup, finished, epsilon, monotonic() - began, masked=masked)
        self.writer.round(finished, metrics, state)
        self.watcher.round_done(metrics)
        self.on_round(metrics)


def _check_before_writing(setup: RunSetup) -> None:
    """Reject what can't be trained as the settings say, before anything is written."""
    check_validation(setup)
    check_replayable(setup, apart=False)
    if setup.guarantee:
        setup.guarantee.epsilon(setup.rounds)


def _resumes_inside_rounds(setup: RunSetup) -> bool:
    """Return whether a client that has finished on this machine needn't train again when its round is resumed.

    Not where something is private, nor under secure aggregation, whose secrets are never stored.
    """
    return setup.guarantee is None and setup.settings.secure_aggregation is None


def _check_token(setup: RunSetup, run: Unfinished) -> None:
    """Reject resuming a private run of which no round had begun, because it has no run token yet."""
    if setup.record_terms and run.state is None:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The interrupted run can't be resumed with a run token.",
            where=str(run.paths.folder),
            expected="a private run of which a round had begun",
            found="one that was interrupted earlier, and has no run token yet",
            next_step="Omit --resume to start it again.",
        )


def _secret(setup: RunSetup, run: Unfinished) -> bytes | None:
    """Return the secret of a replayable run, a new one unless the run is resumed; None where it isn't replayable."""
    if not is_replayable(setup):
        return None
    if run.state is not None:
        with reading_unfinished_run(run.paths.unfinished):
            return read_secret(run.paths.unfinished)
    with writing_run(run.paths):
        return new_secret(run.paths.unfinished)


@contextmanager
def _open_record(
    setup: RunSetup,
    run: Unfinished,
    spending: PrivacySpending,
    credentials: Callable[[], Credentials],
    *,
    track: str,
    apart: bool,
    secret: bytes | None,
) -> Iterator[PrivateRecordWriter | None]:
    """Open the writer of the run's training record, with its credentials; None where no record is written."""
    if setup.record_terms is None:
        yield None
        return
    signed = credentials()
    folder, token, earlier = run.paths.unfinished, signed.run_token, None
    if run.state is not None:
        earlier = recover_record(folder, run.state.round)
        token = earlier.run.run_token
    setup.start_from(token or "")
    claim = spending.epsilon(setup.rounds) or 0.0
    root = keys_root(secret, setup.rounds) if secret else None
    line = run_line(setup, claim, track=track, run_token=token, apart=apart, round_keys_root=root)
    data = TrainingData({client.id: len(client.providers) for client in setup.clients}, setup.data_sha256)
    recorded = RecordedRounds(line)
    if run.state is not None and earlier is not None:
        recorded = earlier.resumed(run.state, claim)
    with writing_run(run.paths):
        record = PrivateRecordWriter(folder, recorded, signed.key, data, setup.model.start)
    try:
        yield record
    except BaseException:
        # An error of the last write is raised already.
        with suppress(OSError):
            record.close()
        raise
    record.close()


def _written_in(paths: RunPaths, transcript: TranscriptWriter) -> OnMessage:
    def write(entry: LogEntry, payload: bytes) -> None:
        with writing_run(paths):
            transcript.message(entry, payload)

    return write


def _server(
    setup: RunSetup,
    engine: Engine,
    state: TrainingState,
    watcher: Watcher,
    draws: RunKeys | None,
    record: PrivateRecordWriter | None,
) -> Server:
    return Server(
        setup.method,
        engine,
        setup.aggregation,
        setup.stream,
        state.server,
        needs_all=setup.needs_every_client,
        on_update=watcher.update_arrived,
        draws=draws,
        auxiliary=setup.plan.auxiliary,
        run_token=(record.run_token or "") if record else None,
        turns=setup.model.turns,
    )
