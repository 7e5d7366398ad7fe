"""The forms of the steps by which a track is set up."""

from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.forms import BaseInlineFormSet, inlineformset_factory
from django.forms.formsets import DELETION_FIELD_NAME
from django.utils import timezone
from django.utils.text import slugify
from typing_extensions import override

from docvqa_site.accounts.selectors import user_by_address
from docvqa_site.challenge.models import Phase, StaffRole, Track
from docvqa_site.challenge.phases import overlap
from docvqa_site.challenge.rankings import OF_ONE_KIND, choices
from docvqa_site.challenge.selectors import organizers_of_all_tracks
from docvqa_site.downloads.models import Download, DownloadKind, Terms
from docvqa_site.evaluation.inventories import stock
from docvqa_site.licenses import EXAMPLES, validate_license
from docvqa_site.organizers import phase_changes
from docvqa_site.organizers.choosing import LeakageField, NumbersField, SizeField, offered, reject_unmatched
from docvqa_site.organizers.forms import ERRORS, HELP, UtcInput, drop_kind, keep_fields_of
from docvqa_site.organizers.rule_changes import NAMES
from docvqa_site.organizers.setup.offering import choose_downloads, of_track_alone
from docvqa_site.uploads.models import Upload, UploadState

# Addresses of the desk itself.
RESERVED_SLUGS = {"new"}
# What proxies let through as one request, as docs/storage.md sets them up; larger files are linked.
MOST_UPLOAD_BYTES = 30_000_000
ABOUT_DATA = ("providers_per_client", "data_sha256")
# The fields of the first step that most tracks set; the others are below them.
GROUPS = {
    "": ("name", "slug"),
    "What is ranked": ("anls_threshold", "budgets", "delta", "sampling_rule"),
    "Training": ("clients", "max_rounds", "max_checkpoint_bytes"),
    "Submissions": ("required_reviews", "requires_code", "submission_license"),
}


class NewTrackForm(forms.Form):
    """What a draft begins with."""

    name = forms.CharField(max_length=120)
    slug = forms.SlugField(
        label="Address",
        max_length=50,
        required=False,
        help_text="The last part of the track's address, made from the name if empty. For example, track-3 gives "
        "/tracks/track-3/.",
    )
    ranking = forms.ChoiceField(
        choices=choices,
        widget=forms.RadioSelect,
        label="Kind",
        help_text="By what the track ranks, which decides its rules, files and boards. It can't be changed later: "
        "with a wrong one, the draft has to be discarded and set up again.",
    )
    source = forms.ModelChoiceField(
        Track.objects.all(),
        required=False,
        label="Copy from",
        empty_label="nothing",
        help_text="Copies the texts, rules, phases and downloads of another track.",
    )

    def clean_slug(self) -> str:
        """Return the address; without one, the name in its form."""
        slug = self.cleaned_data["slug"] or slugify(self.cleaned_data.get("name", ""))[:50].rstrip("-")
        if not slug and "name" in self.cleaned_data:
            raise forms.ValidationError("Enter an address.")
        return free_slug(slug)


def free_slug(slug: str, but: Track | None = None) -> str:
    """Return the slug. Raises `ValidationError` if another track or a page of the desk has it."""
    taken = Track.with_drafts.filter(slug=slug).first()
    if slug in RESERVED_SLUGS or (taken is not None and taken != but):
        raise forms.ValidationError("This address is taken.")
    return slug


class KindForm(forms.ModelForm[Track]):
    """Name, address, and the rules that decide ranks."""

    template_name = "organizers/setup/kind_fields.html"
    # A browser can't show what it misses in a fold that is closed, and would do nothing.
    use_required_attribute = False

    class Meta:
        model = Track
        fields = (
            "name",
            "slug",
            *sorted(OF_ONE_KIND - set(ABOUT_DATA)),
            "clients",
            "max_rounds",
            "max_checkpoint_bytes",
            "requires_code",
            "submission_license",
        )
        labels = {
            **NAMES,
            "slug": "Address",
            "anls_threshold": "ANLS threshold",
            "budgets": "Privacy budgets ε",
            "required_reviews": "Accepting reviewers",
        }
        field_classes = {"budgets": NumbersField, "max_checkpoint_bytes": SizeField}
        error_messages = ERRORS
        # A list would cut its long choices off.
        widgets = {"sampling_rule": forms.RadioSelect}
        help_texts = {
            **HELP,
            "clients": "How many clients hold the training data.",
            "delta": "The δ at which ε is computed.",
            "anls_threshold": "Runs below this score are listed without a rank. 0.8242 is the competition's.",
        }

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        for name in self.fields.keys() & OF_ONE_KIND - set(self.instance.kind.fields):
            del self.fields[name]
        self.order_fields([*chain(*GROUPS.values()), *self.instance.kind.fields])
        drop_kind(self)

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields in groups, each with its title, but for `more`."""
        found = [
            (title, [self[name] for name in names if name in self.fields]) for title, names in GROUPS.items()
        ]
        return [(title, fields) for title, fields in found if fields]

    @property
    def more(self) -> list[forms.BoundField]:
        """The fields that are in no group."""
        grouped = set(chain(*GROUPS.values()))
        return [field for field in self if field.name not in grouped]

    @property
    def more_has_errors(self) -> bool:
        return any(field.errors for field in self.more)

    def clean_slug(self) -> str:
        return free_slug(self.cleaned_data["slug"], self.instance)


class TextsForm(forms.ModelForm[Track]):
    class Meta:
        model = Track
        fields = ("summary", "description")
        widgets = {"description": forms.Textarea(attrs={"rows": 24})}
        help_texts = {
            "summary": "One sentence, shown wherever the track is listed.",
            "description": "The rules, in Markdown: the task, what is allowed and what isn't.",
        }


class WeightsForm(forms.ModelForm[Track]):
    """Base weights, test set and leakage set, each among what workers report."""

    reference = forms.ChoiceField(label="Base weights")
    test_set = forms.ChoiceField(label="Test set")
    leakage = LeakageField(label="Leakage set", required=False, help_text=HELP["leakage_set"])

    class Meta:
        model = Track
        fields = ("reference", "trainable", "test_set")
        labels = {"trainable": "Trainable parameters"}
        widgets = {"trainable": forms.Textarea(attrs={"rows": 3})}

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        held = stock()
        for name, holdings in (("reference", held.references), ("test_set", held.test_sets)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)  # noqa: S101
            field.choices = offered(holdings, getattr(self.instance, name))
            # The rest of the page can be saved while no worker has any.
            field.required = len(field.choices) > 1
            field.widget.is_required_later = True
        leakage = self.fields["leakage"]
        assert isinstance(leakage, LeakageField)  # noqa: S101
        leakage.offer(self.instance)
        needed = {"base weights": held.references, "test set": held.test_sets}
        self.lacking = [name for name, holdings in needed.items() if not holdings]
        self.workers = len(held.seen_at)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        reject_unmatched(self, values)
        return values

    @override
    def save(self, commit: bool = True) -> Track:
        for name, value in LeakageField.fields_of(self.cleaned_data["leakage"]).items():
            setattr(self.instance, name, value)
        track: Track = super().save(commit)
        return track


class DataForm(forms.ModelForm[Track]):
    """Which downloads are for the track, and what records say of the data."""

    downloads = forms.ModelMultipleChoiceField(
        # To choose one that is for all tracks would take it from the others.
        Download.objects.filter(tracks__isnull=False).distinct(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="For this track",
        help_text="A download that no other track has is no longer offered once its box is cleared.",
    )

    class Meta:
        model = Track
        fields = ABOUT_DATA
        labels = {"providers_per_client": "Providers per client", "data_sha256": "Data manifest"}
        help_texts = {
            **HELP,
            "data_sha256": "The output of “pfl data manifest FOLDER” for the training data. Runs whose annex states "
            "another hash are rejected. Never shown on the site: distribute it with the data. If empty, it isn't "
            "checked.",
        }
        field_classes = {"providers_per_client": NumbersField}

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        # A public track has them among its rules, whose changes are previewed.
        about = set(self.instance.kind.fields) if self.instance.is_draft else set()
        for name in set(ABOUT_DATA) - about:
            del self.fields[name]
        if not Download.objects.filter(tracks__isnull=False).exists():
            self.fields["downloads"].help_text = "No download is for single tracks yet. Add one above."
        self.fields["downloads"].initial = Download.objects.filter(tracks=self.instance)
        self.order_fields(["downloads"])
        drop_kind(self)

    @override
    def save(self, commit: bool = True) -> Track:
        track: Track = super().save(commit)
        choose_downloads(track, self.cleaned_data["downloads"])
        return track


class DownloadForm(forms.Form):
    """A file to offer, or a link to one, with its license and terms."""

    replaces = forms.ModelChoiceField(
        Download.objects.none(),
        required=False,
        empty_label="nothing: a new download",
        help_text="The new file gets the address of the one that it replaces, which is removed.",
    )
    kind = forms.ChoiceField(choices=DownloadKind.choices)
    title = forms.CharField(max_length=120)
    summary = forms.CharField(max_length=300, required=False)
    # What the page's script has uploaded in parts, in place of the file.
    upload = forms.ModelChoiceField(
        Upload.objects.filter(team=None, state=UploadState.COMPLETED),
        required=False,
        widget=forms.HiddenInput,
    )
    file = forms.FileField(
        required=False,
        help_text="Sent in parts; after an interruption, choose the same file again to resume. Without JavaScript, at "
        f"most {MOST_UPLOAD_BYTES // 10**6} MB.",
    )
    link = forms.URLField(
        required=False,
        max_length=500,
        assume_scheme="https",
        help_text="The address where the file can be downloaded, if you don't upload it here.",
    )
    filename = forms.CharField(
        max_length=200,
        required=False,
        label="File name",
        help_text="Needed only if the link's address doesn't end in the file name.",
    )
    sha256 = forms.RegexField(
        r"^[0-9a-f]{64}$",
        required=False,
        label="SHA-256",
        help_text="Lets people verify the download of a linked file.",
        error_messages={"invalid": "Enter 64 hexadecimal digits in lower case."},
    )
    license = forms.CharField(max_length=80, validators=[validate_license], help_text=EXAMPLES)
    license_url = forms.URLField(required=False, assume_scheme="https", label="Link to the license")
    terms = forms.ModelChoiceField(
        Terms.objects.all(),
        required=False,
        empty_label="none",
        help_text="Everyone must accept these terms before downloading.",
    )
    terms_title = forms.CharField(max_length=120, required=False, label="New terms: title")
    terms_version = forms.CharField(max_length=20, required=False, label="New terms: version", initial="1")
    terms_text = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        label="New terms: text",
        help_text="Markdown.",
    )

    def __init__(self, *args: Any, track: Track, **named: Any) -> None:
        super().__init__(*args, **named)
        replaceable = of_track_alone(track)
        replaces = self.fields["replaces"]
        assert isinstance(replaces, forms.ModelChoiceField)  # noqa: S101
        replaces.queryset = replaceable
        if not replaceable.exists():
            replaces.widget = replaces.hidden_widget()

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        file, link = values.get("file"), values.get("link")
        if bool(file or values.get("upload")) == bool(link) and not self.errors:
            self.add_error("file", "Upload a file or give a link, but not both.")
        if file and file.size > MOST_UPLOAD_BYTES:
            self.add_error(
                "file",
                "This file is too large to be sent without JavaScript; turn it on, or link to the file.",
            )
        replaced = values.get("replaces")
        slug = replaced.slug if replaced else slugify(values.get("title", ""))
        if slug and not replaced and Download.objects.filter(slug=slug).exists():
            self.add_error("title", "Another download has this title. To replace it, choose it above.")
        self._clean_terms(values)
        return {**values, "slug": slug}

    def _clean_terms(self, values: Mapping[str, Any]) -> None:
        title, text = values.get("terms_title"), values.get("terms_text")
        if bool(title) != bool(text):
            self.add_error("terms_text", "New terms need a title and a text.")
        if title and values.get("terms"):
            self.add_error("terms", "Choose existing terms or write new ones, but not both.")
        if Terms.objects.filter(title=title, version=values.get("terms_version")).exists():
            self.add_error("terms_version", "Terms with this title and version already exist.")


class SetupPhaseForm(forms.ModelForm[Phase]):
    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if self.instance.pk is None:
            # It counts once it has a name.
            self.initial["name"] = ""

    class Meta:
        model = Phase
        fields = tuple(phase_changes.NAMES)
        labels = phase_changes.NAMES
        error_messages = ERRORS
        widgets = {"starts_at": UtcInput, "ends_at": UtcInput}
        help_texts = {
            "starts_at": "In UTC. If empty, the phase is open until its end.",
            "submissions_per_day": "",
        }

    def clean_ends_at(self) -> datetime | None:
        ends_at: datetime | None = self.cleaned_data["ends_at"]
        if ends_at and ends_at <= timezone.now():
            raise forms.ValidationError(
                "This time has passed: the phase would be over before the track is public."
            )
        return ends_at


class PhasesOfTrack(BaseInlineFormSet[Phase, Track, SetupPhaseForm]):
    """All phases of a draft, and the fields of one more, which counts once it has a name."""

    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        kept = [
            form.instance
            for form in self.forms
            if (form.instance.pk or form.has_changed()) and not form.cleaned_data.get(DELETION_FIELD_NAME)
        ]
        if not kept:
            raise forms.ValidationError("A track needs at least one phase.")
        if problem := overlap(kept):
            raise forms.ValidationError(problem)

    @override
    def add_fields(self, form: SetupPhaseForm, index: int | None) -> None:
        super().add_fields(form, index)
        keep_fields_of(form, self.instance)
        if form.instance.pk is None:
            del form.fields[DELETION_FIELD_NAME]
        else:
            form.fields[DELETION_FIELD_NAME].label = "Remove this phase"


PhaseForms = inlineformset_factory(
    Track, Phase, form=SetupPhaseForm, formset=PhasesOfTrack, extra=1, can_delete=True
)


class RegistrationForm(forms.ModelForm[Track]):
    class Meta:
        model = Track
        fields = ("registration", "registration_questions")
        labels = {"registration": "Before a team may submit"}
        widgets = {"registration_questions": forms.Textarea(attrs={"rows": 5})}


class InvitationForm(forms.Form):
    email = forms.EmailField(label="Email address")
    role = forms.TypedChoiceField(choices=StaffRole.choices, coerce=StaffRole, label="As")

    def clean(self) -> dict[str, Any]:
        """Reject an invitation to one track of somebody who would keep organizing them all."""
        values: dict[str, Any] = super().clean() or {}
        person = user_by_address(values.get("email", ""))
        if values.get("role") == StaffRole.ORGANIZER and person in organizers_of_all_tracks():
            self.add_error(
                "role",
                f"{person} organizes all tracks, and would keep doing so. To restrict them to this track, first take "
                "the group Organizers and the superuser status from their account on the admin site.",
            )
        return values


class AnyInvitationForm(InvitationForm):
    """An invitation to any role. One to all tracks is kept with one of them, with which it would be removed."""

    track = forms.ModelChoiceField(
        Track.objects.none(),
        required=False,
        empty_label="Choose a track",
        help_text="Ignored for other roles.",
    )

    def __init__(self, data: Any, tracks: QuerySet[Track]) -> None:
        super().__init__(data)
        track, role = self.fields["track"], self.fields["role"]
        assert isinstance(track, forms.ModelChoiceField)  # noqa: S101
        assert isinstance(role, forms.TypedChoiceField)  # noqa: S101
        track.queryset = self._tracks = tracks
        track.widget.is_required_later = True
        track.widget.required_when = "required for an organizer of one track alone"
        role.choices = [
            (one.value, "organizer of one track alone" if one is StaffRole.ORGANIZER else one.label)
            for one in StaffRole
        ]

    def clean(self) -> dict[str, Any]:
        """Take a public track, which nobody discards, for a role that is about all of them."""
        values = super().clean()
        if values.get("role") != StaffRole.ORGANIZER:
            values["track"] = self._tracks.order_by("is_draft", "pk").first()
        if values.get("track") is None:
            self.add_error("track", "Choose a track.")
        return values
