from django import forms
from django.http import HttpRequest

from portal.accounts.models import User


class SignupForm(forms.Form):
    """What sign-up asks for beside e-mail and password (allauth asks for those)."""

    name = forms.CharField(max_length=120, label="Your name")

    def signup(self, request: HttpRequest, user: User) -> None:
        user.name = self.cleaned_data["name"]
        user.save(update_fields=["name"])
