"""The submissions of teams: a Submission is one method in one track, a Run one trained checkpoint of it.

In tracks with budgets each training carries a RunToken, which the site issued before.
"""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Lower
from django.utils import timezone
from typing_extensions import override

from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.rankings import DISQUALIFIED
from docvqa_site.submissions.results_field import FLAGGED, ResultsField
from docvqa_site.teams.models import Team
from docvqa_site.ui.budgets import at_budget, plain
from docvqa_site.ui.names import NameField
from docvqa_site.uploads.models import Upload
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.results import RunResults
from evaluator.messages.states import RunState as RunState
from evaluator.messages.states import SubmissionState as SubmissionState

ARTIFACT_KINDS = [(kind.value, kind.value.replace("_", " ")) for kind in ArtifactKind]
SUBMISSION_STATES = [(state.value, state.value) for state in SubmissionState]
RUN_STATES = [(state.value, state.value) for state in RunState]
PROOFS_WITHOUT_RUN = models.Q(kind="privacy_proof", run__isnull=True) | (
    ~models.Q(kind="privacy_proof") & models.Q(run__isnull=False)
)

# Two rejections which no greater number of acceptances outweighs, or one which nobody contradicted in time.
REJECTED = models.Q(rejection_stands=True, rejections=1, acceptances=0, change_requests=0) | (
    models.Q(rejections__gte=2) & models.Q(rejections__gte=models.F("acceptances"))
)

# A revised proof, after such a rejection, that no reviewer has accepted yet.
UNACCEPTED_REVISION = {"revises_rejected": True, "acceptances": 0}

# Of a team to its reviewers, with a revised proof.
MAX_NOTE = 2_000


class Refund(models.TextChoices):
    """Why a quota slot was given back."""

    PLATFORM = "platform", "the platform failed"
    REJECTED = "rejected", "the files were rejected before scoring"


class Submission(models.Model):
    """One method of a team in one track, with its description and its runs.

    Once it is submitted it belongs to a phase, and is public from `published_at` on: at once, at the end of a phase
    that keeps results back, or, where the team chose `keep_private`, when the team publishes it. While it is
    `anonymous`, the public reads `alias` in place of the team. See `docvqa_site.submissions.publication`. One for
    `practice` is never published, so that it has no rank and no review; its name says so wherever it is shown.

    How many reviewers have made each decision on its proof is written by `reviews.models.ProofReview` alone.
    `rejection_stands` says that the only decision is a rejection, and that nobody has contradicted it in time.
    `revises_rejected` says that the version of the proof before the newest one took the rank, so that it is withheld
    until a reviewer accepts the newest one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="submissions")
    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="submissions")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    title = NameField(max_length=120, help_text="The method's name, as it appears on the leaderboard.")
    description = models.TextField(blank=True, max_length=10_000, help_text="Markdown.")
    code_url = models.URLField("link to the code", blank=True)
    paper_url = models.URLField("link to a paper", blank=True)
    license = models.CharField(
        max_length=80,
        blank=True,
        editable=False,
        help_text="The SPDX identifier of the license that the team accepted when it submitted.",
    )
    is_baseline = models.BooleanField(default=False, help_text="Marked as the organizers' baseline.")
    state = models.CharField(max_length=10, choices=SUBMISSION_STATES, default=SubmissionState.DRAFT)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    phase = models.ForeignKey(
        Phase, on_delete=models.PROTECT, related_name="submissions", null=True, blank=True
    )
    submitted_at = models.DateTimeField(null=True, blank=True, db_index=True)
    keep_private = models.BooleanField(
        "keep it unpublished",
        default=False,
        help_text="Only your team and the organizers can see it until you publish it. Reviews start after "
        "publication.",
    )
    published_at = models.DateTimeField(null=True, blank=True, help_text="Empty while it isn't public.")
    practice = models.BooleanField(
        "submit for practice",
        default=False,
        help_text="Practice submissions are evaluated like any other, but are never public, reviewed or "
        "ranked. They need no proof, may repeat a checkpoint, have scores with two decimals, and don't "
        "count against the quota.",
    )
    anonymous = models.BooleanField(
        "stay anonymous",
        default=False,
        help_text="Listed by title under a random name, without its team, description and links. Organizers "
        "and "
        "reviewers can see your team so that they can spot conflicts of interest.",
    )
    alias = models.CharField(
        max_length=40, blank=True, help_text="The name shown while the submission is anonymous."
    )
    refunded_at = models.DateTimeField(null=True, blank=True, help_text="When the quota slot was returned.")
    refunded_for = models.CharField(max_length=10, choices=Refund.choices, blank=True)
    publishes_proof = models.BooleanField(
        "publish the privacy proof",
        default=False,
        help_text="The team agrees to make the proof and the checklist public while the result is verified.",
    )
    edited_at = models.DateTimeField(
        null=True, blank=True, help_text="When its description or links were last changed after submission."
    )
    acceptances = models.PositiveSmallIntegerField(default=0, editable=False)
    rejections = models.PositiveSmallIntegerField(default=0, editable=False)
    change_requests = models.PositiveSmallIntegerField(default=0, editable=False)
    rejection_stands = models.BooleanField(default=False, editable=False)
    revises_rejected = models.BooleanField(default=False, editable=False)
    # Whether they withhold the rank, by which every board is selected.
    proof_rejected = models.GeneratedField(
        expression=models.ExpressionWrapper(REJECTED, models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
    )
    # For searches: to lower thousands of texts takes most of one. A letter may become two, so they have no length.
    lower_title = models.GeneratedField(
        expression=Lower("title"), output_field=models.TextField(), db_persist=True
    )
    lower_description = models.GeneratedField(
        expression=Lower("description"), output_field=models.TextField(), db_persist=True
    )

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(
                fields=["track"],
                include=[
                    "id",
                    "team",
                    "submitted_at",
                    "anonymous",
                    "created_by",
                    "published_at",
                    "phase",
                    "acceptances",
                    "rejections",
                    "change_requests",
                    "rejection_stands",
                    "proof_rejected",
                    "revises_rejected",
                ],
                condition=models.Q(state="submitted", published_at__isnull=False),
                name="submissions_on_boards",
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(state="submitted") | models.Q(submitted_at__isnull=False),
                name="submitted_submissions_have_a_time",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="submitted") | models.Q(phase__isnull=False),
                name="submitted_submissions_have_a_phase",
            ),
            models.CheckConstraint(
                condition=models.Q(published_at__isnull=True) | models.Q(submitted_at__isnull=False),
                name="only_what_was_submitted_is_published",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="submitted", anonymous=True) | ~models.Q(alias=""),
                name="anonymous_submissions_have_an_alias",
            ),
            models.CheckConstraint(
                condition=models.Q(practice=False) | models.Q(published_at__isnull=True),
                name="practice_is_never_published",
            ),
            models.UniqueConstraint(
                fields=["alias"], condition=~models.Q(alias=""), name="every_alias_is_of_one_submission"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title} (practice)" if self.practice else self.title

    def get_absolute_url(self) -> str:
        from django.urls import reverse

        return reverse("submissions:detail", args=[self.id])

    @property
    def is_unpublished(self) -> bool:
        """Whether it is submitted, and only its team and the organizers see it."""
        return self.state == SubmissionState.SUBMITTED and self.published_at is None

    @property
    def slot(self) -> str:
        """What it uses of its team's limits: practice submissions have one of their own."""
        return "practice slot" if self.practice else "quota slot"

    @property
    def required_proofs(self) -> tuple[ArtifactKind, ...]:
        """The files of the submission as a whole that it needs."""
        return () if self.practice else self.track.kind.submission_artifacts

    @property
    def author(self) -> str:
        """Who everybody may know it is from: its team, or its alias while it is anonymous."""
        return self.alias if self.anonymous else self.team.name

    def proof(self) -> "Artifact | None":
        """Return the newest version of the privacy proof, if it is uploaded."""
        return self.artifacts.filter(kind=ArtifactKind.PRIVACY_PROOF, state=ArtifactState.ATTACHED).first()


def _result_column(name: str, kind: "models.Field[Any, Any]") -> "models.GeneratedField":
    """Return a column with one of the results, which the database computes from the document."""
    return models.GeneratedField(
        expression=Cast(KeyTextTransform(name, "results"), kind), output_field=kind, db_persist=True
    )


class Run(models.Model):
    """One checkpoint. `results` are those of the steps of its last attempt that have passed so far.

    A run that was scored, as `scored_at` says, is listed with these results until another attempt has scored or
    rejected it; meanwhile `pending` has what the steps of that attempt have found out.
    `rules` are frozen at submission. `challenge` is that of the run token in its training record, which its annex
    answers, or that of its index of messages, of which it opens rounds; empty while it has neither. `drawn_rounds` is
    how many rounds it draws: the track's number at the draw, null before it. The results by which boards are ordered
    have columns too, for queries only: an instance has their values of the time at which it was loaded. So has the
    number of flagged checks, which is null where there are none.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="runs")
    budget = models.FloatField(
        null=True, blank=True, help_text="ε of the board; empty in tracks without privacy budgets."
    )
    state = models.CharField(max_length=10, choices=RUN_STATES, default=RunState.DRAFT)
    challenge = models.CharField(max_length=64, blank=True, editable=False)
    drawn_rounds = models.PositiveSmallIntegerField(null=True, blank=True, editable=False)
    rules = models.JSONField(default=dict, editable=False)
    results = ResultsField(default=RunResults, editable=False)
    pending = ResultsField(default=RunResults, editable=False)
    scored_at = models.DateTimeField(null=True, blank=True, editable=False)
    disqualified_because = models.CharField(
        max_length=300,
        blank=True,
        help_text="The organizers' public reason; empty unless they disqualified the run.",
    )
    log_accepted_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When an organizer accepted the declared communication log in spite of a flagged check.",
    )
    anls = _result_column("anls", models.FloatField())
    anls_low = _result_column("anls_low", models.FloatField())
    anls_high = _result_column("anls_high", models.FloatField())
    bytes_total = _result_column("bytes_total", models.BigIntegerField())
    epsilon = _result_column("epsilon", models.FloatField())
    flagged_checks = _result_column(FLAGGED, models.IntegerField())
    trust_level = _result_column("trust_level", models.IntegerField())
    unbound = _result_column("unbound", models.TextField())
    failed_level = _result_column("failed_level", models.IntegerField())
    counting = _result_column("counting", models.TextField())
    log_flag = _result_column("log_flag", models.TextField())

    class Meta:
        ordering = ["budget"]
        indexes = [
            # The two orders of boards. Each has every column by which boards pick and order runs, so that PostgreSQL
            # finds a page's runs without reading the rows of others, which are wide.
            models.Index(
                # Without the budget, which is null here: PostgreSQL reads no index in its order behind such a column.
                fields=["bytes_total"],
                include=[
                    "id",
                    "submission",
                    "anls",
                    "disqualified_because",
                    "failed_level",
                    "counting",
                    "log_flag",
                    "log_accepted_at",
                ],
                condition=models.Q(scored_at__isnull=False, budget__isnull=True),
                name="scored_runs_by_bytes",
            ),
            models.Index(
                fields=["budget", "-anls"],
                include=[
                    "id",
                    "submission",
                    "anls_low",
                    "anls_high",
                    "bytes_total",
                    "epsilon",
                    "disqualified_because",
                    "trust_level",
                    "unbound",
                    "failed_level",
                ],
                condition=models.Q(scored_at__isnull=False),
                name="scored_runs_by_anls",
            ),
            models.Index(
                fields=["scored_at"],
                condition=models.Q(flagged_checks__gt=0),
                name="runs_with_flagged_checks",
            ),
            models.Index(
                fields=["submission"],
                condition=models.Q(scored_at__isnull=False),
                name="scored_runs_of_submissions",
            ),
            models.Index(
                fields=["submission"], condition=models.Q(scored_at__isnull=True), name="runs_without_scores"
            ),
            models.Index(fields=["submission"], condition=models.Q(state="failed"), name="failed_runs"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["submission", "budget"], name="one_run_per_budget"),
            # SQL treats two empty budgets as different, so the run without a budget has a rule of its own.
            models.UniqueConstraint(
                fields=["submission"],
                condition=models.Q(budget__isnull=True),
                name="one_run_without_a_budget",
            ),
            models.CheckConstraint(
                condition=models.Q(scored_at__isnull=True)
                | models.Q(results__has_keys=["anls", "bytes_total", "trust_level"]),
                name="scored_runs_have_scores",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="scored") | models.Q(scored_at__isnull=False),
                name="scored_runs_have_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.submission}{at_budget(self.budget, ' at ε = {}', plain)}"

    @property
    def attempt_results(self) -> RunResults:
        """What the steps of the attempt in progress have found out so far."""
        return self.results if self.scored_at is None else self.pending

    @property
    def shown_state(self) -> str:
        """Its state in words; of one that is disqualified, that it is."""
        return DISQUALIFIED if self.disqualified_because else str(self.state)

    @property
    def is_evaluated_again(self) -> bool:
        """Whether the run is listed with older results while another attempt is in progress, or has failed."""
        return self.scored_at is not None and self.state != RunState.SCORED

    @property
    def rounds_to_draw(self) -> int:
        """How many rounds its challenge draws at least, besides the last one."""
        return self.submission.track.drawn_rounds if self.drawn_rounds is None else self.drawn_rounds

    @property
    def label(self) -> str:
        return f"Run{at_budget(self.budget, ' at ε = {}', plain)}"


class RunToken(models.Model):
    """A token that the site issued for one training, and the releases of that training.

    A token belongs to the first training record that is uploaded with it, for which the site draws `challenge`; see
    `docvqa_site.submissions.challenges`. That spends it: without an accounted run, the challenge is unresolved
    (`docvqa_site.submissions.unresolved_challenges`), which the team may explain. The run whose record is accepted has
    the token, unless it is for practice; see `docvqa_site.submissions.tokens` for when another run may claim it.
    `events` are the releases of that training, as evaluator.mechanisms.events; they stay whatever happens to the run,
    for no release can be undone. `training` is the name by which the trainer that took the token gets it again; empty
    as long as none did.
    """

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="run_tokens")
    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="run_tokens")
    token = models.CharField(max_length=64, unique=True)
    issued_to = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    issued_at = models.DateTimeField(default=timezone.now)
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="token", null=True, blank=True)
    training = models.CharField(max_length=32, blank=True)
    record_sha256 = models.CharField(max_length=64, blank=True)
    challenge = models.CharField(max_length=64, blank=True)
    drawn_rounds = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="How many rounds the challenge draws, besides the last one."
    )
    challenged_at = models.DateTimeField(null=True, blank=True, help_text="When its challenge was drawn.")
    explanation = models.TextField(
        blank=True,
        max_length=1000,
        help_text="Why there is no run whose ε was recomputed. Visible to the organizers and the reviewers "
        "of later runs.",
    )
    events = models.JSONField(default=list)

    class Meta:
        ordering = ["-issued_at", "-pk"]
        indexes = [models.Index(fields=["team", "track"])]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    record_sha256="", challenge="", challenged_at__isnull=True, run__isnull=True
                )
                | ~(
                    models.Q(record_sha256="") | models.Q(challenge="") | models.Q(challenged_at__isnull=True)
                ),
                name="a_record_has_a_challenge",
            )
        ]

    def __str__(self) -> str:
        return f"{self.token} of {self.team}"


class IndexChallenge(models.Model):
    """The challenge of an index of messages that are too large to be attached as a whole.

    An index has one in each track, whoever uploads it there and however often, and belongs to the team that did so
    first; see `docvqa_site.submissions.challenges`.
    """

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="index_challenges")
    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="index_challenges")
    index_sha256 = models.CharField(max_length=64)
    challenge = models.CharField(max_length=64)
    drawn_rounds = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="How many rounds the challenge draws at least, besides the last one."
    )
    challenged_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-challenged_at", "-pk"]
        indexes = [models.Index(fields=["team", "track"])]
        constraints = [
            models.UniqueConstraint(
                fields=["index_sha256", "track"], name="an_index_has_one_challenge_per_track"
            )
        ]

    def __str__(self) -> str:
        return f"Challenge of index {self.index_sha256}"


class ExtraSubmissions(models.Model):
    """Submissions that organizers gave a team beyond its quota; see `docvqa_site.submissions.quota.Extra`.

    The audit trail says who gave them.
    """

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="extra_submissions")
    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="extra_submissions")
    count = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=300)
    granted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-granted_at", "-pk"]
        verbose_name_plural = "extra submissions"

    def __str__(self) -> str:
        return f"{self.count} more for {self.team} in {self.track}"


class ArtifactState(models.TextChoices):
    """The state of a file in its place; `docvqa_site.submissions.states` says what may follow what."""

    PENDING = "pending", "pending"
    STAGED = "staged", "staged"
    ATTACHED = "attached", "attached"
    SUPERSEDED = "superseded", "superseded"


class FinishedArtifacts(models.Manager["Artifact"]):
    """All artifacts but pending and staged ones. Joins from other tables don't go through a manager."""

    @override
    def get_queryset(self) -> "models.QuerySet[Artifact]":
        return super().get_queryset().exclude(state__in=[ArtifactState.PENDING, ArtifactState.STAGED])


class PendingArtifacts(models.Manager["Artifact"]):
    """The artifacts whose files are on their way."""

    @override
    def get_queryset(self) -> "models.QuerySet[Artifact]":
        return super().get_queryset().filter(state=ArtifactState.PENDING)


class StagedArtifacts(models.Manager["Artifact"]):
    """The revised proofs that their teams haven't sent to the reviewers yet."""

    @override
    def get_queryset(self) -> "models.QuerySet[Artifact]":
        return super().get_queryset().filter(state=ArtifactState.STAGED)


class Artifact(models.Model):
    """A file in its place. The privacy proof belongs to the submission, all else to a run.

    It is pending until its upload is complete and its beginning was checked. `objects`, and with it `run.artifacts`,
    has finished ones only; `pending` has the others. The upload of a pending artifact has no other artifact. A finished
    file may be in other submissions of the team, too, which were made from this one. Of a proof that was revised after
    submission every version is kept; those before the newest one are superseded. A revised proof is staged until its
    team sends it with a note on what changed; until then nobody else reads it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="artifacts")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts", null=True, blank=True)
    kind = models.CharField(max_length=20, choices=ARTIFACT_KINDS)
    upload = models.ForeignKey(Upload, on_delete=models.PROTECT, related_name="artifacts")
    state = models.CharField(max_length=10, choices=ArtifactState.choices, default=ArtifactState.PENDING)
    version = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(
        default=timezone.now,
        help_text="When the file was attached or, while it is pending, when its upload began.",
    )
    superseded_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True, max_length=MAX_NOTE, help_text="What changed in a revised proof.")

    objects = FinishedArtifacts()
    pending = PendingArtifacts()
    staged = StagedArtifacts()

    class Meta:
        ordering = ["kind", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "kind"],
                condition=models.Q(state="attached"),
                name="one_artifact_of_a_kind_for_a_run",
            ),
            models.UniqueConstraint(
                fields=["submission", "kind"],
                condition=models.Q(run__isnull=True, state="attached"),
                name="one_newest_proof_of_a_submission",
            ),
            models.UniqueConstraint(
                fields=["submission"],
                condition=models.Q(state="staged"),
                name="one_staged_proof_of_a_submission",
            ),
            models.UniqueConstraint(
                fields=["submission", "kind", "version"],
                condition=models.Q(run__isnull=True) & ~models.Q(state="pending"),
                name="versions_of_a_proof_are_numbered",
            ),
            models.UniqueConstraint(
                fields=["upload"],
                condition=models.Q(state="pending"),
                name="one_pending_artifact_of_an_upload",
            ),
            models.CheckConstraint(condition=PROOFS_WITHOUT_RUN, name="proofs_belong_to_submissions"),
            models.CheckConstraint(
                condition=models.Q(state="superseded", superseded_at__isnull=False)
                | models.Q(state__in=["pending", "staged", "attached"], superseded_at__isnull=True),
                name="superseded_artifacts_have_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.run or self.submission}"
