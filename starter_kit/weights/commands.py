"""`pfl base`, which makes base weights for trials, and `pfl convert`, which rewrites a checkpoint."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import progress, rejections, say

base_app = typer.Typer(help="Base weights that training starts from.", no_args_is_help=True)


@base_app.command()
def create(
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 7,
    vocab_size: Annotated[int, typer.Option(min=300, help="Tokens of the tokenizer.")] = 512,
) -> None:
    """Make a tiny VT5 and its tokenizer for trials on a CPU, pre-trained on made-up public cards."""
    from starter_kit.weights.pretraining import create_base

    with rejections():
        if out.exists():
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER, where=str(out), expected="a new folder", found="an existing one"
            )
        unfinished = out.with_name(f"{out.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with progress("pre-training, steps") as show:
            loss = create_base(unfinished, seed=seed, vocab_size=vocab_size, on_progress=show)
        unfinished.rename(out)
    say(f"{out}: a tiny VT5, pre-trained to a loss of {loss:.2f} on public cards")


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
        Path | None, typer.Option(help="Folder of the track's base weights, to check the result against.")
    ] = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Read the file even where its reader can't be cut off. Only if you trust it.",
        ),
    ] = False,
) -> None:
    """Turn a pickled or sharded checkpoint into the one safetensors file that the benchmark takes."""
    from starter_kit.weights.converting import convert as run_conversion

    with rejections():
        run_conversion(source, out, base=base, allow_network=allow_network, tell=say)
