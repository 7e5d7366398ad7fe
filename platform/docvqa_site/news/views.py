"""The pages of the news."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from docvqa_site.news.models import published
from docvqa_site.ui.paging import page_of

PAGE_LENGTH = 20


@require_safe
def news_list(request: HttpRequest) -> HttpResponse:
    """List the announcements, newest first."""
    page = page_of(published(), PAGE_LENGTH, request.GET.get("page"))
    return render(request, "news/list.html", {"page": page})


@require_safe
def item(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one announcement."""
    return render(request, "news/item.html", {"item": get_object_or_404(published(), slug=slug)})
