"""The pages about the benchmark itself."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from docvqa_site.about.citations import PAPERS, bibtex, in_words
from docvqa_site.accounts.sign_in import offered_providers
from docvqa_site.periods import ERASURE_DAYS, PERIODS


@require_safe
def contact(request: HttpRequest) -> HttpResponse:
    """Say who runs the site, and how to reach them."""
    return render(request, "about/contact.html", {"organizers": settings.ORGANIZERS})


@require_safe
def cite(request: HttpRequest) -> HttpResponse:
    """Show how to cite the data set, the competition, this benchmark and its results."""
    year = timezone.now().year
    context = {
        "papers": PAPERS,
        "organizers": settings.ORGANIZERS,
        "bibtex": bibtex(settings.SITE_URL, year),
        "in_words": in_words(settings.SITE_URL, year),
    }
    return render(request, "about/cite.html", context)


@require_safe
def privacy(request: HttpRequest) -> HttpResponse:
    """Say what the site stores about people, who sees it, and how long it is kept."""
    context = {
        "controller": settings.CONTROLLER or settings.ORGANIZERS,
        "legal_basis": settings.LEGAL_BASIS,
        "contact": settings.PRIVACY_CONTACT,
        "providers": list(offered_providers().values()),
        "erasure_days": ERASURE_DAYS,
        "periods": PERIODS.values(),
    }
    return render(request, "about/privacy.html", context)


@require_safe
def conduct(request: HttpRequest) -> HttpResponse:
    """Say how people treat each other and the benchmark here, and where to report what goes wrong."""
    return render(request, "about/conduct.html")
