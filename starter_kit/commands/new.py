"""`pfl new`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.console import exit_on_problem, print_lines

app = new_app()


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the method, such as my_method.", show_default=False)],
    private: Annotated[
        bool, typer.Option("--private", help="Start with provider-level privacy, and with its proof.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path(),
) -> None:
    """Start a method of your own: a file that works, its config and its test. Nothing is overwritten."""
    from starter_kit.scaffolding.writing import write_method

    with exit_on_problem():
        files = write_method(name, out, private=private)
    test, config, proof = out / f"test_{name}.py", out / f"{name}.yaml", out / f"{name}_proof.md"
    print_lines(
        *files,
        f"Try it:   python {test}",
        f"Train it: pfl train {config} --data data/public --base base --out save/{name}",
    )
    if private:
        print_lines(f"Prove it: {proof} says what holds now; `pfl submit` takes it as --proof")
