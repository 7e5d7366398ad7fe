"""Final results in the administration, where organizers add the DOI under which they have archived the files."""

from django.contrib import admin

from docvqa_site.audit.admin import AuditedAdmin
from docvqa_site.boards.models import FinalResults


@admin.register(FinalResults)
class FinalResultsAdmin(AuditedAdmin[FinalResults]):
    list_display = ["title", "phase", "made_at", "doi"]
    fields = ["title", "slug", "phase", "made_at", "doi"]
    readonly_fields = ["title", "slug", "phase", "made_at"]
    may_add = may_delete = False
