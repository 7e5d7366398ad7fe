"""`pfl train`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.commands.official_flags import CommandWithOfficialFlags, config_of, given_flags
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
from starter_kit.console import log

if TYPE_CHECKING:
    from starter_kit.settings.run_settings import RunSettings

app = new_app()


@app.command(cls=CommandWithOfficialFlags)
def train(
    context: typer.Context,
    data: DataFolder,
    base: BaseFolder,
    out: NewRun,
    config: Annotated[
        str | None,
        typer.Argument(help="A YAML file, or the name of one of the kit's configs (see `pfl methods`)."),
    ] = None,
    changes: Changes = None,
    track: RecordTrack = None,
    resume: Resume = False,
    processes: Annotated[
        int, typer.Option(min=1, help="Number of processes that train clients, each with its own model.")
    ] = 1,
    devices: Annotated[
        str,
        typer.Option(
            help="Devices to train on, such as cuda:0,cuda:1; at most one per process.",
        ),
    ] = "",
    log_to: Loggers = None,
    run_token: RunToken = None,
    key: KeyFile = None,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Train a method. Writes the checkpoint, the communication log, a report and, with privacy, the signed record.

    The files and flags of the competition's kit work too: -m VT5 --flower --use_dp. docs/settings.md lists them.
    """
    flags = given_flags(context)
    config = config_of(context, config)
    require_free_folder(out, resume=resume)

    # What trains takes seconds to load: mistakes are reported before.
    from starter_kit.runs.opening import RunPaths
    from starter_kit.settings.configuration import load_settings
    from starter_kit.settings.drawn_seed import with_seed

    settings, drawn = with_seed(
        load_settings(config, changes or [], flags=flags, on_note=log),
        RunPaths(out).settings if resume else None,
    )
    if drawn:
        log(f"seed {settings.seed}, drawn for this run; to repeat it, add --set seed={settings.seed}")

    from starter_kit.engines.devices import chosen_devices, use_device
    from starter_kit.engines.processes import in_processes
    from starter_kit.runs.training import in_process

    chosen = chosen_devices(devices, settings.device, processes)
    if chosen:
        use_device(chosen)
    _report_cost(settings, data, published_sampler="--use_dp" in flags)
    options = RunOptions(data, base, out, track, resume, log_to or (), run_token, key, site, token)
    in_several = in_processes(processes, data=data, base=base, devices=chosen)
    run_training(settings, options, in_several if processes > 1 else in_process)


def _report_cost(settings: "RunSettings", data: Path, *, published_sampler: bool) -> None:
    """Report before training what would cost the run its score or its rank, such as a rejection of its record.

    Does nothing where nothing is private.
    """
    from evaluator.docvqa.dataset import read_info
    from starter_kit.federation.rounds import Client
    from starter_kit.settings.published_cost import cost_notes, rule_notes
    from starter_kit.settings.rate_notes import rate_notes
    from starter_kit.settings.run_settings import RecordedSettings

    if not isinstance(settings, RecordedSettings):
        return
    clients = [
        Client(client, {name: [0] for name in names}) for client, names in read_info(data).clients.items()
    ]
    notes = [*rate_notes(settings), *rule_notes(settings, clients)]
    notes += cost_notes(settings, clients) if published_sampler else []
    for line in notes:
        log(line)
