"""The addresses for whatever supervises the site: whether it runs, whether it can work, and its metrics."""

import ipaddress
import secrets

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseServerError, JsonResponse
from django.template import loader
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import requires_csrf_token
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from portal.operations import metrics
from portal.operations.checks import CHECKS, OK


@never_cache
@require_safe
def alive(_request: HttpRequest) -> JsonResponse:
    """Respond that the process is up. Nothing else is checked, so that a fault elsewhere never restarts it."""
    return JsonResponse({"status": OK})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Respond whether all that the site needs works; 503 otherwise.

    `?check=database&check=disk` asks for some of the checks, such as those that one web server should leave a load
    balancer for. A name that doesn't exist is a 404, so that a misspelled probe can't succeed.
    """
    # Each once, or one request could make the site ask its services hundreds of times.
    names = list(dict.fromkeys(request.GET.getlist("check"))) or list(CHECKS)
    if not CHECKS.keys() >= set(names):
        raise Http404
    outcomes = {name: CHECKS[name]() for name in names}
    is_ready = all(outcome == OK for outcome in outcomes.values())
    return JsonResponse(
        {"status": "ready" if is_ready else "not ready", "checks": outcomes}, status=200 if is_ready else 503
    )


@never_cache
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Respond with the site's metrics, in Prometheus's text format; 404 to whoever may not read them."""
    if not _may_read_metrics(request):
        raise Http404
    return HttpResponse(metrics.exposition(), content_type=CONTENT_TYPE_LATEST)


def _may_read_metrics(request: HttpRequest) -> bool:
    """Return whether the request has the token or, where none is set, comes straight from a private address."""
    if token := settings.METRICS_TOKEN:
        expected = f"Bearer {token}".encode()
        return secrets.compare_digest(request.headers.get("Authorization", "").encode(), expected)
    # What a proxy passes on comes from elsewhere.
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_private
    except ValueError:
        return False


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """Respond to an exception with a page that names the request, by which the log has the details.

    The template gets no request: what knows it may ask the database, which may be the reason for the exception.
    """
    page = loader.get_template("500.html").render({"request_id": request.META.get("REQUEST_ID", "")})
    return HttpResponseServerError(page)
