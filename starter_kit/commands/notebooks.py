"""`pfl notebooks`."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import print_lines

FOLDER = Path(__file__).parents[1] / "notebooks"


def notebooks(
    out: Annotated[Path, typer.Argument(help="Folder to copy the notebooks to.")],
) -> None:
    """Copy the kit's notebooks to a folder, for Jupyter. Nothing is overwritten."""
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
