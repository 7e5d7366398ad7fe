"""A version of a proof as a page shows it: its HTML, or the pages of a PDF, or why there is nothing to see."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.core.cache import caches
from django.utils import timezone
from django.utils.safestring import mark_safe

from docvqa_site.proofs.models import Drawing, DrawingState, Page
from docvqa_site.proofs.named_code import NamedCode, named_code
from docvqa_site.proofs.outline import Section
from docvqa_site.proofs.pages import draw_later
from docvqa_site.proofs.reading import is_pdf, read_proof
from docvqa_site.proofs.rendering import RenderedProof, render_proof
from docvqa_site.proofs.unshown import Kind, Unshown, summary
from docvqa_site.submissions.models import Artifact
from docvqa_site.uploads.models import Upload
from evaluator.errors import Problem, ProblemError
from evaluator.messages.jobs import evaluator_version

MAX_CACHED_CHARACTERS = 1_000_000
CACHED_SECONDS = 24 * 3600
LATE = timedelta(minutes=15)


@dataclass(frozen=True)
class ShownPage:
    """One page of a PDF: its row, and the address of its image."""

    page: Page
    url: str


@dataclass(frozen=True)
class ShownProof:
    """What a page shows of one version of a proof.

    Attributes:
        is_waiting: Its pages are about to be drawn.
        is_late: They should have been by now.
        unshown: What of a Markdown file or notebook the page doesn't show.
    """

    artifact: Artifact
    html: str = ""
    pages: Sequence[ShownPage] = ()
    problems: Sequence[Problem] = ()
    is_waiting: bool = False
    is_late: bool = False
    unshown: Sequence[Unshown] = ()

    @property
    def total(self) -> int:
        """The number of a PDF's pages; 0 while some may be missing."""
        return 0 if self.is_waiting or self.problems else len(self.pages)


def prepare(*, upload: Upload, **_: object) -> None:
    """Render a proof, or have its pages drawn soon; receives `submissions.signals.proof_arrived`.

    Raises `ProblemError` where a Markdown file or notebook can't be shown.
    """
    if is_pdf(upload):
        draw_later(upload)
    else:
        _rendered(upload)
        named_code(upload)


@dataclass(frozen=True)
class Display:
    """How a proof is displayed: what reviewers can't see of it, and whether its pages are still being drawn.

    Attributes:
        is_late: They should have been by now.
        unshown: How many parts of each kind its page doesn't show, such as "2 formulas, 1 picture".
        code: The code that it cites, as reviewers see it.
    """

    problems: Sequence[Problem] = ()
    is_waiting: bool = False
    is_late: bool = False
    unshown: str = ""
    code: NamedCode | None = None


def display_of(upload: Upload) -> Display:
    """Return how the file of a proof is displayed. It was rendered when it arrived, so that this is fast."""
    if is_pdf(upload):
        drawing = draw_later(upload)
        return Display(_problems(drawing), drawing.state == DrawingState.WAITING, _is_late(drawing))
    try:
        return Display(unshown=summary(_rendered(upload).unshown), code=named_code(upload))
    except ProblemError as error:
        return Display(error.problems)
    except FileNotFoundError:
        # A rule of retention has removed it.
        return Display()


def display_problems(*, upload: Upload, **_: object) -> Sequence[Problem]:
    """Return why the pages of a PDF can't be shown; receives `submissions.signals.display_asked`.

    Other proofs that can't be shown aren't accepted in the first place.
    """
    return _problems(draw_later(upload)) if is_pdf(upload) else ()


def shown_proof(artifact: Artifact, page_url: Callable[[int], str]) -> ShownProof:
    """Return what is shown of this version; `page_url` makes the address of a page's image from its number.

    Raises `FileNotFoundError` if the store doesn't have the file.
    """
    if is_pdf(artifact.upload):
        return _pages(artifact, page_url)
    try:
        rendered = _rendered(artifact.upload)
        return ShownProof(artifact, html=rendered.html, unshown=rendered.unshown)
    except ProblemError as error:
        return ShownProof(artifact, problems=error.problems)


def sections_of(upload: Upload) -> Sequence[Section]:
    """Return the sections of a proof, to which other pages can lead; none of a PDF, and of what can't be shown."""
    if is_pdf(upload):
        return ()
    stored = caches["pages"].get(_key(upload)) or {}
    if (known := stored.get("sections")) is not None:
        return [Section(**one) for one in known]
    try:
        return _rendered(upload).sections
    except (FileNotFoundError, ProblemError):
        return ()


def _pages(artifact: Artifact, page_url: Callable[[int], str]) -> ShownProof:
    drawing = draw_later(artifact.upload)
    pages = [ShownPage(page, page_url(page.number)) for page in drawing.pages.all()]
    return ShownProof(
        artifact,
        pages=pages,
        problems=_problems(drawing),
        is_waiting=drawing.state == DrawingState.WAITING,
        is_late=_is_late(drawing),
    )


def _is_late(drawing: Drawing) -> bool:
    return drawing.created_at < timezone.now() - LATE


def _problems(drawing: Drawing) -> list[Problem]:
    return [Problem.model_validate(drawing.problem)] if drawing.problem else []


def _key(upload: Upload) -> str:
    # By the upload, not by its hash: that is what the uploader announced, and nobody may name another team's.
    return f"proof:{evaluator_version()}:{upload.pk}"


def _rendered(upload: Upload) -> RenderedProof:
    """Return the proof as HTML, which is rendered once unless images make it large."""
    cache, key = caches["pages"], _key(upload)
    if (stored := cache.get(key)) and stored["html"]:
        unshown = tuple(Unshown(**{**one, "kind": Kind(one["kind"])}) for one in stored["unshown"])
        sections = tuple(Section(**one) for one in stored.get("sections", ()))
        return RenderedProof(mark_safe(stored["html"]), unshown, sections)  # noqa: S308  (it was rendered here)
    rendered = render_proof(read_proof(upload), upload.filename)
    kept = asdict(rendered)
    if len(rendered.html) > MAX_CACHED_CHARACTERS:
        kept["html"] = ""
    cache.set(key, kept, CACHED_SECONDS)
    return rendered
