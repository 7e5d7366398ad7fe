"""Appeals against disqualifications: a team asks once for each reason, and an organizer answers."""

from collections.abc import Collection

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.reviews.appeals import appeal_text, quoted
from docvqa_site.reviews.eligibility import organizers_for
from docvqa_site.reviews.models import RunAppeal
from docvqa_site.submissions.models import Run, Submission, SubmissionState
from docvqa_site.submissions.services import disqualify
from docvqa_site.teams.selectors import active_members

MAX_ANSWER = 2_000
LIFTED = "The disqualification has been lifted."


def may_appeal(run: Run) -> bool:
    """Return whether the run's team may appeal: it is disqualified, for a reason that it hasn't appealed against."""
    is_out = bool(run.disqualified_because) and run.submission.state == SubmissionState.SUBMITTED
    return is_out and not run.appeals.filter(reason=run.disqualified_because).exists()


def appeal(run: Run, text: str, *, author: User) -> RunAppeal:
    """Ask the organizers to look at the disqualification again, which stands meanwhile.

    Raises:
        PermissionDenied: The author isn't a member of the run's team.
        ValidationError: The run isn't disqualified, its team has appealed already, or the text is empty or too long.
    """
    submission = run.submission
    text = appeal_text(submission, text, author)
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("submission").get(pk=run.pk)
        if not may_appeal(run):
            raise ValidationError("A team can appeal once against each disqualification.")
        found = RunAppeal.objects.create(run=run, reason=run.disqualified_because, author=author, text=text)
        record(author, "run_appeal.made", found, run=str(run.pk), text=text)
        lines = [
            f"The team of “{run}” has appealed its disqualification.",
            *quoted(text),
            "Lift the disqualification, or explain why it stands:",
            settings.SITE_URL + reverse("organizers:run", args=[run.pk]),
        ]
        notify(organizers_for(submission), Kind.REVIEWING, f"{run}: appeal", lines)
    return found


def appealable(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return those whose teams may appeal; see `may_appeal`."""
    made = RunAppeal.objects.filter(run=OuterRef("pk"), reason=OuterRef("disqualified_because"))
    out = runs.exclude(disqualified_because="").filter(submission__state=SubmissionState.SUBMITTED)
    return out.filter(~Exists(made))


def open_appeals(submissions: QuerySet[Submission] | Collection[Submission]) -> QuerySet[RunAppeal]:
    """Return the appeals on runs of these submissions that wait for an answer, the oldest first."""
    return RunAppeal.objects.filter(answered_at__isnull=True, run__submission__in=submissions)


@transaction.atomic
def answer(found: RunAppeal, text: str, *, actor: User, lifts: bool = False) -> None:
    """Answer an open appeal, and notify the team; `lifts` gives the run its rank back."""
    current = RunAppeal.objects.select_for_update().get(pk=found.pk)
    if current.answered_at is not None:
        return
    text = text.strip()[:MAX_ANSWER] or LIFTED
    current.answer, current.answered_at = text, timezone.now()
    current.save(update_fields=["answer", "answered_at"])
    record(actor, "run_appeal.answered", current, run=str(current.run_id), text=text, lifts=lifts)
    run = Run.objects.select_related("submission__team").get(pk=current.run_id)
    notify(
        active_members(run.submission.team),
        Kind.RESULTS,
        f"Your appeal for “{run}” has been answered",
        [
            f"The disqualification of “{run}” {'has been lifted' if lifts else 'stands'}. The organizers' answer:",
            text,
            settings.SITE_URL + reverse("reviews:run_appeal", args=[run.pk]),
        ],
        is_official=True,
    )


@transaction.atomic
def lift(run: Run, *, actor: User, reason: str = "") -> None:
    """Give a disqualified run its rank back, and answer an open appeal; the team reads the reason."""
    pending = run.appeals.filter(answered_at__isnull=True).first()
    disqualify(run, "", actor, lifted_because=reason)
    if pending:
        answer(pending, reason, actor=actor, lifts=True)
