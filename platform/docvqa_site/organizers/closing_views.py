"""The page that closes a phase: what must hold before, what would be published, and the button."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.boards.snapshots import BoardsChangedError
from docvqa_site.challenge.models import Phase
from docvqa_site.organizers import closing
from docvqa_site.organizers.access import CLOSING, FORM, for_organizers, organized_phase
from docvqa_site.organizers.forms import ResultsForm
from docvqa_site.submissions.deadline_reminders import participants


@for_organizers(*CLOSING, methods=FORM)
def close(request: UserRequest, slug: str, phase_id: int) -> HttpResponseBase:
    """Show what is in the way; a POST shows what would be published, and publishes it once that was seen."""
    phase = organized_phase(request.user, slug, phase_id)
    published = phase.final_results.all()
    form = ResultsForm(request.POST or None, initial=_suggested(phase), is_correction=bool(published))
    publication, seen = None, request.POST.get("seen", "")
    if request.method == "POST" and "edit" not in request.POST and form.is_valid():
        publication = closing.Publication(*(form.cleaned_data[name] for name in ("slug", "title", "text")))
    if publication and seen and "confirmed" not in request.POST:
        messages.error(request, "Confirm that the results are to be published: tick the box.")
    elif publication and seen:
        try:
            results = closing.close_phase(phase, publication, seen=seen, actor=request.user)
        except (closing.NotReadyError, BoardsChangedError):
            messages.warning(request, "Something has changed in the meantime; please review this page again.")
        else:
            messages.success(request, "The final results are published and announced.")
            return redirect(results)
    now, standings = timezone.now(), closing.standings(phase)
    conditions = closing.conditions(phase, now)
    context = {
        "track": phase.track,
        "phase": phase,
        "form": form,
        "conditions": conditions,
        "is_ready": closing.is_ready(conditions),
        "warnings": list(closing.warnings(phase, now)),
        "standings": standings,
        "baselines": closing.baselines(standings),
        "unranked": closing.unranked(phase),
        "publication": publication,
        "seen": closing.version_of(phase),
        "published": published,
    }
    if publication:
        context |= {
            "announcement": closing.announcement_of(phase, publication, published.first()),
            "reached": participants(phase.track).count(),
        }
    return render(request, "organizers/close.html", context)


def _suggested(phase: Phase) -> dict[str, str]:
    today = timezone.now()
    number = phase.final_results.count()
    again = f"-{number + 1}" if number else ""
    kind = "corrected final results" if number else "final results"
    version = f", version {number + 1}" if number > 1 else ""
    return {
        "slug": f"{phase.track.slug}-{today:%Y-%m}{again}",
        "title": f"{phase.track}, {phase}: {kind} {today:%Y}{version}",
    }
