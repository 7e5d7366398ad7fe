"""`pfl convert`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.console import exit_on_problem, print_lines

app = new_app()


@app.command()
def convert(
    source: Annotated[
        Path,
        typer.Argument(help="A .bin, .ckpt or .pt file, or a folder with a checkpoint.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="Folder to write model.safetensors into, or a .safetensors file.", show_default=False
        ),
    ],
    base: Annotated[
        Path | None, typer.Option(help="Folder of the track's base weights, to compare the result with.")
    ] = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Read the file even if the process that reads it can't be isolated from the network. Only if you "
            "trust it.",
        ),
    ] = False,
) -> None:
    """Convert a pickled or sharded checkpoint into a single safetensors file."""
    from starter_kit.weights.converting import convert as convert_checkpoint

    with exit_on_problem():
        convert_checkpoint(source, out, base=base, allow_network=allow_network, report=print_lines)
