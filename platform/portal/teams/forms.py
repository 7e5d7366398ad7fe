from django import forms

from portal.teams.models import Invitation, Team


class TeamDetailsForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    website = forms.URLField(required=False, max_length=200, assume_scheme="https")

    class Meta:
        model = Team
        fields = ["affiliation", "website"]


class TeamForm(TeamDetailsForm):
    class Meta(TeamDetailsForm.Meta):
        fields = ["name", "affiliation", "website"]


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    class Meta:
        model = Invitation
        fields = ["email"]
