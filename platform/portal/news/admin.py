"""News in the administration, where the organizers write them."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from portal.audit.admin import AuditedAdmin
from portal.news.models import NewsItem


@admin.register(NewsItem)
class NewsItemAdmin(AuditedAdmin[NewsItem]):
    """Announcements, newest first."""

    list_display = ["title", "published_at"]
    search_fields = ["title", "text"]

    @override
    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj else {"slug": ["title"]}

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # Addresses that are out in the world stay valid.
        return ["slug"] if obj else []
