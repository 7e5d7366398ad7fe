"""Every notebook runs from top to bottom, is kept without outputs, and its page shows the same cells."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from IPython.core.error import UsageError

from starter_kit.notebooks import pfl
from tests.studies.notebooks.page import page, source_of
from tests.studies.notebooks.running import NOTEBOOKS

# To import nbformat, nbclient and ipykernel takes seconds, in each of the processes that collect tests: the tests that
# use them do.
if TYPE_CHECKING:
    from nbformat import NotebookNode

PAGES = Path(__file__).parents[3] / "docs" / "notebooks"
# In place of each notebook's own: what shows that it runs, and no more.
SIZES = "providers, forms, rounds = 20, 2, 1"
# Faster than `%reset`, which collects garbage.
FRESH = "%reset_selective -f ^[a-zA-Z]"


def small(path: Path) -> list["NotebookNode"]:
    """The cells of a notebook, with small sizes in place of its own."""
    import nbformat

    cells = nbformat.read(path, as_version=4).cells
    for cell in cells:
        cell.id = f"{path.stem}-{cell.id}"
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = SIZES
    return list(cells)


@pytest.mark.slow
def test_all_of_them_run_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel runs them all, each in a namespace of its own: to load the libraries takes longer than they do."""
    import nbformat
    from nbclient import NotebookClient

    from tests.services.forked_kernel import ForkedKernel

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    cells = [cell for path in NOTEBOOKS for cell in [nbformat.v4.new_code_cell(FRESH), *small(path)]]
    assert len(NOTEBOOKS) >= 4
    kernel = ForkedKernel(tmp_path)
    try:
        NotebookClient(nbformat.v4.new_notebook(cells=cells), km=kernel, timeout=300).execute()
    finally:
        kernel.end()
    assert len(list(tmp_path.rglob("report.html"))) >= len(NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_kept_without_outputs(path: Path) -> None:
    import nbformat

    book = json.loads(path.read_text())
    nbformat.validate(book)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_their_pages_show_the_same_cells(path: Path) -> None:
    shown = (PAGES / f"{path.stem}.md").read_text()
    for cell in json.loads(path.read_text())["cells"]:
        text = source_of(cell)
        assert (text if cell["cell_type"] == "code" else text.partition("\n")[2].strip()) in shown, (
            "run `make notebooks`"
        )


def test_a_verb_that_rejects_its_input_stops_the_notebook(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean 'train'"):
        pfl("tarin")
    with pytest.raises(UsageError, match="status 2"):
        pfl(f"report '{tmp_path}'")


def test_a_page_has_what_the_cells_print_and_draw_and_no_temporary_folders() -> None:
    drawn = {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}}
    printed = {"output_type": "stream", "name": "stdout", "text": "\x1b[1min\x1b[0m /tmp/tmpab12/x\n"}
    made = page(
        "mine",
        [
            {"cell_type": "markdown", "source": "# Mine\n\nAbout."},
            {"cell_type": "code", "source": "1", "outputs": [printed, drawn]},
        ],
    )
    assert made.text.startswith("# Mine\n\nThe notebook [mine.ipynb]")
    assert "````text\nin …/x\n````" in made.text
    assert "<Figure>" not in made.text
    assert made.pictures == {"mine-1.png": b"hi"}


def test_the_notebooks_are_copied_and_never_overwritten(tmp_path: Path) -> None:
    pfl(f"notebooks '{tmp_path}'")
    assert [path.name for path in sorted(tmp_path.iterdir())] == [path.name for path in NOTEBOOKS]
    with pytest.raises(UsageError, match="status 2"):
        pfl(f"notebooks '{tmp_path}'")
