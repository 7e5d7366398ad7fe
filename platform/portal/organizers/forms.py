"""The desk's forms."""

from typing import Any

from django import forms

from portal.challenge.models import Track
from portal.organizers.announcements import NAMES, Announcement, Audience


class TrackForm(forms.ModelForm[Track]):
    """The rules of a track that the desk changes, and a public reason."""

    reason = forms.CharField(
        max_length=300, required=False, help_text="Public, beside the change on the track's page."
    )

    class Meta:
        model = Track
        fields = (
            "anls_threshold",
            "required_reviews",
            "budgets",
            "submissions_per_day",
            "paused",
            "opens_at",
            "closes_at",
        )
        labels = {
            "anls_threshold": "ANLS threshold",
            "required_reviews": "Accepting reviewers",
            "budgets": "Privacy budgets ε",
        }
        widgets = {"budgets": forms.TextInput}
        help_texts = {
            "required_reviews": "That make a result verified.",
            "budgets": "One board each, such as [1, 4, 8].",
            "opens_at": "In UTC, such as 2026-11-22 14:00.",
            "closes_at": "In UTC. Empty: no deadline.",
        }

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        # Tracks rank by budgets, with reviews, or by bytes, with a threshold.
        others = ["anls_threshold"] if self.instance.is_private else ["required_reviews", "budgets"]
        for name in others:
            del self.fields[name]


class DisqualificationForm(forms.Form):
    """Why a run has no rank."""

    reason = forms.CharField(
        max_length=300, help_text="Public: it is shown on the leaderboard and on the method's page."
    )


class AnnouncementForm(forms.Form):
    """A mail to participants."""

    audience = forms.ChoiceField(
        choices=[(audience.value, name) for audience, name in NAMES.items()], label="To"
    )
    track = forms.ModelChoiceField(
        Track.objects.all(),
        required=False,
        empty_label="all tracks",
        help_text="The track in which a submission or run counts; the first two choices ignore it.",
    )
    subject = forms.CharField(max_length=120)
    text = forms.CharField(max_length=10_000, widget=forms.Textarea, help_text="Plain text.")

    def announcement(self) -> Announcement:
        """Return what the valid form says."""
        values = self.cleaned_data
        return Announcement(Audience(values["audience"]), values["subject"], values["text"], values["track"])
