"""Downloads and their terms in the administration. Files come from a track's setup or `manage.py add_download`."""

from typing import Any

from django.contrib import admin
from django.db.models import URLField
from django.http import HttpRequest
from typing_extensions import override

from docvqa_site.audit.admin import AuditedAdmin, ReadOnlyAdmin
from docvqa_site.downloads.models import Acceptance, Download, Terms


@admin.register(Download)
class DownloadAdmin(AuditedAdmin[Download]):
    """What is offered: everything about a file but the file itself."""

    list_display = ["title", "kind", "filename", "size_bytes", "license", "terms", "is_offered"]
    list_filter = ["kind", "is_offered"]
    readonly_fields = ["slug", "filename", "size_bytes", "sha256", "added_at"]
    exclude = ["store_key"]
    may_add = False
    formfield_overrides = {URLField: {"assume_scheme": "https"}}


@admin.register(Terms)
class TermsAdmin(AuditedAdmin[Terms]):
    list_display = ["title", "version", "added_at"]
    readonly_fields = ["added_at"]

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # What people have accepted stays what it was; another text is another version.
        return ["title", "version", "text", "added_at"] if obj and obj.acceptances.exists() else ["added_at"]


@admin.register(Acceptance)
class AcceptanceAdmin(ReadOnlyAdmin[Acceptance]):
    """Who has accepted which version of which terms, and when."""

    list_display = ["terms", "user", "accepted_at"]
    list_filter = ["terms"]
    list_select_related = ["terms", "user"]
    search_fields = ["user__email", "user__name"]
