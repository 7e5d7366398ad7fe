from django import forms

from portal.challenge.models import Track
from portal.submissions.models import Submission


class LinkField(forms.URLField):
    """A link, of which the scheme may be left out; a browser's own check of URLs would reject that."""

    widget = forms.TextInput(attrs={"inputmode": "url", "autocapitalize": "none", "spellcheck": "false"})

    def __init__(self, label: str) -> None:
        super().__init__(label=label, required=False, assume_scheme="https", max_length=200)


class TextForm(forms.ModelForm[Submission]):
    """What a team may change of its method's text at any time, also after it was submitted."""

    code_url = LinkField("Link to the code")
    paper_url = LinkField("Link to a paper")

    class Meta:
        model = Submission
        fields = ["description", "code_url", "paper_url"]
        widgets = {"description": forms.Textarea(attrs={"rows": 8})}


class SubmissionForm(TextForm):
    """What a team says about its method. The API validates with it as well."""

    class Meta(TextForm.Meta):
        fields = ["title", *TextForm.Meta.fields]


class NewSubmissionForm(SubmissionForm):
    """The same, and the track that it is for."""

    track = forms.ModelChoiceField(
        Track.objects.all(), help_text="To enter both tracks, submit the method to each."
    )

    class Meta(SubmissionForm.Meta):
        fields = ["track", *SubmissionForm.Meta.fields]
