"""`pfl notebooks`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.console import print_lines
from starter_kit.reporting.files import write_new_files

FOLDER = Path(__file__).parents[1] / "notebooks"


def notebooks(
    out: Annotated[Path, typer.Argument(help="Folder to copy the notebooks to.")],
) -> None:
    """Copy the kit's notebooks to a folder, for Jupyter. Nothing is overwritten."""
    sources = sorted(FOLDER.glob("*.ipynb"))
    written = write_new_files(out, {path.name: path.read_text(encoding="utf-8") for path in sources})
    print_lines(*written, "Open them with `jupyter lab`, after `pip install jupyterlab`.")
