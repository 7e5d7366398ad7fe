"""Tracks with their rules and phases, as the organizers set them."""

import math
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import apnumber
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone
from typing_extensions import override

from docvqa_site.challenge import phases, rankings
from docvqa_site.licenses import EXAMPLES, validate_license
from docvqa_site.teams.models import INVITATION_DAYS, Team
from docvqa_site.ui.budgets import at_budget, plain
from docvqa_site.ui.names import NameField
from docvqa_site.ui.rounding import power_of_ten
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.units import Adjacency
from evaluator.messages.jobs import (
    DRAWN_ROUNDS,
    MAX_DRAWN,
    FirstDownload,
    LeakageSet,
    PrivacyRules,
    TrackRules,
    TrustLevel,
)
from evaluator.messages.rankings import BUDGET, Limits

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

MAX_PATTERNS = 100
# The submissions of a team in 24 hours, unless a phase says otherwise.
DEFAULT_SLOTS = 5
# The challenges of a team in 24 hours, unless a track says otherwise: as many submissions with a run for three boards.
DEFAULT_CHALLENGES = 15
# As long as a tensor's name may be.
MAX_PATTERN_CHARACTERS = 256
# No space and no quote, so that a pattern can be quoted on a command line; `?` matches any character.
PATTERN = re.compile(r"[!#-&(-~]+")

folder_name = RegexValidator(r"^[a-z0-9][a-z0-9._-]{0,63}$", "Lower-case letters, digits, dots and dashes.")


SAMPLING_RULES = [
    (
        SamplingRule.TWO_STAGE.value,
        "two-stage: assumes that the observer knows which clients take part in each round",
    ),
    (SamplingRule.PRODUCT.value, "product: client rate times provider rate, as in the published competition"),
]
ACCOUNTANTS = [
    (Accountant.PLD.value, "PLD: privacy loss distributions"),
    (Accountant.RDP.value, "RDP: Rényi differential privacy"),
]
ADJACENCIES = [
    (Adjacency.ADD_REMOVE.value, "add or remove one provider"),
    (Adjacency.REPLACE.value, "replace one provider"),
]

FIRST_DOWNLOADS = [
    (FirstDownload.FREE.value, "not counted, as in the published competition"),
    (FirstDownload.COUNTED.value, "counted, even if the log leaves it out"),
]
UNBOUND_LEVELS = [
    (TrustLevel.RECOMPUTED.value, "ranked like any other run"),
    (TrustLevel.REPLAYED.value, "not ranked until a replay (L2) or rerun (L3) confirms them"),
    (TrustLevel.RERUN.value, "not ranked until a rerun (L3) confirms them"),
]
# The levels that a phase may require of its first ranks.
EXAMINED_LEVELS = [
    (TrustLevel.REPLAYED.value, "a replay (L2) or a rerun (L3)"),
    (TrustLevel.RERUN.value, "a rerun (L3)"),
]


def default_budgets() -> list[float]:
    """Return the ε of the competition's boards."""
    return [1.0, 4.0, 8.0]


def validate_budgets(value: object) -> None:
    """Raise `ValidationError` unless `value` is a non-empty list of distinct, finite, positive numbers."""
    numbers = value if isinstance(value, list) else []
    sound = all(type(number) in (int, float) and 0 < number < math.inf for number in numbers)
    if not numbers or not sound or len(set(numbers)) < len(numbers):
        raise ValidationError("Enter a list of distinct positive numbers, such as [1, 4, 8].")


def patterns_in(text: str) -> list[str]:
    """Return the patterns of a text with one per line, without blank lines and surrounding space."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def validate_patterns(text: str) -> None:
    """Raise `ValidationError` unless every line of the text is a pattern."""
    patterns = patterns_in(text)
    if len(patterns) > MAX_PATTERNS:
        raise ValidationError(f"At most {MAX_PATTERNS} patterns are expected, not {len(patterns)}.")
    for pattern in patterns:
        if len(pattern) > MAX_PATTERN_CHARACTERS:
            raise ValidationError(f"A pattern is at most {MAX_PATTERN_CHARACTERS} characters long.")
        if not PATTERN.fullmatch(pattern):
            raise ValidationError("A pattern can't contain spaces, quotes or non-ASCII characters.")


def validate_finite(value: float) -> None:
    """Raise `ValidationError` for a number that is infinite or not a number."""
    if not math.isfinite(value):
        raise ValidationError("Enter a finite number.")


def validate_four_decimals(value: float) -> None:
    """Raise `ValidationError` for a score with more decimals than scores are stored and ranked with."""
    if round(value, 4) != value:
        raise ValidationError("Enter at most four decimals, as scores have.")


def validate_providers(value: object) -> None:
    """Raise `ValidationError` unless `value` is a list of whole numbers that are not negative."""
    if not isinstance(value, list) or not all(type(number) is int and number >= 0 for number in value):
        raise ValidationError("Enter a list of whole numbers, one per client, such as [420, 398].")


class PublishedTracks(models.Manager["Track"]):
    """Finds the tracks that everybody sees. A draft is found only where it is looked for: `Track.with_drafts`."""

    @override
    def get_queryset(self) -> models.QuerySet["Track"]:
        return super().get_queryset().filter(is_draft=False)


class Registration(models.TextChoices):
    """What a team does before it may submit to a track."""

    NONE = "none", "teams submit without registering"
    QUESTIONS = "questions", "teams register, and are admitted at once"
    APPROVAL = "approval", "teams register, and an organizer admits them"


class Track(models.Model):
    """One competition track. `ranking` decides which of the rules below apply.

    A draft is being set up (`organizers.setup`): only organizers see it, and the only runs in it are tests of
    its base weights (`docvqa_site.evaluation.rehearsal`). With `organizers`, those who organize single tracks see it.
    """

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    summary = models.CharField(max_length=300)
    description = models.TextField(help_text="Markdown, shown on the track's page.")
    ranking = models.CharField(max_length=40, choices=rankings.choices)
    position = models.PositiveSmallIntegerField(default=0)
    is_draft = models.BooleanField("draft", default=False, help_text="Only organizers see it.")
    organizers = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="+",
        help_text="Track organizers who organize this track. All other organizers organize every track.",
    )

    registration = models.CharField(max_length=10, choices=Registration.choices, default=Registration.NONE)
    registration_questions = models.TextField(
        "questions",
        blank=True,
        default="",
        help_text="Questions that a team answers when it registers, one per line.",
    )

    paused = models.BooleanField(
        default=False, help_text="While this is checked, the track accepts no submissions."
    )

    reference = models.CharField(
        max_length=64,
        validators=[folder_name],
        help_text="Base weights: a folder under references/ on the workers.",
    )
    trainable = models.TextField(
        blank=True,
        default="",
        validators=[validate_patterns],
        help_text="Tensors that may differ from the base weights: name patterns, one per line, such as "
        "language_backbone.* or *.layer_norm.weight. Blank: all.",
    )
    test_set = models.CharField(
        max_length=64,
        validators=[folder_name],
        help_text="Secret test set: a folder under test_sets/ on the workers.",
    )
    leakage_set = models.CharField(
        max_length=64,
        blank=True,
        default="",
        validators=[folder_name],
        help_text="Data with members and nonmembers of the training set, used to measure leakage: a folder under "
        "test_sets/ on the workers. Blank: leakage is not measured.",
    )
    leakage_split = models.CharField(
        max_length=64, default="red", validators=[folder_name], help_text="The split of this data to use."
    )
    clients = models.PositiveSmallIntegerField(default=10, validators=[MinValueValidator(1)])
    max_rounds = models.PositiveIntegerField(default=10_000, validators=[MinValueValidator(1)])
    max_checkpoint_bytes = models.PositiveBigIntegerField(
        default=2 * 1024**3, validators=[MinValueValidator(1)]
    )

    first_download = models.CharField(
        max_length=10,
        choices=FIRST_DOWNLOADS,
        default=FirstDownload.FREE.value,
        help_text="Whether the bytes of a run include what its clients download in the first round.",
    )
    anls_threshold = models.FloatField(
        default=0.8242,
        validators=[validate_finite, MinValueValidator(0), MaxValueValidator(1), validate_four_decimals],
        help_text="Only for tracks ranked by bytes: runs below this score are listed without a rank.",
    )
    delta = models.FloatField(
        default=1e-5,
        validators=[validate_finite, MinValueValidator(1e-12), MaxValueValidator(1e-3)],
        help_text="Only for tracks ranked by ANLS: the δ at which ε is computed.",
    )
    budgets = models.JSONField(
        default=default_budgets,
        validators=[validate_budgets],
        help_text="Only for tracks ranked by ANLS: the ε of each board.",
    )
    sampling_rule = models.CharField(
        max_length=10,
        choices=SAMPLING_RULES,
        default=SamplingRule.TWO_STAGE.value,
        help_text="Only for tracks ranked by ANLS: the rule used for ranking. ε under the other rule is "
        "shown for comparison.",
    )
    accountant = models.CharField(
        max_length=3,
        choices=ACCOUNTANTS,
        default=Accountant.PLD.value,
        help_text="Only for tracks ranked by ANLS: the accountant used for ranking. ε from the other "
        "accountant is shown for comparison.",
    )
    adjacency = models.CharField(
        max_length=10,
        choices=ADJACENCIES,
        default=Adjacency.ADD_REMOVE.value,
        help_text="Only for tracks ranked by ANLS: the adjacency that training records must declare.",
    )
    providers_per_client = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_providers],
        help_text="Only for tracks ranked by ANLS: the number of training providers per client, in the "
        "order of the client ids. Training "
        "records with more providers are rejected. Empty: not checked.",
    )
    data_sha256 = models.CharField(
        "data manifest",
        max_length=64,
        blank=True,
        validators=[RegexValidator(r"^[0-9a-f]{64}$", "64 hexadecimal digits in lower case.")],
        help_text="Only for tracks ranked by ANLS: the output of `pfl data manifest FOLDER` for the "
        "training data. Runs whose annex "
        "states a different hash are rejected. Only participants can see the hash, through the API, so "
        "`pfl` can compare their data before training. Empty: not checked.",
    )
    unbound_level = models.PositiveSmallIntegerField(
        "unbound runs",
        choices=UNBOUND_LEVELS,
        default=TrustLevel.REPLAYED.value,
        help_text="Only for tracks ranked by ANLS: how to rank a run if no check ties its recorded sums to "
        "its "
        "checkpoint.",
    )
    drawn_rounds = models.PositiveSmallIntegerField(
        default=DRAWN_ROUNDS,
        validators=[MaxValueValidator(MAX_DRAWN)],
        help_text="How many rounds the site draws at random, in addition to the last one, from each run that is "
        "replayable or whose messages are too large to be attached as a whole (more of these if they fit into 12 GB). "
        "If this number changes after the rounds of a draft were opened, a replayable run must be trained again, and "
        "messages must be opened again.",
    )
    challenges_per_day = models.PositiveSmallIntegerField(
        default=DEFAULT_CHALLENGES,
        validators=[MinValueValidator(1)],
        help_text="How many challenges the site draws for a team in any 24 hours: one for each new training "
        "record, and one for each new index of messages that are too large to be attached as a whole.",
    )
    required_reviews = models.PositiveSmallIntegerField(
        default=2,
        help_text="Only for tracks ranked by ANLS: number of accepting reviewers required for a "
        "verified result.",
    )

    requires_code = models.BooleanField(
        "description and code required",
        default=False,
        help_text="Submissions must describe their method, and either link to a commit of the code or "
        "attach the settings or method file to each run. Everyone can see the description and the link; "
        "reviewers can also see the files.",
    )

    submission_license = models.CharField(
        "license of submissions",
        max_length=80,
        blank=True,
        validators=[validate_license],
        help_text="Teams accept this license when they submit. It covers the public parts of their submissions: "
        f"texts, results, communication logs and training records. {EXAMPLES} Blank: no license.",
    )

    objects = PublishedTracks()
    with_drafts: ClassVar[models.Manager["Track"]] = models.Manager()

    if TYPE_CHECKING:
        registrations: RelatedManager["TeamRegistration"]
        rule_changes: RelatedManager["RuleChange"]
        phases: RelatedManager["Phase"]

    class Meta:
        ordering = ["position", "slug"]
        permissions = [("organize", "Can use the organizers' desk")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("challenge:track", args=[self.slug])

    def clean(self) -> None:
        if self.providers_per_client and len(self.providers_per_client) != self.clients:
            raise ValidationError(
                {"providers_per_client": f"One number is expected for each of the {self.clients} clients."}
            )

    @property
    def kind(self) -> rankings.Ranking:
        """What runs are ranked by, and all that follows from it."""
        return rankings.RANKINGS[self.ranking]

    @property
    def sentence(self) -> str:
        """What ranks, in sentences."""
        count = self.required_reviews
        reviews = f"{apnumber(count)} reviewer{'' if count == 1 else 's'}"
        note = self.kind.note.format(reviews=reviews, delta=power_of_ten(self.delta))
        return f"{self.kind.sentence(self.limits())} {note}".strip()

    @property
    def reviews_needed(self) -> int | None:
        """How many reviewers verify a result by accepting its proof; None where no proof is needed."""
        return self.required_reviews if self.kind.needs_proof else None

    def limits(self, budget: float | None = None) -> Limits:
        """Return the limits of the track's kind by name, with those of the board at this budget."""
        removed = None if budget in self.run_budgets() else budget
        of_board = {BUDGET: budget, rankings.REMOVED_BUDGET: removed}
        return {name: getattr(self, name) for name in self.kind.rule.fields} | of_board

    @property
    def questions(self) -> list[str]:
        """What a team that registers answers."""
        return patterns_in(self.registration_questions)

    @property
    def closes_at(self) -> datetime | None:
        """When the last phase ends; None where it has no end."""
        last = phases.in_order(self.phases.all())[-1:]
        return last[0].ends_at if last else None

    def phase_at(self, now: datetime) -> "Phase | None":
        """Return the phase that runs now, if one does."""
        return phases.phase_at(self.phases.all(), now)

    @property
    def current_phase(self) -> "Phase | None":
        """The phase that runs now, if one does."""
        return self.phase_at(timezone.now())

    def nearest_phase(self, now: datetime) -> "Phase | None":
        """Return the phase that runs now, else the next one, else the last."""
        return phases.nearest_phase(self.phases.all(), now)

    def ranks_counted_alone(self, now: datetime) -> bool:
        """Return whether runs whose bytes are declared get no rank, by the nearest phase."""
        phase = self.nearest_phase(now)
        return self.kind.rule.ranks_bytes and phase is not None and phase.requires_counted

    def slots_per_day(self, now: datetime) -> int:
        """Return how many submissions a team may make in 24 hours, by the nearest phase."""
        phase = self.nearest_phase(now)
        return phase.submissions_per_day if phase else DEFAULT_SLOTS

    def closed_because(self, now: datetime | None = None) -> str:
        """Return why the track takes no submissions now; empty when it does."""
        return phases.closed_because(self.phases.all(), now or timezone.now(), paused=self.paused)

    @property
    def opens_later(self) -> bool:
        """Whether no phase runs, but one is still to come."""
        now = timezone.now()
        phase = self.nearest_phase(now)
        return phase is not None and not phase.has_begun(now) and not phase.has_ended(now)

    def run_budgets(self) -> list[float | None]:
        """Return the budget of every board, each of which a submission may have a run for; None for a board without."""
        return [float(budget) for budget in self.budgets] if self.kind.has_budgets else [None]

    def board_names(self) -> list[str]:
        """Return the name of every board in addresses: its budget, or nothing."""
        return [at_budget(budget, "{}", plain) for budget in self.run_budgets()]

    def trainable_patterns(self) -> list[str]:
        """Return the patterns of the names of tensors that may differ from the base weights; none where all may."""
        return patterns_in(self.trainable)

    def measured_leakage_set(self) -> LeakageSet | None:
        """Return the data by which leakage is measured; None where it isn't."""
        return LeakageSet(folder=self.leakage_set, split=self.leakage_split) if self.leakage_set else None

    def rules(self, budget: float | None) -> TrackRules:
        """Return the rules for one run, as they are sent to the evaluator."""
        privacy = None
        if self.kind.is_accounted and budget is not None:
            privacy = PrivacyRules(
                epsilon=budget,
                delta=self.delta,
                accountant=Accountant(self.accountant),
                sampling_rule=SamplingRule(self.sampling_rule),
                adjacency=Adjacency(self.adjacency),
            )
        return TrackRules(
            reference=self.reference,
            test_set=self.test_set,
            trainable=self.trainable_patterns(),
            clients=self.clients,
            max_rounds=self.max_rounds,
            providers_per_client=self.providers_per_client,
            data_sha256=self.data_sha256,
            drawn_rounds=self.drawn_rounds,
            first_download=FirstDownload(self.first_download),
            privacy=privacy,
        )


class ResultsTiming(models.TextChoices):
    """When the results of a phase are public."""

    AT_ONCE = "at_once", "public as soon as a run is scored"
    AFTER_END = "after_end", "visible only to the team until the phase ends"


class Anonymity(models.TextChoices):
    """Whether a team may be listed under an anonymous name, and until when."""

    NONE = "none", "teams are named"
    UNTIL_NAMED = "until_named", "teams may stay anonymous until they reveal their name"
    UNTIL_END = "until_end", "teams may stay anonymous until the phase ends"


class Phase(models.Model):
    """A period of a track, with a quota and rules about what is public. Periods of one track don't overlap.

    A track without dates has one phase, without beginning and end. Whoever saves a phase holds the lock of its track.
    """

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="phases")
    name = NameField(max_length=60, default="Submissions")
    starts_at = models.DateTimeField(
        "starts",
        null=True,
        blank=True,
        help_text="In UTC, such as 2026-11-22 14:00. Empty: always open before the end.",
    )
    ends_at = models.DateTimeField(
        "ends", null=True, blank=True, help_text="In UTC. If empty, there is no deadline."
    )
    submissions_per_day = models.PositiveSmallIntegerField(
        default=DEFAULT_SLOTS, help_text="Per team, in any 24 hours.", validators=[MinValueValidator(1)]
    )
    results = models.CharField(max_length=10, choices=ResultsTiming.choices, default=ResultsTiming.AT_ONCE)
    allows_private = models.BooleanField(
        "unpublished submissions",
        default=False,
        help_text="Teams choose when their submissions are published.",
    )
    anonymity = models.CharField("names", max_length=12, choices=Anonymity.choices, default=Anonymity.NONE)
    examined_ranks = models.PositiveSmallIntegerField(
        "ranks to examine",
        default=0,
        help_text="How many of the top ranks on each board become final only after an examination. The site "
        "requests these examinations automatically. 0: none.",
    )
    examined_level = models.PositiveSmallIntegerField(
        "examination",
        choices=EXAMINED_LEVELS,
        default=TrustLevel.RERUN.value,
        help_text="The examination that these ranks need.",
    )
    requires_counted = models.BooleanField(
        "counted bytes only",
        default=True,
        help_text="Only for tracks ranked by bytes: runs with declared bytes are listed without a rank.",
    )
    extended_minutes = models.PositiveIntegerField(
        default=0, editable=False, help_text="How much the phase's end was moved to make up for outages."
    )

    class Meta:
        ordering = [models.F("starts_at").asc(nulls_first=True)]
        constraints = [
            models.UniqueConstraint(fields=["track", "name"], name="phases_of_a_track_have_different_names"),
            models.CheckConstraint(
                condition=models.Q(starts_at__isnull=True)
                | models.Q(ends_at__isnull=True)
                | models.Q(ends_at__gt=models.F("starts_at")),
                name="phases_end_after_they_start",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.starts_at and self.ends_at and self.ends_at <= self.starts_at:
            raise ValidationError({"ends_at": "The phase ends before it starts."})
        if self.examined_ranks and self.examined_level not in self.track.kind.examined_for:
            raise ValidationError(
                {
                    "examined_level": "Runs of this track have no training record to replay: require a rerun (L3)."
                }
            )

    def has_begun(self, now: datetime) -> bool:
        """Return whether it has begun; it may have ended."""
        return self.starts_at is None or self.starts_at <= now

    def has_ended(self, now: datetime) -> bool:
        """Return whether it is over."""
        return self.ends_at is not None and self.ends_at <= now

    @property
    def required_examination(self) -> str:
        """Which of its ranks need which examination, such as "first 3 ranks: a rerun (L3)"; empty where none do."""
        if not self.examined_ranks:
            return ""
        ranks = "first rank" if self.examined_ranks == 1 else f"first {self.examined_ranks} ranks"
        return f"{ranks}: {self.get_examined_level_display()}"

    @property
    def counting(self) -> str:
        """Which bytes rank in it, such as "only counted bytes are ranked"; empty where bytes don't rank."""
        return self.track.kind.counting(requires_counted=self.requires_counted)

    @property
    def allows_anonymous(self) -> bool:
        """Whether a team may be listed under an anonymous name."""
        return self.anonymity != Anonymity.NONE


class RegistrationState(models.TextChoices):
    WAITING = "waiting", "waiting for the organizers"
    ADMITTED = "admitted", "admitted"
    DECLINED = "declined", "declined"


class TeamRegistration(models.Model):
    """A team that registered for a track, with what it answered: a list of questions, each with its answer.

    `docvqa_site.challenge.registering` moves its state.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="registrations")
    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="registrations")
    answers = models.JSONField(default=list, blank=True)
    state = models.CharField(
        max_length=10, choices=RegistrationState.choices, default=RegistrationState.WAITING
    )
    reason = models.CharField(
        max_length=300, blank=True, help_text="Why the team was declined (visible to the team)."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["team", "track"], name="a_team_registers_once_for_a_track")
        ]

    def __str__(self) -> str:
        return f"{self.team} in {self.track}"

    @property
    def state_label(self) -> str:
        """The state in words: a team that never had to register wasn't declined."""
        is_open = self.track.registration == Registration.NONE
        if is_open and self.state == RegistrationState.DECLINED:
            return "excluded"
        return RegistrationState(self.state).label


class StaffRole(models.TextChoices):
    """What somebody is invited to do."""

    REVIEWER = "reviewer", "reviewer of privacy proofs, in every track"
    ORGANIZER = "organizer", "organizer of this track alone"
    ALL_TRACKS = "all_tracks", "organizer of all tracks"


class StaffInvitation(models.Model):
    """A mail that makes whoever has its address and opens its link a reviewer, or an organizer of one track or all."""

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="staff_invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=StaffRole.choices)
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the secret in the link.")
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.email} as {self.role}"

    @property
    def expires_at(self) -> datetime:
        return self.created_at + timedelta(days=INVITATION_DAYS)

    @property
    def is_of_one_track(self) -> bool:
        """Whether it is about its track; any other role is about every track, whichever the invitation is kept with."""
        return self.role == StaffRole.ORGANIZER

    @property
    def role_in_words(self) -> str:
        """What the invited person becomes, as the mail and its page say it."""
        return {
            StaffRole.REVIEWER: "a reviewer of privacy proofs, in every track",
            StaffRole.ORGANIZER: f"an organizer of the track “{self.track.name}”",
            StaffRole.ALL_TRACKS: "an organizer of all tracks",
        }[StaffRole(self.role)]


class RuleChange(models.Model):
    """A change of a track's rules while it runs, as its page shows it to everyone."""

    track = models.ForeignKey(Track, on_delete=models.CASCADE, related_name="rule_changes")
    at = models.DateTimeField(default=timezone.now)
    text = models.TextField(help_text="The change, with the old and the new value.")
    difference = models.TextField(blank=True, help_text="For texts, the lines that were added and removed.")
    reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.track}: {self.text}"
