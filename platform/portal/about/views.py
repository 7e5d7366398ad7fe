"""The pages about the benchmark itself."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.about.citations import bibtex, in_words


@require_safe
def contact(request: HttpRequest) -> HttpResponse:
    """Say who runs the site, and how to reach them."""
    return render(request, "about/contact.html", {"organizers": settings.ORGANIZERS})


@require_safe
def cite(request: HttpRequest) -> HttpResponse:
    """Show how to cite the benchmark."""
    year = timezone.now().year
    context = {"bibtex": bibtex(settings.SITE_URL, year), "in_words": in_words(settings.SITE_URL, year)}
    return render(request, "about/cite.html", context)
