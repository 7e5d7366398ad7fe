"""The files that browsers, robots and security researchers look for at fixed addresses."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from xml.etree import ElementTree

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import Track
from docvqa_site.docs import library
from docvqa_site.news.models import published
from docvqa_site.pages.fixed import FIXED_PAGES

# A reader asks again within this time; the file says that it is old afterwards (RFC 9116, section 2.5.5).
SECURITY_TXT_LIFETIME = timedelta(days=180)
# Nothing for a search engine: what needs an account, what changes with each request, and what costs the site work.
HIDDEN_FROM_ROBOTS = (
    "/account/",
    "/admin/",
    "/api/",
    # As many pages as there are pairs of methods.
    "/leaderboard/*/compare/",
    "/reviews/",
    "/search/",
    "/submissions/create/",
    "/team/",
    "/uploads/",
)


@cache_control(public=True, max_age=86_400)
@require_safe
def security_txt(_request: HttpRequest) -> HttpResponse:
    """Name the contact for reports of vulnerabilities, in the format of RFC 9116."""
    expires = (timezone.now() + SECURITY_TXT_LIFETIME).replace(hour=0, minute=0, second=0, microsecond=0)
    fields = [
        ("Contact", settings.SECURITY_CONTACT),
        ("Expires", f"{expires:%Y-%m-%dT%H:%M:%SZ}"),
        ("Preferred-Languages", "en"),
        ("Canonical", settings.SITE_URL + reverse("security_txt")),
    ]
    return _plain(f"{name}: {value}" for name, value in fields)


@cache_control(public=True, max_age=86_400)
@require_safe
def robots_txt(_request: HttpRequest) -> HttpResponse:
    """Say which pages robots leave alone (RFC 9309)."""
    hidden = (f"Disallow: {path}" for path in HIDDEN_FROM_ROBOTS)
    return _plain(["User-agent: *", *hidden, f"Sitemap: {settings.SITE_URL}{reverse('sitemap')}"])


@cache_control(public=True, max_age=3_600)
@require_safe
def sitemap(_request: HttpRequest) -> HttpResponse:
    """List the pages that a search engine should know (sitemaps.org)."""
    urlset = ElementTree.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for path in _listed_paths():
        ElementTree.SubElement(ElementTree.SubElement(urlset, "url"), "loc").text = settings.SITE_URL + path
    content = ElementTree.tostring(urlset, encoding="utf-8", xml_declaration=True)
    return HttpResponse(content, content_type="application/xml")


def _listed_paths() -> Iterator[str]:
    for page in FIXED_PAGES:
        yield reverse(page.view)
    for track in Track.objects.all():
        yield track.get_absolute_url()
        yield reverse("leaderboard:track", args=[track.slug])
    for documents in library.GROUPS.values():
        for name in documents:
            yield reverse("docs:document", args=[library.address(name)])
    for item in published():
        yield item.get_absolute_url()
    for results in FinalResults.objects.all():
        yield results.get_absolute_url()


@cache_control(public=True, max_age=86_400)
@require_safe
def favicon(_request: HttpRequest) -> HttpResponse:
    """Lead to the logo from where browsers look for it beside a page that doesn't name one, as the admin's."""
    return HttpResponseRedirect(static("ui/logo.svg"))


def _plain(lines: Iterable[str]) -> HttpResponse:
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")
