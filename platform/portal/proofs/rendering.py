"""Privacy proofs as safe HTML.

A proof comes from a participant and is read by the organizers, so it is the shortest way to attack them. What
comes out of here has no markup but that of `portal.ui.markdown` and of this module: no script, no style, no
address that a browser would load, whatever went in. Nothing is executed. The view adds a sandbox.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from pydantic import BaseModel, Field, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from portal.docs.rendering import wrap_tables
from portal.proofs.front_matter import as_table
from portal.proofs.outline import Outline
from portal.proofs.reading import MAX_PROOF_BYTES
from portal.ui.front_matter import split_front_matter
from portal.ui.markdown import Allowance, prepare, render_prepared

MAX_CELLS = 1_000
# The limit for a Markdown file, a cell or an output.
MAX_TEXT_CHARACTERS = 100_000
MAX_IMAGE_BYTES = 2 * 1024 * 1024
MAX_SIDE_PIXELS = 20_000
# Of the HTML of a whole notebook: as much as its images can be.
MAX_SHOWN_CHARACTERS = 16 * 1024 * 1024
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Colors and the like, which are meant for terminals.
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

# A notebook has its texts as a whole or in lines.
Text = str | list[str]


class OutputData(BaseModel):
    """The two representations of an output that are shown; all others, HTML and SVG above all, are dropped."""

    plain: Text = Field("", alias="text/plain")
    png: Text = Field("", alias="image/png")


class Output(BaseModel):
    output_type: str
    # The text of a stream.
    text: Text = ""
    data: OutputData = OutputData()
    ename: str = ""
    evalue: str = ""


class Cell(BaseModel):
    cell_type: Literal["markdown", "code", "raw"]
    source: Text
    execution_count: int | None = None
    outputs: list[Output] = []


class Notebook(BaseModel):
    """What is read of a Jupyter notebook of format 4."""

    nbformat: Literal[4]
    cells: list[Cell] = Field(max_length=MAX_CELLS)


def render_proof(content: bytes, filename: str) -> SafeString:
    """Return the Markdown file or notebook as HTML. Raises `ProblemError`: `E_ARTIFACT_SIZE` or `E_PROOF_FORMAT`."""
    _require_size(content, filename)
    match PurePath(filename).suffix.lower():
        case ".md":
            return _markdown_file(_decode(content, filename), filename)
        case ".ipynb":
            return _notebook(content, filename)
        case suffix:
            raise ProblemError.of(
                ErrorCode.PROOF_FORMAT,
                where=filename,
                expected="a file that ends in .md, .ipynb or .pdf",
                found=suffix or "no ending",
            )


def _require_size(content: bytes, filename: str) -> None:
    if len(content) > MAX_PROOF_BYTES:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_SIZE,
            message="The proof is too large to be shown here.",
            where=filename,
            expected=f"at most {MAX_PROOF_BYTES:,} bytes",
            found=f"{len(content):,} bytes or more",
            next_step="Leave large outputs out of the proof.",
        )


def text_lines(content: bytes, filename: str) -> list[str]:
    """Return the lines of the Markdown file or notebook, for a comparison. Raises `ProblemError` as `render_proof`."""
    _require_size(content, filename)
    if PurePath(filename).suffix.lower() != ".ipynb":
        return _decode(content, filename).splitlines()
    lines = []
    for cell in _parsed(content, filename).cells:
        lines += [f"[{cell.cell_type}]", *_joined(cell.source).splitlines()]
        for output in cell.outputs:
            lines += ["[output]", *(line for text in _texts(output) for line in text.splitlines())]
            lines += ["[picture]"] if output.data.png else []
    return lines


def _markdown_file(text: str, filename: str) -> SafeString:
    """Return the text below its list of contents, its front matter, such as hashes of code, folded away above both."""
    front, rest = split_front_matter(text)
    _require_length(front, filename)
    allowance = Allowance()
    outline = Outline()
    html = _markdown(rest, filename, allowance, outline)
    return format_html("{}{}{}", as_table(front) if front else "", outline.as_html(), html)


def _decode(content: bytes, filename: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ProblemError.of(
            ErrorCode.PROOF_FORMAT, where=f"{filename}, byte {error.start}", expected="UTF-8 text"
        ) from error


def _notebook(content: bytes, filename: str) -> SafeString:
    notebook = _parsed(content, filename)
    # All cells together may be as long as one Markdown file.
    allowance = Allowance()
    outline = Outline()
    cells = list(_within_limit(_cells(notebook, filename, allowance, outline)))
    return format_html("{}{}", outline.as_html(), mark_safe("".join(cells)))  # noqa: S308  (each part is safe)


def _parsed(content: bytes, filename: str) -> Notebook:
    try:
        return Notebook.model_validate_json(content)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        raise ProblemError.of(
            ErrorCode.PROOF_FORMAT,
            where=": ".join([filename, ".".join(str(part) for part in detail["loc"])]).removesuffix(": "),
            expected="a Jupyter notebook of format 4",
            found=detail["msg"],
        ) from error


def _cells(notebook: Notebook, filename: str, allowance: Allowance, outline: Outline) -> Iterator[SafeString]:
    for number, cell in enumerate(notebook.cells, 1):
        where = f"{filename}, cell {number}"
        source = _joined(cell.source)
        if cell.cell_type == "markdown":
            yield _markdown(source, where, allowance, outline)
        elif source.strip():
            count = "" if cell.execution_count is None else f" [{cell.execution_count}]"
            yield _preformatted(source, where, cell.cell_type, f"{cell.cell_type.capitalize()}{count}")
        for output in cell.outputs:
            yield from _output(output, where)


def _output(output: Output, where: str) -> Iterator[SafeString]:
    for text in _texts(output):
        yield _preformatted(text, where, "output", "Output")
    if image := _joined(output.data.png):
        yield _image(image, where)


def _texts(output: Output) -> Iterator[str]:
    error = f"{output.ename}: {output.evalue}" if output.output_type == "error" else ""
    for text in (_joined(output.text), _joined(output.data.plain), error):
        if text:
            yield ESCAPES.sub("", text)


def _within_limit(parts: Iterator[SafeString]) -> Iterator[SafeString]:
    shown = 0
    for part in parts:
        shown += len(part)
        if shown > MAX_SHOWN_CHARACTERS:
            yield mark_safe(
                '<p class="notice notice-info">The rest of the notebook is too long to be shown.</p>'
            )
            return
        yield part


def _markdown(text: str, where: str, allowance: Allowance, outline: Outline) -> SafeString:
    _require_length(text, where)
    html = wrap_tables(render_prepared(prepare([text], allowance)[0], allowance, adapt=outline.adapt))
    return format_html('<div class="prose">{}</div>', mark_safe(html))  # noqa: S308  (it was safe before)


def _preformatted(text: str, where: str, kind: str, label: str) -> SafeString:
    _require_length(text, where)
    # What is wide scrolls by itself, so a keyboard must reach it.
    return format_html(
        '<div class="proof-cell"><p class="muted small">{}</p>'
        '<pre class="proof-{}" tabindex="0"><code>{}</code></pre></div>',
        label,
        kind,
        text,
    )


def _image(encoded: str, where: str) -> SafeString:
    try:
        image = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad_image(where, "not base64") from error
    if len(image) > MAX_IMAGE_BYTES:
        raise _bad_image(where, f"{len(image):,} bytes")
    if not image.startswith(PNG_SIGNATURE):
        raise _bad_image(where, "another format")
    data = base64.b64encode(image).decode()
    return format_html(
        '<p><img src="data:image/png;base64,{}" alt="Picture in the output of {}"{}></p>',
        data,
        where,
        _size(image),
    )


def _size(png: bytes) -> SafeString:
    """Return the attributes with the size of a PNG image, as its header states it; a browser keeps room for it."""
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
    known = 0 < width <= MAX_SIDE_PIXELS and 0 < height <= MAX_SIDE_PIXELS
    return format_html(' width="{}" height="{}"', width, height) if known else SafeString("")


def _bad_image(where: str, found: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.PROOF_FORMAT,
        where=where,
        expected=f"a PNG image of at most {MAX_IMAGE_BYTES:,} bytes",
        found=found,
    )


def _require_length(text: str, where: str) -> None:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ProblemError.of(
            ErrorCode.PROOF_FORMAT,
            where=where,
            expected=f"at most {MAX_TEXT_CHARACTERS:,} characters",
            found=f"{len(text):,} characters",
        )


def _joined(text: Text) -> str:
    return text if isinstance(text, str) else "".join(text)
