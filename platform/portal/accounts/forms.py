"""The forms of people's accounts; allauth brings those for passwords and e-mail addresses."""

from django import forms
from django.contrib.auth.forms import AdminUserCreationForm
from django.http import HttpRequest

from portal.accounts.models import ApiToken, User


class SignupForm(forms.Form):
    """What sign-up asks for beside e-mail and password (allauth asks for those)."""

    name = forms.CharField(
        max_length=120,
        label="Your name",
        help_text="As it should appear beside your team's results.",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def signup(self, _request: HttpRequest, user: User) -> None:
        user.name = self.cleaned_data["name"]
        user.save(update_fields=["name"])


class ProfileForm(forms.ModelForm[User]):
    class Meta:
        model = User
        fields = ["name"]
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "name"})}


class TokenForm(forms.ModelForm[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["label"]


class NewUserForm(AdminUserCreationForm[User]):
    """How an organizer adds a person in the administration."""

    class Meta:
        model = User
        fields = ["email", "name"]
        field_classes: dict[str, type[forms.Field]] = {}

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()
