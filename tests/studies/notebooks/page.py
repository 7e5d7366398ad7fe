"""A notebook that was run, as a Markdown page of the documentation, with what its cells printed and drew."""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Colors and the like, which are meant for terminals.
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Folders of a run's own, which would differ on every page that is written.
TEMPORARY = re.compile(r"/(?:var/folders|tmp)/[\w./-]*?tmp\w+")
FENCE = "````"

Cell = Mapping[str, Any]


@dataclass
class Page:
    """A page and the pictures that it shows, by their file names."""

    text: str
    pictures: dict[str, bytes] = field(default_factory=dict)


def page(name: str, cells: Sequence[Cell]) -> Page:
    """Return the page of the notebook `name`, whose cells have their outputs.

    Where it comes from is said below the title, which the first cell begins with.
    """
    made = Page("")
    parts = list(_parts(name, cells, made.pictures))
    title, _, rest = parts[0].partition("\n")
    source = (
        f"The notebook [{name}.ipynb](../../starter_kit/notebooks/{name}.ipynb) as it was run; "
        "`pfl notebooks` gives you the file. Written by `make notebooks`."
    )
    made.text = "\n\n".join([title, source, rest.strip(), *parts[1:]]) + "\n"
    return made


def source_of(cell: Cell) -> str:
    """Return the text of a cell, which a file may have in lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _parts(name: str, cells: Sequence[Cell], pictures: dict[str, bytes]) -> Iterator[str]:
    for cell in cells:
        if cell["cell_type"] == "markdown":
            yield source_of(cell)
            continue
        yield _fenced(source_of(cell), "python")
        printed = "".join(_texts(cell["outputs"])).strip("\n")
        if printed:
            yield _fenced(TEMPORARY.sub("…", ESCAPES.sub("", printed)), "text")
        for image in _images(cell["outputs"]):
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = image
            yield f"![What the cell above draws]({file})"


def _fenced(text: str, language: str) -> str:
    return f"{FENCE}{language}\n{text}\n{FENCE}"


def _texts(outputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for output in outputs:
        if output["output_type"] == "stream":
            yield output["text"]
        elif "image/png" not in output.get("data", {}):
            yield output.get("data", {}).get("text/plain", "").rstrip("\n") + "\n"


def _images(outputs: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    for output in outputs:
        if encoded := output.get("data", {}).get("image/png"):
            yield base64.b64decode(encoded)
