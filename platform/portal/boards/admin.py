"""Final results in the administration, where organizers add the DOI under which they have archived the files."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from portal.audit.admin import AuditedAdmin
from portal.boards.models import FinalResults


@admin.register(FinalResults)
class FinalResultsAdmin(AuditedAdmin[FinalResults]):
    list_display = ["title", "phase", "made_at", "doi"]
    fields = ["title", "slug", "phase", "made_at", "doi"]
    set_once = ["title", "slug", "phase", "made_at"]

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
