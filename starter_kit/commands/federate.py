"""`pfl federate`: training with clients on machines of their own, over Flower. See docs/distributed.md."""

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.commands.options import (
    ApiToken,
    BaseFolder,
    Changes,
    DataFolder,
    KeyFile,
    Loggers,
    NewRun,
    RecordTrack,
    Resume,
    RunToken,
    Site,
)
from starter_kit.commands.training_run import RunOptions, require_free_folder, run_training
from starter_kit.console import log, print_lines, progress
from starter_kit.extras import install_command

app = new_app("Train with clients on separate machines, using Flower.")

Config = Annotated[
    str, typer.Argument(help="The settings; they must be the same for the server and all nodes.")
]
WaitS = Annotated[
    float, typer.Option("--wait", min=1, help="How many seconds to wait for the other side at the start.")
]


@app.command()
def server(
    config: Config,
    data: DataFolder,
    base: BaseFolder,
    out: NewRun,
    changes: Changes = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 9092,
    certificate: Annotated[Path | None, typer.Option(help="The server's certificate, PEM.")] = None,
    certificate_key: Annotated[Path | None, typer.Option(help="The certificate's private key, PEM.")] = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="Certificate of the authority that signed the server's certificate, PEM."),
    ] = None,
    node_keys: Annotated[
        Path | None,
        typer.Option(
            help="File with the public keys of the nodes to admit, one per line; by default, all "
            "nodes are admitted."
        ),
    ] = None,
    wait_s: WaitS = 600.0,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1, help="How many seconds a client has to reply.")
    ] = 600.0,
    log_to: Loggers = None,
    resume: Resume = False,
    track: RecordTrack = None,
    run_token: RunToken = None,
    key: KeyFile = None,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Lead a run: wait for the nodes of all clients, train with them, and write a normal run folder."""
    _require_flower()
    from starter_kit.engines.flower.address import Address, server_tls
    from starter_kit.engines.flower.superlink import ServerOptions, over_own_superlink
    from starter_kit.settings.configuration import load_settings

    settings = load_settings(config, changes or [])
    require_free_folder(out, resume=resume)
    tls = server_tls(certificate, certificate_key, authority)
    server = ServerOptions(Address(host, port), tls, node_keys)
    options = RunOptions(data, base, out, track, resume, log_to or (), run_token, key, site, token)
    home = out.with_name(f"{out.name}.flower")
    with _removed(home):
        engine = over_own_superlink(server, home, wait_s=wait_s, timeout_s=timeout_s)
        run_training(settings, options, engine)


@app.command()
def node(
    config: Config,
    data: DataFolder,
    base: BaseFolder,
    clients: Annotated[list[int], typer.Option("--client", help="A client of this node; can be repeated.")],
    server: Annotated[str, typer.Option("--server", help="HOST:PORT of the server.")] = "127.0.0.1:9092",
    changes: Changes = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="Certificate of the authority that signed the server's certificate, PEM."),
    ] = None,
    node_key: Annotated[
        Path | None,
        typer.Option(help="This node's private key, if the server admits only nodes with known keys."),
    ] = None,
    wait_s: WaitS = 600.0,
    home: Annotated[
        Path | None,
        typer.Option(help="Folder for Flower's files while the node runs; by default, the current one."),
    ] = None,
) -> None:
    """Run some of the clients until the run is complete or the server is gone."""
    _require_flower()
    from starter_kit.engines.flower.address import Address, require_pem
    from starter_kit.engines.flower.client_app import ClientHost
    from starter_kit.engines.flower.supernode import NodeOptions, only_process, serve
    from starter_kit.runs.setup import RunSetup
    from starter_kit.settings.configuration import load_settings

    if len(set(clients)) < len(clients):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="--client",
            expected="each client once",
            found=", ".join(map(str, clients)),
        )
    for option, path in (("--authority", authority), ("--node-key", node_key)):
        require_pem(option, path)
    options = NodeOptions(Address.parse(server), authority, node_key, wait_s)
    setup = RunSetup(load_settings(config, changes or []), data=data, base=base)
    with progress("pages") as show:
        host = ClientHost.of(setup, clients, show)
    home = (home or Path()) / f"node-{'-'.join(map(str, clients))}.flower"
    with only_process(home), _removed(home):
        serve(host, options, home, log)


@app.command("app")
def write_flower_app(folder: Annotated[Path, typer.Argument(help="Folder to write.")]) -> None:
    """Write the kit as a Flower app, for `flwr run` in your own Flower deployment."""
    _require_flower()
    from starter_kit.engines.flower.app_folder import write_app

    try:
        write_app(folder)
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The app can't be written.",
            where=str(folder),
            expected="a new folder",
            found=error.strerror,
            next_step="Name a new folder in one that you can write into.",
        ) from error
    print_lines(f"{folder}: an app for `flwr run`")


@contextmanager
def _removed(home: Path) -> Iterator[None]:
    """Remove Flower's files in `home` at the end, unless something went wrong, which they may explain."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        shutil.rmtree(home, ignore_errors=True)
        raise
    shutil.rmtree(home, ignore_errors=True)


def _require_flower() -> None:
    if find_spec("flwr") is None:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="this command",
            expected="Flower",
            found="no package flwr",
            next_step=f"Install it: {install_command('flower')}.",
        )
