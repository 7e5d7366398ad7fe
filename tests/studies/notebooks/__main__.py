"""`make notebooks`: run every notebook of the kit, and write its page with what it printed and drew."""

from pathlib import Path
from typing import Annotated

import nbformat
import typer
from nbclient import NotebookClient

from starter_kit.console import log
from tests.studies.notebooks.page import page

FOLDER = Path(__file__).parent


def write_pages(out: Annotated[Path, typer.Argument(help="Folder of the pages.")]) -> None:
    """Run the notebooks, each in a kernel of its own, and write a page for each."""
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.glob("*.ipynb")):
        book = nbformat.read(path, as_version=4)
        NotebookClient(book, timeout=None, kernel_name="python3").execute()
        made = page(path.stem, book.cells)
        (out / f"{path.stem}.md").write_text(made.text, encoding="utf-8")
        for old in out.glob(f"{path.stem}-*.png"):
            old.unlink()
        for name, image in made.pictures.items():
            (out / name).write_bytes(image)
        log(f"{out / path.stem}.md: written")


if __name__ == "__main__":
    typer.run(write_pages)
