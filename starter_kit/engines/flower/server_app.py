"""The server's side as a ServerApp, for `flwr run` in a Flower deployment of one's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import log
from starter_kit.engines.flower.agreement import Agreement, require_trusted_server
from starter_kit.engines.flower.engine import FlowerEngine
from starter_kit.engines.flower.node_registry import NodeRegistry
from starter_kit.federation.rounds import Engine
from starter_kit.reporting.report import write_report
from starter_kit.runs.progress import Watcher, show_progress
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import OpenEngine, train
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.own_methods import own_files
from starter_kit.site.credentials import Credentials

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train as the run's configuration says, and write the run folder that it names on the server's machine."""
    given = {name: str(value) for name, value in context.run_config.items()}
    settings = load_settings(given["config"], [change for change in given["set"].split(";") if change])
    with show_progress(settings.experiment) as watcher:
        train(
            settings,
            data=Path(given["data"]),
            base=Path(given["base"]),
            out=Path(given["out"]),
            track="",
            credentials=_no_credentials,
            watcher=watcher,
            open_engine=over_grid(grid, wait_s=float(given["wait-s"]), timeout_s=float(given["timeout-s"])),
        )
    for file in own_files(settings):
        file.keep(Path(given["out"]))
    write_report(Path(given["out"]))


def over_grid(grid: Grid, *, wait_s: float, timeout_s: float) -> OpenEngine:
    """Return an engine whose clients are at the nodes that `grid` reaches.

    The nodes are informed when the run is complete, and not if it is interrupted.

    Args:
        wait_s: How long the nodes have to arrive at the beginning.
        timeout_s: How long a client's reply is waited for.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The run keeps a training record and doesn't trust the server;
            (`E_CLIENTS_LOST`) nodes are missing.
    """

    @contextmanager
    def opened(setup: RunSetup, _watcher: Watcher) -> Iterator[Engine]:
        require_trusted_server(setup)
        clients = [client.id for client in setup.clients]
        registry = NodeRegistry(grid, clients, Agreement.of(setup), log)
        registry.await_all(wait_s)
        yield FlowerEngine(
            grid,
            registry,
            timeout_s=timeout_s,
            needs_all=setup.settings.secure_aggregation is not None or setup.needs_every_client,
            log=log,
        )
        registry.announce_completion()

    return opened


def _no_credentials() -> Credentials:
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where="method",
        expected="a method without a training record, as a Flower deployment has no key to sign one",
        next_step="Lead the run with `pfl federate server`.",
    )
