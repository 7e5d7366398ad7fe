"""Tracks in the administration: where the organizers set the rules."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from typing_extensions import override

from docvqa_site.audit.admin import AuditedAdmin
from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.models import Track


@admin.register(Track)
class TrackAdmin(AuditedAdmin[Track]):
    """A track with its rules. The organizers' desk sets up new ones."""

    list_display = ["name", "slug", "ranking", "is_draft", "paused"]
    list_filter = ["ranking", "is_draft", "paused"]
    may_add = may_delete = False
    # Addresses that are out in the world stay valid. The rest changes rules that people rely on: the desk shows the
    # effect beforehand, and notes the change publicly.
    readonly_fields = [
        "slug",
        "ranking",
        "summary",
        "description",
        "paused",
        "registration",
        "registration_questions",
        "max_checkpoint_bytes",
        "challenges_per_day",
        "reference",
        "trainable",
        "test_set",
        "clients",
        "max_rounds",
        "first_download",
        "anls_threshold",
        "budgets",
        "required_reviews",
        "unbound_level",
        "delta",
        "sampling_rule",
        "accountant",
        "adjacency",
        "providers_per_client",
        "drawn_rounds",
        "submission_license",
    ]
    fieldsets = [
        (None, {"fields": ["name", "slug", "summary", "description", "position"]}),
        (
            "What teams submit",
            {
                "description": "The phases decide when and how often teams can submit: see the organizers' desk.",
                "fields": [
                    "paused",
                    "registration",
                    "registration_questions",
                    "max_checkpoint_bytes",
                    "challenges_per_day",
                    "requires_code",
                    "submission_license",
                ],
            },
        ),
        (
            "What the evaluator applies",
            {
                "description": "Submitted runs keep the rules of the time of their submission.",
                "fields": ["reference", "trainable", "test_set", "clients", "max_rounds", "first_download"],
            },
        ),
        (
            "Leakage",
            {
                "description": "Leakage is measured only for runs that have a rank. It doesn't change the rank.",
                "fields": ["leakage_set", "leakage_split"],
            },
        ),
        (
            "Ranking",
            {
                "description": "The organizers' desk changes its rules and texts: it shows what "
                "a change does, and notes it on the track's page.",
                "fields": ["ranking", "anls_threshold", "budgets", "required_reviews", "unbound_level"],
            },
        ),
        (
            "Privacy accounting",
            {
                "description": "Submitted runs keep the rules of the time of their submission.",
                "fields": [
                    "delta",
                    "sampling_rule",
                    "accountant",
                    "adjacency",
                    "providers_per_client",
                    "data_sha256",
                    "drawn_rounds",
                ],
            },
        ),
    ]

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Track]:
        return Track.with_drafts.all()

    @override
    def save_model(self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        boards_changed(obj.pk)
