"""`pfl train`."""

from typing import Annotated

import typer

from starter_kit.console import note, rejections
from starter_kit.options import BaseFolder, Changes, DataFolder, NewRun, RecordTrack, Resume, RunToken
from starter_kit.runs.telling import reject_to_overwrite, train_and_tell
from starter_kit.settings.official_flags import config_of, given_flags
from starter_kit.site.options import ApiToken, KeyFile, Site, connect_where_named


def train(
    context: typer.Context,
    data: DataFolder,
    base: BaseFolder,
    out: NewRun,
    config: Annotated[
        str | None,
        typer.Argument(help="A YAML file, or the name of one of the kit's: `pfl methods` lists them."),
    ] = None,
    changes: Changes = None,
    track: RecordTrack = "track-2",
    resume: Resume = False,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes in which clients train, each with a model of its own.")
    ] = 1,
    run_token: RunToken = None,
    key: KeyFile = None,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Train a method. Writes the checkpoint, the communication log, a report and, with privacy, the signed record.

    The files and flags of the competition's kit work as well: -m VT5 --flower --use_dp.
    """
    from starter_kit.settings.configuration import load_settings
    from starter_kit.site.credentials import key_path, obtain

    with rejections():
        settings = load_settings(
            config_of(context, config), changes or [], flags=given_flags(context), tell=note
        )
        reject_to_overwrite(out, resume=resume)
        client = connect_where_named(site, token)

        # What trains takes seconds to load: mistakes are told before.
        from starter_kit.engines.processes import in_processes
        from starter_kit.runs.training import in_process

        train_and_tell(
            settings,
            data=data,
            base=base,
            out=out,
            track=track,
            resume=resume,
            credentials=lambda: obtain(key_path(key), run_token, track, client, resumed=resume),
            open_engine=in_processes(processes, data=data, base=base) if processes > 1 else in_process,
        )
