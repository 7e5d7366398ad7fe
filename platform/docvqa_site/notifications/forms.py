"""The form that chooses which notifications come by mail."""

from typing import Any

from django import forms
from django.utils.html import format_html

from docvqa_site.accounts.models import User
from docvqa_site.notifications.kinds import ALWAYS_MAILED, explanation, kinds_for
from docvqa_site.notifications.preferences import mailed_kinds

SHOWN = (
    "<span><span id='kind-{}'>{}</span> <br><span class='muted small' id='kind-{}-explained'>{}</span></span>"
)


class _Boxes(forms.CheckboxSelectMultiple):
    """Boxes that are named by their kinds alone, and described by the explanations."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        option["attrs"] |= {"aria-labelledby": f"kind-{value}", "aria-describedby": f"kind-{value}-explained"}
        return option


class MailForm(forms.Form):
    """One box for each kind that can be turned off."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kinds"] = forms.MultipleChoiceField(
            required=False,
            label="Also by email",
            widget=_Boxes,
            initial=mailed_kinds(user),
            choices=[
                (kind.value, format_html(SHOWN, kind.value, kind.label, kind.value, explanation(kind, user)))
                for kind in kinds_for(user)
                if kind not in ALWAYS_MAILED
            ],
        )
