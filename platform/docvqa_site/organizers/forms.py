"""The desk's forms."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import Phase, RegistrationState, Track
from docvqa_site.challenge.phases import overlap
from docvqa_site.challenge.rankings import OF_ONE_KIND
from docvqa_site.evaluation.examining.levels import LEVELS
from docvqa_site.evaluation.inventories import stock
from docvqa_site.liveness.models import Outage
from docvqa_site.organizers import phase_changes, rule_changes, track_changes
from docvqa_site.organizers.announcements import NARROWED, Audience, audiences_for, tracks_for
from docvqa_site.organizers.choosing import LeakageField, NumbersField, SizeField, offered, reject_unmatched
from docvqa_site.reviews.run_appeals import MAX_ANSWER
from docvqa_site.submissions.quota import MOST_EXTRA

# Of registrations.
DECISIONS = (RegistrationState.ADMITTED.value, RegistrationState.DECLINED.value)

# Of fields of tracks, for all forms that have them.
HELP = {
    "leakage_set": "Data from members and nonmembers of the training set, used to measure what ranked runs leak: "
    "a split of a folder under test_sets/ on the workers. The split “red” has new documents of the members; "
    "“red-trained” has the very documents that they trained with, where a leak shows most.",
    "budgets": "Such as 1, 4, 8. Each budget has its own board.",
    "required_reviews": "Number of reviewers who must accept a proof before it counts as accepted.",
    "unbound_level": "In some runs, no check shows that the checkpoint is the result of the recorded training. This is "
    "how they are ranked.",
    "providers_per_client": "The number of training providers of each client, in the order of the client ids, such as "
    "420, 398. Training records with more providers are rejected. If empty, it isn't checked.",
    "drawn_rounds": "How many rounds the site picks at random, besides the last one, for a replay or a byte check. If "
    "a draft's rounds were already picked when you change this, its team must train a replayable run again, and upload "
    "messages again.",
    "max_checkpoint_bytes": "Such as 2 GB or 500 MB.",
    "challenges_per_day": "How many challenges a team can get in any 24 hours: one for each new training record, and "
    "one for each new index of messages that are too large to be attached.",
}


ERRORS = {
    "anls_threshold": dict.fromkeys(("min_value", "max_value"), "Enter a number from 0 to 1."),
    "submissions_per_day": {"min_value": "Enter at least 1."},
}


class PublicReason(forms.Form):
    """Why something is changed; empty where nothing is to be said."""

    reason = forms.CharField(
        max_length=300,
        required=False,
        help_text="Shown publicly with the change on the track page.",
    )

    def require_if(self, condition: str) -> None:
        """Say in the label under which condition a reason is required: what that is, a preview alone shows."""
        self.fields["reason"].label = f"Reason (required if {condition})"
        self.fields["reason"].widget.is_required_later = True


class OfOneKind(forms.ModelForm[Track], PublicReason):
    """Rules of a track, of which those that its kind doesn't have are left out."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        for name in self.fields.keys() & OF_ONE_KIND - set(self.instance.kind.fields):
            del self.fields[name]
        drop_kind(self)


def drop_kind(form: forms.BaseForm) -> None:
    """Take the name of the kind from the help texts: the form has the fields of one kind alone."""
    for field in form.fields.values():
        kind, _, text = str(field.help_text).partition(": ")
        if kind.startswith("Only for tracks ranked by"):
            field.help_text = text[:1].upper() + text[1:]


class TrackForm(OfOneKind):
    """By which rules a track ranks, and whether it is paused."""

    class Meta:
        model = Track
        fields = tuple(track_changes.BOARD_RULES)
        labels = {
            "anls_threshold": "ANLS threshold",
            "required_reviews": "Accepting reviewers",
            "budgets": "Privacy budgets ε",
        }
        field_classes = {"budgets": NumbersField}
        help_texts = HELP
        error_messages = ERRORS

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.require_if("ranks change")


class RulesForm(OfOneKind):
    """The texts of a track, and what its evaluator applies: base weights and test set among what workers report."""

    reference = forms.ChoiceField(label=rule_changes.NAMES["reference"])
    test_set = forms.ChoiceField(label=rule_changes.NAMES["test_set"])
    leakage = LeakageField(label="Leakage set", required=False, help_text=HELP["leakage_set"])

    class Meta:
        model = Track
        fields = tuple(name for name in rule_changes.NAMES if name not in rule_changes.LEAKAGE)
        labels = rule_changes.NAMES
        field_classes = {"providers_per_client": NumbersField, "max_checkpoint_bytes": SizeField}
        help_texts = HELP
        widgets = {
            "description": forms.Textarea(attrs={"rows": 20}),
            "registration_questions": forms.Textarea(attrs={"rows": 5}),
            # A list would cut its long choices off.
            "sampling_rule": forms.RadioSelect,
            "trainable": forms.Textarea(attrs={"rows": 3}),
            # As people write it: 1e-05.
            "delta": forms.TextInput(attrs={"inputmode": "decimal"}),
        }

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        held, stored = stock(), self.initial
        for name, holdings in (("reference", held.references), ("test_set", held.test_sets)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)  # noqa: S101
            field.choices = offered(holdings, stored[name])
        leakage = self.fields["leakage"]
        assert isinstance(leakage, LeakageField)  # noqa: S101
        leakage.offer(self.instance)
        self.order_fields([name for name in self.fields if name != "reason"])

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        reject_unmatched(self, values)
        return {**values, **LeakageField.fields_of(values.get("leakage", ""))}


def keep_fields_of(form: forms.BaseForm, track: Track) -> None:
    """Leave out what the phases of the track don't say, and the name of the kind that what is left is for."""
    for name in phase_changes.NAMES.keys() - phase_changes.names_of(track).keys():
        del form.fields[name]
    drop_kind(form)


class UtcInput(forms.DateTimeInput):
    """A date and time in UTC, with the browser's calendar."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        # Any: seconds that a time has been given elsewhere stay as they are.
        super().__init__(attrs={"step": "any"}, format="%Y-%m-%dT%H:%M:%S")


class PhaseForm(forms.ModelForm[Phase], PublicReason):
    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        keep_fields_of(self, self.instance.track)
        self.require_if("teams get less than a day's notice of an earlier end")

    class Meta:
        model = Phase
        fields = tuple(phase_changes.NAMES)
        labels = phase_changes.NAMES
        error_messages = ERRORS
        widgets = {"starts_at": UtcInput, "ends_at": UtcInput}
        help_texts = {
            "starts_at": "In UTC. If empty, the phase has no start date and is open until it ends.",
            "submissions_per_day": "",
        }

    def clean(self) -> dict[str, Any]:
        """Reject a phase that overlaps with another one of the track, or has its name."""
        values: dict[str, Any] = super().clean() or {}
        others = self.instance.track.phases.exclude(pk=self.instance.pk)
        if others.filter(name=values.get("name")).exists():
            self.add_error("name", "The track already has a phase with this name.")
        if {"starts_at", "ends_at"} <= values.keys():
            edited = Phase(
                name=values.get("name", ""), starts_at=values["starts_at"], ends_at=values["ends_at"]
            )
            if problem := overlap([*others, edited]):
                raise forms.ValidationError(problem)
        return values


class RevealForm(PublicReason):
    """That the private part of a test set is to be revealed."""

    confirmed = forms.BooleanField()


class RegistrationDecisionForm(forms.Form):
    """Whether a team is admitted to a track, with a note that it reads."""

    state = forms.ChoiceField(choices=[(state, state) for state in DECISIONS])
    reason = forms.CharField(max_length=300, required=False)


class DisqualificationForm(forms.Form):
    reason = forms.CharField(
        max_length=300, help_text="Public: shown on the leaderboard and the method page."
    )
    confirmed = forms.BooleanField(label="Yes, disqualify the run, publish the reason and email the team")


class LiftForm(forms.Form):
    """Why a run is no longer disqualified, as public as the reason why it was."""

    reason = forms.CharField(
        max_length=300,
        help_text="Public: shown on the run's page and with published results, and sent to the team, as the answer to "
        "its appeal if one is open.",
    )
    confirmed = forms.BooleanField(label="Yes, lift the disqualification, and publish the reason")


class AnswerForm(forms.Form):
    """The answer to an appeal that isn't granted."""

    answer = forms.CharField(
        max_length=MAX_ANSWER,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Visible only to the team, on its page and by email.",
    )


class ExaminationForm(forms.Form):
    level = forms.TypedChoiceField(choices=[(level.value, level.label) for level in LEVELS], coerce=int)
    reason = forms.CharField(max_length=300, required=False)


class MessageForm(forms.Form):
    """What organizers write, in Markdown."""

    subject = forms.CharField(max_length=120)
    text = forms.CharField(
        max_length=10_000,
        widget=forms.Textarea,
        help_text="In Markdown. Emails and notifications show it as plain text, with the address of each link.",
    )


class AnnouncementForm(MessageForm):
    """What organizers write to many people; the choices are those of the organizer."""

    audience = forms.TypedChoiceField(coerce=Audience, label="To")
    track = forms.ModelChoiceField(
        Track.objects.none(),
        required=False,
        empty_label="all tracks",
        help_text="Counts only registrations, submissions and runs of this track. Ignored for “everyone”, “members of "
        "all teams” and “nobody”.",
    )
    on_news = forms.BooleanField(required=False, label="Also publish on News")

    field_order = ("audience", "track")

    def __init__(self, data: Any, organizer: User, **named: Any) -> None:
        super().__init__(data, **named)
        audience, track = self.fields["audience"], self.fields["track"]
        assert isinstance(audience, forms.TypedChoiceField)  # noqa: S101
        assert isinstance(track, forms.ModelChoiceField)  # noqa: S101
        audience.choices = [(one.value, one.label) for one in audiences_for(organizer)]
        track.queryset = tracks_for(organizer)
        if organizer.organizes_single_tracks:
            track.required, track.empty_label, track.help_text = True, None, ""
            # News are of the whole site.
            del self.fields["on_news"]

    def clean(self) -> dict[str, Any]:
        """Drop a track that doesn't narrow the audience, so that nothing says it did."""
        values: dict[str, Any] = super().clean() or {}
        return values if values.get("audience") in NARROWED else {**values, "track": None}


class ExtraSubmissionsForm(forms.Form):
    """More submissions than the quota for one team, with a reason that the team reads."""

    track = forms.ModelChoiceField(Track.objects.none(), empty_label=None)
    count = forms.IntegerField(min_value=1, max_value=MOST_EXTRA, initial=1, label="More submissions")
    reason = forms.CharField(max_length=300, help_text="Sent to the team, and kept in the audit trail.")

    def __init__(self, data: Any, tracks: QuerySet[Track]) -> None:
        super().__init__(data)
        track = self.fields["track"]
        assert isinstance(track, forms.ModelChoiceField)  # noqa: S101
        track.queryset = tracks


class AdmissionForm(forms.Form):
    """That a team is excluded from a track, or admitted again, and why."""

    track = forms.ModelChoiceField(Track.objects.none(), empty_label=None)
    reason = forms.CharField(max_length=300, help_text="Sent to the team, and kept in the audit trail.")

    def __init__(self, data: Any, tracks: QuerySet[Track]) -> None:
        super().__init__(data, prefix="admission")
        track = self.fields["track"]
        assert isinstance(track, forms.ModelChoiceField)  # noqa: S101
        track.queryset = tracks


class ExclusionForm(AdmissionForm):
    confirmed = forms.BooleanField(label="Yes, exclude the team, and email it the reason")


class ResultsForm(forms.ModelForm[FinalResults]):
    """What the final results of a phase are published as."""

    text = forms.CharField(
        label="Announcement",
        max_length=5_000,
        required=False,
        widget=forms.Textarea,
        help_text="In Markdown; appears after a sentence saying that the results are final. Published on "
        "News, and sent as plain text to everyone who takes part in the track.",
    )

    class Meta:
        model = FinalResults
        fields = ("title", "slug")
        labels = {"slug": "Name in the address"}
        help_texts = {"slug": "The results appear at /results/NAME/. It can't be changed later."}

    def __init__(self, *args: Any, is_correction: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if is_correction:
            text = self.fields["text"]
            text.required, text.label = True, "Reason for the correction"
            text.help_text = (
                "In Markdown; appears on the page and in the files of the corrected results, and in their "
                "announcement on News and by email."
            )

    def clean_title(self) -> str:
        title: str = self.cleaned_data["title"]
        if FinalResults.objects.filter(title=title).exists():
            raise forms.ValidationError("Other final results have this title already.")
        return title


class OutageForm(forms.ModelForm[Outage]):
    """Maintenance that is planned, or an outage that the site couldn't notice: its times say which."""

    ends_at = forms.DateTimeField(label="Ends", widget=UtcInput, help_text="In UTC.")
    track = forms.ModelChoiceField(
        Track.objects.all(), required=False, empty_label="all tracks", to_field_name="slug"
    )

    class Meta:
        model = Outage
        fields = ("starts_at", "ends_at", "track", "text")
        widgets = {"starts_at": UtcInput}
        labels = {"text": "What happens"}
        help_texts = {
            "starts_at": "In UTC.",
            "text": "Plain text. For planned maintenance, this text and the times appear on every page.",
        }

    def clean_track(self) -> str:
        track = self.cleaned_data["track"]
        return track.slug if track else ""

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        starts_at, ends_at = values.get("starts_at"), values.get("ends_at")
        if starts_at and ends_at and ends_at <= starts_at:
            self.add_error("ends_at", "The end must be after the start.")
        return values
