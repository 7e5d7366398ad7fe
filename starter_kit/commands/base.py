"""`pfl base`: base weights that training starts from."""

from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.console import print_lines

app = new_app("Write base weights for experiments.")


@app.callback()
def group() -> None:
    """Keep `create` a verb of the group, though it is the only one."""


@app.command()
def create(out: Annotated[Path, typer.Argument(help="Folder to write.")]) -> None:
    """Write the tiny VT5 that ships with the kit, with its tokenizer, for experiments on a CPU."""
    from starter_kit.weights import tiny_vt5

    if out.exists():
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="Base weights are never written over what is there.",
            where=str(out),
            expected="a new folder",
            found="an existing folder",
            next_step="Name another folder, or remove this one.",
        )
    tiny_vt5.copy_to(out)
    print_lines(f"{out}: a tiny VT5, pre-trained on public cards")
