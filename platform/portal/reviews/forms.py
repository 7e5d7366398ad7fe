"""The reviewer's form: the checklist, one question per field, then the decision."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms import BoundField

from portal.reviews.checklist import CHECKLIST, Answer, Group
from portal.reviews.evidence import Evidence
from portal.reviews.models import Decision

DECISIONS = [(Decision.ACCEPTED, "Accept the proof"), (Decision.REJECTED, "Reject the proof")]
ANSWERS = [(answer.value, answer.value) for answer in Answer]

Question = tuple[BoundField, list[Evidence]]


class ReviewForm(forms.Form):
    """One radio field a checklist item, named by its key. What is required when is for `services.decide` to say."""

    decision = forms.ChoiceField(choices=DECISIONS, widget=forms.RadioSelect)
    reason = forms.CharField(
        required=False,
        max_length=5_000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="The team reads it. When you reject, it is shown on the leaderboard.",
    )
    field_order = [item.key for item in CHECKLIST]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for item in CHECKLIST:
            self.fields[item.key] = forms.ChoiceField(
                label=item.question,
                help_text=item.why,
                choices=ANSWERS,
                widget=forms.RadioSelect,
                required=False,
            )
        self.order_fields(self.field_order)

    def answers(self) -> dict[str, str]:
        """Return the answers given so far, by item."""
        return {item.key: self.cleaned_data[item.key] for item in CHECKLIST if self.cleaned_data[item.key]}

    def groups(
        self, evidence: Mapping[str, list[Evidence]]
    ) -> list[tuple[str, list[tuple[BoundField, list[Evidence]]]]]:
        """Return the questions by group, each with the platform's evidence on it."""
        return [
            (
                group,
                [(self[item.key], evidence.get(item.key, [])) for item in CHECKLIST if item.group == group],
            )
            for group in Group
        ]
