"""Submissions and runs as the organizers see them. What teams submitted isn't edited."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from docvqa_site.audit.admin import ModelT, ReadOnlyAdmin, ReadOnlyInline
from docvqa_site.audit.mass_actions import mass_action
from docvqa_site.submissions.models import Artifact, Run, RunToken, Submission
from docvqa_site.submissions.selectors import competed_tracks, private_through
from docvqa_site.submissions.services import mark_baseline


class PrivateAdmin(ReadOnlyAdmin[ModelT]):
    """Submissions, or rows that lead to them by `to_submission`, but those of tracks in which the visitor competes."""

    to_submission = ""
    list_per_page = 50
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelT]:
        return super().get_queryset(request).filter(private_through(request.user, self.to_submission))


class RunInline(ReadOnlyInline[Run, Submission]):
    model = Run
    fields = readonly_fields = ("budget", "state", "numbers", "scored_at")

    @admin.display(description="results")
    def numbers(self, run: Run) -> SafeString:
        """Return every result that is a single value, by its name."""
        values = run.results.model_dump(mode="json", exclude_defaults=True, exclude={"epsilons", "checks"})
        return format_html_join("", "<div>{}: {}</div>", values.items())


class ArtifactInline(ReadOnlyInline[Artifact, Submission]):
    model = Artifact
    fields = readonly_fields = ("kind", "run", "upload", "created_at")


@admin.register(Submission)
class SubmissionAdmin(PrivateAdmin[Submission]):
    """The submissions, which organizers may mark as baselines."""

    list_display = (
        "title",
        "of_team",
        "track",
        "phase",
        "state",
        "is_baseline",
        "practice",
        "submitted_at",
        "published_at",
    )
    list_filter = ("track", "state", "is_baseline", "practice")
    list_select_related = ("team", "track", "phase")
    search_fields = ("title", "team__name", "alias")
    date_hierarchy = "created_at"
    exclude = ("code_url", "paper_url")
    readonly_fields = ("id", "code", "paper")
    inlines = (RunInline, ArtifactInline)
    actions = ("mark_as_baseline", "unmark_as_baseline")

    @admin.display(description="team", ordering="team__name")
    def of_team(self, submission: Submission) -> SafeString:
        """Return the team, with a link to its page on the desk."""
        page = reverse("organizers:team", args=[submission.team_id])
        return format_html('<a href="{}">{}</a>', page, submission.team)

    @admin.display(description="link to the code")
    def code(self, submission: Submission) -> str:
        """Return the link as text: nobody should follow what a team gives from here."""
        return submission.code_url

    @admin.display(description="link to a paper")
    def paper(self, submission: Submission) -> str:
        return submission.paper_url

    def has_change_permission(self, request: HttpRequest, obj: Submission | None = None) -> bool:
        """Return whether the list's actions may be used; a page of one submission has nothing to save."""
        return obj is None and admin.ModelAdmin.has_change_permission(self, request)

    @mass_action(
        "Mark as baseline",
        effect="Baselines keep their ranks and are labeled on the leaderboards, where visitors can hide them.",
        permissions=["change"],
    )
    def mark_as_baseline(self, request: HttpRequest, queryset: QuerySet[Submission]) -> None:
        self._mark(request, queryset, is_baseline=True)

    @mass_action(
        "Remove the baseline mark",
        effect="They keep their ranks. The leaderboards no longer label them or hide them with the baselines.",
        permissions=["change"],
    )
    def unmark_as_baseline(self, request: HttpRequest, queryset: QuerySet[Submission]) -> None:
        self._mark(request, queryset, is_baseline=False)

    def _mark(self, request: HttpRequest, submissions: QuerySet[Submission], *, is_baseline: bool) -> None:
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        for submission in submissions:
            mark_baseline(submission, is_baseline, request.user)
        self.message_user(request, "Done.", messages.SUCCESS)


@admin.register(RunToken)
class RunTokenAdmin(ReadOnlyAdmin[RunToken]):
    """Which trainings the teams began, and which of them became runs."""

    list_display = ("token", "team", "track", "issued_to", "issued_at", "challenged_at", "run", "explanation")
    list_filter = ("track", "issued_at")
    list_select_related = ("team", "track", "issued_to", "run__submission")
    search_fields = ("token", "team__name")
    date_hierarchy = "issued_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunToken]:
        """Leave out the tracks in which the visitor competes."""
        assert request.user.is_authenticated  # noqa: S101  (the admin lets nobody else in)
        return super().get_queryset(request).exclude(track__in=competed_tracks(request.user))
