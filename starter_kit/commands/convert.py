"""`pfl convert`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import print_lines


def convert(
    source: Annotated[Path, typer.Argument(help="A .bin, .ckpt or .pt file, or a folder with a checkpoint.")],
    out: Annotated[
        Path, typer.Argument(help="Folder to write model.safetensors into, or a .safetensors file.")
    ],
    base: Annotated[
        Path | None, typer.Option(help="Folder of the track's base weights, to compare the result with.")
    ] = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Read the file even if the reading process can't be isolated from the network. Use this "
            "only if you trust the file.",
        ),
    ] = False,
) -> None:
    """Convert a pickled or sharded checkpoint into a single safetensors file."""
    from starter_kit.weights.converting import convert as convert_checkpoint

    convert_checkpoint(source, out, base=base, allow_network=allow_network, report=print_lines)
