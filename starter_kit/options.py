"""Options that several commands have: where data, base weights and runs are, and how a run is made."""

from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import rejections

DATASET = "dataset.json"


def _readable(data: Path) -> Path:
    """The data folder as it was named. The one above it, which `pfl data` was given, is a mistake easily made."""
    if not (data / DATASET).exists() and (data / "public" / DATASET).is_file():
        with rejections():
            raise ProblemError.of(
                ErrorCode.DATASET_FORMAT,
                where=f"--data {data}",
                expected=f"a data folder, with {DATASET}",
                found=f"a folder of two: {data / 'public'} and the secret test set",
                next_step=f"Say --data {data / 'public'}",
            )
    return data


DataFolder = Annotated[
    Path,
    typer.Option("--data", help="Data folder, such as data/public.", show_default=False, callback=_readable),
]
BaseFolder = Annotated[
    Path, typer.Option("--base", help="Folder of the track's base weights.", show_default=False)
]
RunDirectory = Annotated[Path, typer.Argument(help="Folder that `pfl train` wrote.", show_default=False)]
NewRun = Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting to change, such as rounds=5; may be given several times."),
]
RecordTrack = Annotated[str, typer.Option("--track", help="Track of the training record and its run token.")]
RunToken = Annotated[
    str | None,
    typer.Option(
        "--run-token",
        envvar="PFL_RUN_TOKEN",
        help="From `pfl token`; else the site is asked for one, if you name it.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with a run that was interrupted; name the same settings.")
]
