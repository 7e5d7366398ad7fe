"""`pfl notebooks`."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.console import exit_on_problem, print_lines

FOLDER = Path(__file__).parents[1] / "notebooks"

app = new_app()


@app.command()
def notebooks(
    out: Annotated[Path, typer.Argument(help="Folder to copy the notebooks to.", show_default=False)],
) -> None:
    """Copy the kit's notebooks to a folder, for Jupyter. Nothing is overwritten."""
    with exit_on_problem():
        files = {out / path.name: path for path in sorted(FOLDER.glob("*.ipynb"))}
        for path in files:
            if path.exists():
                raise ProblemError.of(
                    ErrorCode.RUN_FOLDER,
                    message="A notebook with this name already exists and isn't overwritten.",
                    where=str(path),
                    next_step="Choose another folder.",
                )
        out.mkdir(parents=True, exist_ok=True)
        for path, source in files.items():
            shutil.copyfile(source, path)
    print_lines(*files, "Open them with `jupyter lab`, after `pip install jupyterlab`.")
