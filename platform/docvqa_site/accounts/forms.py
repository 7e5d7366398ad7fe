"""The forms of people's accounts; allauth provides those for passwords and email addresses."""

import secrets
from typing import Any

from django import forms
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from docvqa_site.accounts.models import TOKEN_DAYS, ApiToken, User
from docvqa_site.accounts.orcid import clean_orcid
from docvqa_site.accounts.rights import is_last_superuser
from docvqa_site.ui.names import NameFormField

TOKEN_LIFETIMES = (7, 30, TOKEN_DAYS, 365)


class SignupForm(forms.Form):
    """The fields of the sign-up form besides email and password, which allauth adds."""

    name = NameFormField(
        max_length=120,
        label="Your name",
        help_text="Shown with your team's results.",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def signup(self, _request: HttpRequest, user: User) -> None:
        user.name = self.cleaned_data["name"]
        user.save(update_fields=["name"])


class ProfileForm(forms.ModelForm[User]):
    """The details of an account that its user edits; `services.update_profile` saves them."""

    # Longer than an iD, because its address is taken too.
    orcid = forms.CharField(
        label="ORCID iD",
        required=False,
        max_length=80,
        help_text="For example, 0000-0002-1825-0097 or its web address.",
    )

    class Meta:
        model = User
        fields = ["name", "orcid", "shows_orcid"]
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "name"})}

    def clean_orcid(self) -> str:
        return clean_orcid(self.cleaned_data["orcid"])


class TokenForm(forms.ModelForm[ApiToken]):
    """What a new API token is called, may do, and how long it is valid."""

    days = forms.TypedChoiceField(
        coerce=int,
        choices=[(days, f"{days} days") for days in TOKEN_LIFETIMES],
        initial=TOKEN_DAYS,
        label="Valid for",
        help_text="The default is long enough for most competitions. Choose a shorter time on a shared "
        "machine: a leaked token is useless once it expires.",
    )

    # By which a form that is sent twice is recognized.
    page = forms.CharField(
        required=False, max_length=50, initial=secrets.token_urlsafe, widget=forms.HiddenInput
    )

    class Meta:
        model = ApiToken
        fields = ["label", "scope"]
        # A list would cut its long choices off.
        widgets = {"scope": forms.RadioSelect}


class NewUserForm(AdminUserCreationForm[User]):
    """The form by which an organizer adds a person in the administration."""

    class Meta:
        model = User
        fields = ["email", "name"]
        field_classes: dict[str, type[forms.Field]] = {}

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class ChangedUserForm(UserChangeForm[User]):
    """The form by which an organizer changes a person in the administration."""

    def clean(self) -> dict[str, Any]:
        """Keep the last superuser, without whom nobody could give rights again."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        kept = data.get("is_superuser", True) and data.get("is_active", True)
        if not kept and is_last_superuser(self.instance):
            raise ValidationError("This is the last active superuser. Make another person a superuser first.")
        return data
