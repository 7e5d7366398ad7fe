"""`pfl base`: base weights that training starts from."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.console import exit_on_problem, print_lines, progress

app = new_app("Make base weights for trials.")


@app.callback()
def group() -> None:
    """Keep `create` a verb of the group, though it is the only one."""


@app.command()
def create(
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 7,
    vocab_size: Annotated[int, typer.Option(min=300, help="Tokens of the tokenizer.")] = 512,
) -> None:
    """Make a tiny VT5 and its tokenizer for trials on a CPU, pre-trained on made-up public cards."""
    from starter_kit.weights.pretraining import create_base

    with exit_on_problem():
        if out.exists():
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER, where=str(out), expected="a new folder", found="an existing one"
            )
        unfinished = out.with_name(f"{out.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with progress("pre-training, steps") as show:
            loss = create_base(unfinished, seed=seed, vocab_size=vocab_size, on_progress=show)
        unfinished.rename(out)
    print_lines(f"{out}: a tiny VT5, pre-trained to a loss of {loss:.2f} on public cards")
