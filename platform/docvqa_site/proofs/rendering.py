"""Privacy proofs as safe HTML, with a list of what isn't shown.

A proof comes from a participant and is read by the organizers, so it is the shortest way to attack them. What
comes out of here has no markup but that of `docvqa_site.ui.markdown` and of this package: no script, no style, no
address that a browser would load, whatever went in. Nothing is executed. The view adds a sandbox.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from urllib.parse import unquote

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from docvqa_site.docs.rendering import wrap_tables
from docvqa_site.proofs.front_matter import as_table
from docvqa_site.proofs.notebooks import Bundle, Cell, Output, as_terminal, joined, read_notebook
from docvqa_site.proofs.outline import Outline, Section, leads_out
from docvqa_site.proofs.pictures import ATTACHMENT, KINDS, Pictures, UnshownError, detached, picture
from docvqa_site.proofs.reading import MAX_PROOF_BYTES, decoded
from docvqa_site.proofs.unshown import Kind, Unshown, as_notice, cell_anchor
from docvqa_site.ui.delimiters import MARK
from docvqa_site.ui.front_matter import split_front_matter
from docvqa_site.ui.markdown import Allowance, Prepared, cleaned, prepare, render_prepared
from docvqa_site.ui.math import Formulas
from evaluator.errors import ErrorCode, ProblemError

# Of a Markdown file; a longer cell is shortened.
MAX_TEXT_CHARACTERS = 100_000
# Of an output, and how many of them are those at its end.
MAX_OUTPUT_CHARACTERS = 20_000
END_CHARACTERS = 5_000
# Of the HTML of a whole notebook: as much as its images can be.
MAX_SHOWN_CHARACTERS = 16 * 1024 * 1024
MAX_NAME_CHARACTERS = 100
# How Python names an object that has no text of its own.
OBJECT_NAME = re.compile(r"\s*<[^<>\n]{1,500}>\s*")
PLAIN, MARKDOWN, LATEX = "text/plain", "text/markdown", "text/latex"


@dataclass(frozen=True)
class RenderedProof:
    """A proof as HTML, with a notice at its top of what isn't shown, and this as a list; and its sections."""

    html: SafeString
    unshown: tuple[Unshown, ...] = ()
    sections: tuple[Section, ...] = ()


def render_proof(content: bytes, filename: str) -> RenderedProof:
    """Return the Markdown file or notebook as HTML. Raises `ProblemError`: `E_ARTIFACT_SIZE` or `E_PROOF_FORMAT`."""
    _require_size(content, filename)
    match PurePath(filename).suffix.lower():
        case ".md":
            return _markdown_file(decoded(content, filename), filename)
        case ".ipynb":
            return _notebook(read_notebook(decoded(content, filename), filename).cells, filename)
        case suffix:
            raise ProblemError.of(
                ErrorCode.PROOF_FORMAT,
                where=filename,
                expected="a file that ends in .md, .ipynb or .pdf",
                found=suffix or "no ending",
            )


def text_lines(content: bytes, filename: str) -> list[str]:
    """Return the lines of the Markdown file or notebook, for a comparison. Raises `ProblemError` as `render_proof`."""
    _require_size(content, filename)
    text = decoded(content, filename)
    if PurePath(filename).suffix.lower() != ".ipynb":
        return text.splitlines()
    lines = []
    for cell in read_notebook(text, filename).cells:
        lines += [f"[{cell.cell_type}]", *joined(cell.source).splitlines()]
        for output in cell.merged_outputs():
            texts = [joined(output.text), _formatted(output) or output.content(PLAIN), _error(output)]
            lines += ["[output]", *(line for text in texts for line in text.splitlines())]
            lines += ["[picture]"] if KINDS.keys() & output.data.keys() else []
    return lines


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


def _markdown_file(text: str, filename: str) -> RenderedProof:
    """Return the text below its list of contents, its front matter, such as hashes of code, folded away above both."""
    front, rest = split_front_matter(text)
    rest, attachments = detached(rest)
    for part in (front, rest):
        _require_length(part, filename)
    page = _Page(filename)
    (prepared,) = prepare([rest], page.allowance)
    html = page.prose(prepared, attachments)
    table = as_table(front) if front else ""
    return RenderedProof(
        format_html("{}{}{}{}", as_notice(page.unshown), table, page.outline.as_html(), html),
        tuple(page.unshown),
        tuple(page.outline.sections()),
    )


def _notebook(cells: Sequence[Cell], filename: str) -> RenderedProof:
    page = _Page(filename)
    parts = [_Part(number, cell, list(cell.merged_outputs())) for number, cell in enumerate(cells, 1)]
    # All texts together may be as long as one Markdown file, and share its commands and numbers.
    prepared = iter(prepare([text for part in parts for text in part.formatted()], page.allowance))
    shown = list(_within_limit(page.cell(part, prepared) for part in parts))
    html = format_html(
        "{}{}{}",
        as_notice(page.unshown),
        page.outline.as_html(),
        mark_safe("".join(shown)),  # noqa: S308  (each part is safe)
    )
    return RenderedProof(html, tuple(page.unshown), tuple(page.outline.sections()))


class _Part:
    """A cell with its number and what it put out. The pictures in a text of Markdown become attachments."""

    def __init__(self, number: int, cell: Cell, outputs: Sequence[Output]) -> None:
        self.number, self.cell, self.outputs = number, cell, outputs
        self.source = joined(cell.source)
        self.attachments: dict[str, Bundle] = dict(cell.attachments)
        if cell.cell_type == "markdown":
            self.source, embedded = detached(self.source)
            self.attachments |= embedded

    def formatted(self) -> Iterator[str]:
        """Yield the texts with formulas, in their order."""
        if self.cell.cell_type == "markdown":
            yield self.source
        yield from filter(None, map(_formatted, self.outputs))


@dataclass
class _Page:
    """The page of one proof while it is made."""

    filename: str
    allowance: Allowance = field(default_factory=lambda: Allowance(formulas=Formulas(prefix="proof-eq-")))
    outline: Outline = field(default_factory=Outline)
    unshown: list[Unshown] = field(default_factory=list)
    number: int = 0

    def cell(self, part: _Part, prepared: Iterator[Prepared]) -> SafeString:
        """Return a cell with its outputs; `prepared` has the texts with formulas that come next."""
        self.number = part.number
        shown: list[str] = []
        if part.cell.cell_type == "markdown":
            shown.append(self.prose(next(prepared), part.attachments))
        elif part.source.strip():
            count = "" if part.cell.execution_count is None else f" [{part.cell.execution_count}]"
            label = f"{part.cell.cell_type.capitalize()}{count}"
            shown.append(self._preformatted(part.source, part.cell.cell_type, label, MAX_TEXT_CHARACTERS))
        for output in part.outputs:
            shown += self._output(output, next(prepared) if _formatted(output) else None)
        html = mark_safe("".join(shown))  # noqa: S308  (each part is safe)
        return format_html('<div id="{}">{}</div>', cell_anchor(part.number), html)

    def prose(self, prepared: Prepared, attachments: dict[str, Bundle]) -> SafeString:
        """Return a text of Markdown with its pictures."""
        self._note_formulas(prepared)
        pictures = Pictures()
        adapt = partial(
            self.outline.adapt,
            show_picture=partial(self._attached, attachments=attachments, pictures=pictures),
        )
        html = wrap_tables(render_prepared(prepared, self.allowance, adapt=adapt))
        return format_html('<div class="prose">{}</div>', mark_safe(pictures.put(html)))  # noqa: S308  (all are safe)

    def _attached(
        self, address: str, text: str, attachments: dict[str, Bundle], pictures: Pictures
    ) -> str | None:
        """Return what is in the place of a picture in a text: the picture, or why it isn't there."""
        if leads_out(address):
            self._note(Kind.PICTURE, address, "it is on another site")
            return None
        name = unquote(address).removeprefix(ATTACHMENT)
        bundle = attachments.get(name, {}) if address.startswith(ATTACHMENT) else {}
        for kind, content in bundle.items():
            try:
                return pictures.mark(picture(kind, joined(content), text or f"Picture {name}"))
            except UnshownError as error:
                self._note(Kind.PICTURE, name, str(error))
                return f"Image: {text} ({name}, not shown)"
        self._note(Kind.PICTURE, address, "it is not part of the proof")
        return f"Image: {text} ({address}, not part of the proof)"

    def _output(self, output: Output, prepared: Prepared | None) -> Iterator[SafeString]:
        for text in filter(None, (joined(output.text), _error(output))):
            yield self._printed(text)
        plain = as_terminal(output.content(PLAIN))
        has_text = bool(plain.strip()) and not OBJECT_NAME.fullmatch(plain)
        if prepared is not None and output.content(MARKDOWN):
            yield self.prose(prepared, {})
        elif prepared is not None and not (has_text and any(drawn.problem for drawn in prepared.drawn)):
            yield self._latex(prepared)
        elif shown := self._picture(output):
            yield shown
        elif has_text:
            yield self._printed(plain)
        elif kinds := sorted(output.data.keys() - {PLAIN} - KINDS.keys()):
            names = ", ".join(kind[:MAX_NAME_CHARACTERS] for kind in kinds)
            self._note(Kind.OUTPUT, names, "this kind of output is not shown")
            yield format_html('<p class="muted small">An output of the type {} is not shown.</p>', names)
        elif plain:
            yield self._printed(plain)

    def _latex(self, prepared: Prepared) -> SafeString:
        """Return a text of LaTeX: its formulas drawn, and all else as it was written."""
        self._note_formulas(prepared)
        pieces = MARK.split(prepared.text)
        # Every second piece is the number of a formula.
        html = "".join(
            prepared.drawn[int(piece)].html if index % 2 else escape(piece)
            for index, piece in enumerate(pieces)
        )
        self.allowance.output -= len(html)
        return format_html('<div class="prose"><p>{}</p></div>', mark_safe(cleaned(html)))  # noqa: S308  (just cleaned)

    def _picture(self, output: Output) -> SafeString | None:
        """Return the first picture of an output that can be shown."""
        for kind in KINDS:
            if not (content := output.content(kind)):
                continue
            try:
                name = f"Picture in the output of {self.filename}, cell {self.number}"
                return format_html("<p>{}</p>", picture(kind, content, name))
            except UnshownError as error:
                self._note(Kind.PICTURE, kind, str(error))
        return None

    def _printed(self, text: str) -> SafeString:
        return self._preformatted(text, "output", "Output", MAX_OUTPUT_CHARACTERS)

    def _preformatted(self, text: str, kind: str, label: str, limit: int) -> SafeString:
        """Return a text as it was printed; of a long one the beginning and the end."""
        # What is wide scrolls by itself, so a keyboard must reach it.
        block = partial(format_html, '<pre class="proof-{}" tabindex="0"><code>{}</code></pre>', kind)
        shown = block(text)
        if len(text) > limit:
            left_out = len(text) - limit
            self._note(Kind.OUTPUT, label, f"it is long, and {left_out:,} characters are left out")
            shown = format_html(
                '{}<p class="notice notice-info">{} characters are left out here.</p>{}',
                block(text[: limit - END_CHARACTERS]),
                f"{left_out:,}",
                block(text[-END_CHARACTERS:]),
            )
        return format_html('<div class="proof-cell"><p class="muted small">{}</p>{}</div>', label, shown)

    def _note_formulas(self, prepared: Prepared) -> None:
        for drawn in prepared.drawn:
            if drawn.problem:
                self._note(Kind.FORMULA, drawn.formula.source, drawn.problem)

    def _note(self, kind: Kind, source: str, reason: str) -> None:
        self.unshown.append(Unshown(kind, source, reason, self.number))


def _formatted(output: Output) -> str:
    """Return what an output has of Markdown or LaTeX."""
    return output.content(MARKDOWN) or output.content(LATEX)


def _error(output: Output) -> str:
    return f"{output.ename}: {output.evalue}" if output.output_type == "error" else ""


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


def _require_length(text: str, where: str) -> None:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ProblemError.of(
            ErrorCode.PROOF_FORMAT,
            where=where,
            expected=f"at most {MAX_TEXT_CHARACTERS:,} characters",
            found=f"{len(text):,} characters",
        )
