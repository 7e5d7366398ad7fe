from typing import ClassVar

from django import forms

from docvqa_site.teams.models import Invitation, Team
from docvqa_site.ui.links import LinkField


class TeamDetailsForm(forms.ModelForm[Team]):
    """The details of a team that its owners edit."""

    website = LinkField()

    class Meta:
        model = Team
        fields = ["affiliation", "website", "country"]
        # The label says that it is optional.
        help_texts: ClassVar = {"country": "Shown on the team's page, and counted on the participation page."}


class TeamForm(TeamDetailsForm):
    class Meta(TeamDetailsForm.Meta):
        fields = ["name", "affiliation", "website", "country"]


class InvitationForm(forms.ModelForm[Invitation]):
    class Meta:
        model = Invitation
        fields = ["email"]


class KeyForm(forms.Form):
    """A public key as text; whether it is one is for `keys.register_key` to say. The API reads it as well."""

    public_key = forms.CharField(
        label="Public key",
        max_length=200,
        help_text="64 hexadecimal digits: <code>pfl key show</code> prints them.",
    )
    name = forms.CharField(
        required=False, max_length=80, help_text="For example, the machine where the key is stored."
    )
