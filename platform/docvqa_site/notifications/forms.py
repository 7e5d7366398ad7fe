"""The form that chooses which notifications come by mail."""

from typing import Any

from django import forms
from django.utils.html import format_html

from docvqa_site.accounts.models import User
from docvqa_site.notifications.kinds import ALWAYS_MAILED, EXPLANATIONS, kinds_for
from docvqa_site.notifications.preferences import mailed_kinds


class MailForm(forms.Form):
    """One box for each kind that can be turned off."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shown = "<span>{} <br><span class='muted small'>{}</span></span>"
        self.fields["kinds"] = forms.MultipleChoiceField(
            required=False,
            label="Also by email",
            widget=forms.CheckboxSelectMultiple,
            initial=mailed_kinds(user),
            choices=[
                (kind.value, format_html(shown, kind.label, EXPLANATIONS[kind]))
                for kind in kinds_for(user)
                if kind not in ALWAYS_MAILED
            ],
        )
