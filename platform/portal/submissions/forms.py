from django import forms

from portal.challenge.models import Track
from portal.submissions.models import Submission


class SubmissionForm(forms.ModelForm[Submission]):
    """What a team says about its method. The API validates with it as well."""

    code_url = forms.URLField(label="Link to the code", required=False, assume_scheme="https", max_length=200)
    paper_url = forms.URLField(label="Link to a paper", required=False, assume_scheme="https", max_length=200)

    class Meta:
        model = Submission
        fields = ["title", "description", "code_url", "paper_url"]
        widgets = {"description": forms.Textarea(attrs={"rows": 8})}


class NewSubmissionForm(SubmissionForm):
    """The same, and the track that it is for."""

    track = forms.ModelChoiceField(
        Track.objects.all(), help_text="A method may be submitted to each track by itself."
    )

    class Meta(SubmissionForm.Meta):
        fields = ["track", *SubmissionForm.Meta.fields]
