"""The form that chooses which notifications come by mail."""

from typing import Any

from django import forms
from django.utils.html import format_html

from portal.accounts.models import User
from portal.notifications.kinds import ALWAYS_MAILED, EXPLANATIONS, kinds_for
from portal.notifications.preferences import mailed_kinds


class MailForm(forms.Form):
    """One box for each kind that can be turned off."""

    kinds = forms.MultipleChoiceField(
        required=False, label="Also by e-mail", widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["kinds"] = mailed_kinds(user)
        field = self.fields["kinds"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  (as declared above)
        field.choices = [
            (
                kind.value,
                format_html(
                    "<span>{} <br><span class='muted small'>{}</span></span>", kind.label, EXPLANATIONS[kind]
                ),
            )
            for kind in kinds_for(user)
            if kind not in ALWAYS_MAILED
        ]
