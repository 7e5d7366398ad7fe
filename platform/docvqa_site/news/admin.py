"""News in the administration, where the organizers write them."""

from django.contrib import admin

from docvqa_site.audit.admin import AuditedAdmin
from docvqa_site.news.models import NewsItem


@admin.register(NewsItem)
class NewsItemAdmin(AuditedAdmin[NewsItem]):
    """Announcements, newest first."""

    list_display = ["title", "published_at"]
    search_fields = ["title", "text"]
    prepopulated_fields = {"slug": ["title"]}
    # Addresses that are out in the world stay valid.
    set_once = ["slug"]
