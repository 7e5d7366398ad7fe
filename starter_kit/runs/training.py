"""A training run from settings to a run folder: setup, engine and recorder put together."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.local import LocalEngine
from starter_kit.federation.rounds import Engine, Server
from starter_kit.runs.numbers import check_validation, round_metrics, run_summary, sent_bytes
from starter_kit.runs.progress import Watcher
from starter_kit.runs.record_line import run_line
from starter_kit.runs.recording import Recorder
from starter_kit.runs.resuming import RunState
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.spending import Spending
from starter_kit.settings.configuration import snapshot
from starter_kit.settings.run_settings import RunSettings
from starter_kit.site.credentials import Credentials

OpenEngine = Callable[[RunSetup, Watcher], AbstractContextManager[Engine]]


@contextmanager
def in_process(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
    """All clients in this process, one after another."""
    yield LocalEngine(setup.participant(watcher.pages))


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
    check_validation(settings, data)
    terms = setup.record_terms
    if setup.guarantee:
        setup.guarantee.epsilon(setup.rounds)  # rejects noise that bounds nothing before anything is written
    with Recorder(out, snapshot(settings), setup.inputs, resume=resume) as recorder, ExitStack() as stack:
        if recorder.complete:
            return
        if resume and terms and recorder.state is None:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                where=str(out),
                expected="a private run of which a round had begun",
                found="one that was interrupted before, and has no run token yet",
                next_step="Leave --resume out to begin it.",
            )
        state = recorder.state or RunState(0, setup.payload.start)
        budget = Spending(setup.guarantee, state)
        budget.check(setup.rounds)
        engine = stack.enter_context(open_engine(setup, watcher))
        engine.restore(state.clients)
        if terms:
            signed = credentials()
            providers = {client.id: len(client.providers) for client in setup.clients}
            claim = budget.epsilon(setup.rounds) or 0.0
            run = run_line(setup, terms, claim, track=track, run_token=signed.run_token, apart=engine.apart)
            recorder.keep_record(run, signed.key, providers)
        server = Server(
            setup.method,
            engine,
            setup.aggregation,
            setup.stream,
            state.server,
            needs_all=setup.needs_every_client,
            on_update=watcher.update_came,
        )
        masks = settings.secure_aggregation is not None
        began = monotonic()
        watcher.begins(state.round + 1, setup.rounds, sent_bytes(recorder.metrics))
        for number in range(state.round + 1, setup.rounds + 1):
            budget.check(number)
            recorder.begin(number, state)
            finished = server.round(number, state.weights)
            if not finished.weights.isfinite().all():
                raise ProblemError.of(
                    ErrorCode.CHECKPOINT_NOT_FINITE, where=f"the model after round {finished.number}"
                )
            state = replace(
                state, round=number, weights=finished.weights, server=server.state, clients=engine.states
            )
            spent, seconds = budget.epsilon(number), monotonic() - began
            metrics = round_metrics(setup, finished, data, spent, seconds, masked=engine.apart and masks)
            recorder.round(finished, metrics, state)
            watcher.round_done(metrics)
            began = monotonic()
        with setup.payload.model_with(state.weights) as model:
            recorder.finish(model, lambda sha256: run_summary(setup, recorder.metrics, state, budget, sha256))
