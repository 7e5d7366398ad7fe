"""The desk's forms."""

from typing import Any

from django import forms

from portal.challenge.models import Phase, Track
from portal.challenge.phases import overlap
from portal.challenge.rankings import OF_ONE_KIND
from portal.evaluation.examining.levels import LEVELS
from portal.organizers import phase_changes, track_changes
from portal.organizers.announcements import Audience
from portal.reviews.run_appeals import MAX_ANSWER


class PublicReason(forms.Form):
    """Why something is changed; empty where nothing is to be said."""

    reason = forms.CharField(
        max_length=300, required=False, help_text="Shown publicly with the change on the track page."
    )


class TrackForm(forms.ModelForm[Track], PublicReason):
    """The rules of a track that the desk changes."""

    class Meta:
        model = Track
        fields = tuple(track_changes.NAMES)
        labels = {
            "anls_threshold": "ANLS threshold",
            "required_reviews": "Accepting reviewers",
            "budgets": "Privacy budgets ε",
        }
        widgets = {"budgets": forms.TextInput}
        help_texts = {
            "required_reviews": "Required for a verified result.",
            "budgets": "One board each, such as [1, 4, 8].",
        }

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        for name in self.fields.keys() & OF_ONE_KIND - set(self.instance.kind.fields):
            del self.fields[name]


class PhaseForm(forms.ModelForm[Phase], PublicReason):
    class Meta:
        model = Phase
        fields = tuple(phase_changes.NAMES)

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


class DisqualificationForm(forms.Form):
    reason = forms.CharField(
        max_length=300, help_text="Public: shown on the leaderboard and the method page."
    )


class AnswerForm(forms.Form):
    """The answer to an appeal that isn't granted."""

    answer = forms.CharField(
        max_length=MAX_ANSWER,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="The team alone reads it, on its page and by e-mail.",
    )


class ExaminationForm(forms.Form):
    level = forms.TypedChoiceField(choices=[(level.value, level.label) for level in LEVELS], coerce=int)


class AnnouncementForm(forms.Form):
    audience = forms.TypedChoiceField(choices=Audience.choices, coerce=Audience, label="To")
    track = forms.ModelChoiceField(
        Track.objects.all(),
        required=False,
        empty_label="all tracks",
        help_text="Limits the audience to submissions in this track; ignored by the first two choices.",
    )
    subject = forms.CharField(max_length=120)
    text = forms.CharField(max_length=10_000, widget=forms.Textarea, help_text="Plain text.")
