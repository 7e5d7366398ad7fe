"""The kit's notebooks, run: their pages are docs/notebooks/*.md, which need no other store of outcomes."""

from pathlib import Path

from starter_kit import notebooks
from starter_kit.console import log
from tests.studies.notebooks.page import page

NOTEBOOKS = sorted(Path(notebooks.__file__).parent.glob("*.ipynb"))


def write_pages(out: Path) -> None:
    """Run the notebooks, each in a kernel of its own, and write a page of each into the folder `out`."""
    # They take seconds to import.
    import nbformat
    from nbclient import NotebookClient

    out.mkdir(parents=True, exist_ok=True)
    for path in NOTEBOOKS:
        book = nbformat.read(path, as_version=4)
        NotebookClient(book, timeout=None, kernel_name="python3").execute()
        made = page(path.stem, book.cells)
        (out / f"{path.stem}.md").write_text(made.text, encoding="utf-8")
        for old in out.glob(f"{path.stem}-*.png"):
            old.unlink()
        for name, image in made.pictures.items():
            (out / name).write_bytes(image)
        log(f"{out / path.stem}.md: written")
