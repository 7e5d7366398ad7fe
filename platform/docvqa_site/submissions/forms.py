from collections.abc import Collection
from typing import Any, ClassVar

from django import forms
from django.utils import timezone

from docvqa_site.challenge.models import Phase, Track
from docvqa_site.submissions.models import MAX_NOTE, RunToken, Submission
from docvqa_site.submissions.quota import PRACTICE_SLOTS
from docvqa_site.ui.links import LinkField

MARKDOWN = "Markdown, with formulas between dollar signs: $…$, or $$…$$ on lines of their own."


class TextForm(forms.ModelForm[Submission]):
    """What a team may change of its method's text at any time, also after it was submitted."""

    may_change_track = False
    code_url = LinkField("Link to the code")
    paper_url = LinkField("Link to a paper")

    class Meta:
        model = Submission
        fields = ["description", "code_url", "paper_url"]
        widgets = {"description": forms.Textarea(attrs={"rows": 8})}
        help_texts: ClassVar[dict[str, str]] = {"description": MARKDOWN}

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if self.instance.track_id and self.instance.track.requires_code and not self.instance.practice:
            self.require_later([self.instance.track])

    def require_later(self, tracks: Collection[Track]) -> None:
        """Say at the fields that these tracks require description and code, which a draft may still lack."""
        if not tracks:
            return
        named = " and ".join(f"“{track}”" for track in tracks)
        required = f"required in {named}" if self.may_change_track else "required"
        self.fields["code_url"].help_text = "A link to a commit."
        unless = {"description": "", "code_url": " unless each run has files of the code"}
        for name, exception in unless.items():
            self.fields[name].widget.is_required_later = True
            # Beside the label, where others say that they are optional.
            self.fields[name].widget.required_when = required + exception


class WithdrawalForm(forms.Form):
    """Why a team withdraws a submission, if it says so. The API validates with it."""

    reason = forms.CharField(
        max_length=300,
        required=False,
        help_text="Shown permanently on the page of the withdrawn submission.",
    )


class ExplanationForm(forms.ModelForm[RunToken]):
    """What a team says about an unresolved challenge. The API validates with it."""

    class Meta:
        model = RunToken
        fields = ["explanation"]


class SubmissionForm(TextForm):
    """What a team says about its method, and what of it stays unpublished. The API validates with it."""

    class Meta(TextForm.Meta):
        fields = ["title", *TextForm.Meta.fields, "keep_private", "anonymous", "practice"]


class DraftForm(SubmissionForm):
    """The same, without the choices that the phase doesn't allow.

    One that was made stays, so that nothing becomes public by an oversight, and so that it can be taken back.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.fields["practice"].help_text += (
            f" A team has {PRACTICE_SLOTS} of them per track in 24 hours. In a privacy track, practice uses up the "
            "run token of its training record: submit the same record for a rank later, or its challenge stays "
            "unresolved."
        )
        phases = self.phases()
        allowed = {
            "keep_private": any(phase.allows_private for phase in phases),
            "anonymous": any(phase.allows_anonymous for phase in phases),
        }
        for name, is_allowed in allowed.items():
            if not (is_allowed or getattr(self.instance, name) or name in self.data):
                del self.fields[name]

    def phases(self) -> list[Phase]:
        """Return the phase in which the draft would be submitted, as far as is known."""
        phase = self.instance.track.nearest_phase(timezone.now())
        return [phase] if phase else []


class NewSubmissionForm(DraftForm):
    """The same, and the track that it is for."""

    may_change_track = True
    track = forms.ModelChoiceField(
        Track.objects.all(),
        empty_label="Choose a track",
        help_text="To enter several tracks, submit the method to each.",
    )

    class Meta(DraftForm.Meta):
        fields = ["track", *DraftForm.Meta.fields]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.require_later(Track.objects.filter(requires_code=True))

    def phases(self) -> list[Phase]:
        now = timezone.now()
        found = [track.nearest_phase(now) for track in Track.objects.prefetch_related("phases")]
        return [phase for phase in found if phase]


class RevisionForm(forms.Form):
    """What changed in a revised proof."""

    note = forms.CharField(
        label="What changed",
        max_length=MAX_NOTE,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="The reviewers will see this note next to the new version. Respond to their requests.",
    )
