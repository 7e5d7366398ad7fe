"""The form by which a team registers for a track."""

from typing import Any

from django import forms

from docvqa_site.challenge.models import Track


class AnswersForm(forms.Form):
    """One text field for each of the track's questions."""

    def __init__(self, track: Track, *args: Any) -> None:
        super().__init__(*args)
        for number, question in enumerate(track.questions):
            self.fields[f"answer_{number}"] = forms.CharField(
                label=question, max_length=2000, widget=forms.Textarea(attrs={"rows": 3})
            )

    @property
    def answers(self) -> list[str]:
        """The answers in the order of the questions."""
        return list(self.cleaned_data.values())
