"""The final results of closed phases: their pages and their files, which never change."""

import io
import zipfile
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.corrections import corrections
from docvqa_site.boards.models import FinalResults, FrozenFile
from docvqa_site.boards.verify_snapshot import SUMS

WITH_PHASE = FinalResults.objects.select_related("phase__track")
TYPES = {
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".cff": "application/yaml; charset=utf-8",
}
PLAIN = "text/plain; charset=utf-8"
# The same moment in every copy of an archive, so that all are equal byte for byte: the earliest that the format has.
MOMENT = (1980, 1, 1, 0, 0, 0)

immutable: Callable[..., Callable[..., HttpResponse]] = cache_control(
    public=True, max_age=31_536_000, immutable=True
)


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    found = list(WITH_PHASE.all())
    newest: dict[int, FinalResults] = {}
    for results in found:
        newest.setdefault(results.phase_id, results)
    first = {results.phase_id: results for results in found}
    all_results = [
        (results, newest[results.phase_id], first[results.phase_id] != results) for results in found
    ]
    return render(request, "pages/results_list.html", {"all_results": all_results})


@require_safe
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the standings, the files with their hashes, and how to cite and verify them."""
    results = get_object_or_404(WITH_PHASE, slug=slug)
    files = list(results.files.defer("compressed"))
    newest = FinalResults.objects.filter(phase=results.phase).first()
    context = {
        "results": results,
        "files": files,
        "sums": next((file for file in files if file.name == SUMS), None),
        "newer": newest if newest != results else None,
        "earlier": results.corrected,
        "reason": _reason(results),
        "corrections": corrections([results]),
    }
    return render(request, "pages/results.html", context)


def _reason(results: FinalResults) -> str:
    """Return why these results correct earlier ones, as it was recorded; empty where they don't, or nothing was."""
    closed = AuditEntry.objects.filter(
        action="phase.closed", object_id=str(results.phase_id), details__results=results.slug
    ).first()
    return closed.details.get("reason", "") if closed else ""


@require_safe
def bibtex_file(_request: HttpRequest, slug: str) -> HttpResponse:
    results = get_object_or_404(FinalResults, slug=slug)
    return HttpResponse(results.bibtex + "\n", content_type="application/x-bibtex; charset=utf-8")


@immutable
@require_safe
def file(_request: HttpRequest, slug: str, name: str) -> HttpResponse:
    found = get_object_or_404(FrozenFile, results__slug=slug, name=name)
    suffix = name[name.rfind(".") :]
    # As it was frozen, so that its hash is right wherever it is saved.
    return HttpResponse(found.content, content_type=TYPES.get(suffix, PLAIN))


@immutable
@require_safe
def archive(_request: HttpRequest, slug: str) -> HttpResponse:
    """Send all files in a folder, where `verify.py` finds them."""
    results = get_object_or_404(FinalResults, slug=slug)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as folder:
        for one in results.files.all():
            folder.writestr(zipfile.ZipInfo(f"{slug}/{one.name}", MOMENT), one.content, zipfile.ZIP_DEFLATED)
    headers = {"Content-Disposition": f'attachment; filename="{slug}.zip"'}
    return HttpResponse(buffer.getvalue(), content_type="application/zip", headers=headers)
