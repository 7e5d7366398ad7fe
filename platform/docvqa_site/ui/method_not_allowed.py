"""A page for addresses that were opened in the browser though only a form may be sent to them."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import resolve


class MethodNotAllowedPage:
    """Middleware: fills the empty answer 405 to a person with a page that leads on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        is_empty = response.status_code == HTTPStatus.METHOD_NOT_ALLOWED and not response.content
        if not (is_empty and request.method == "GET" and request.accepts("text/html")):
            return response
        page = render(request, "405.html", {"page_above": _page_above(request.path)}, status=405)
        page["Allow"] = response["Allow"]
        return page


def _page_above(path: str) -> str:
    """Return the address of the nearest page above this one; that of the home page if there is no nearer one."""
    while path.count("/") > 1:
        path = path.rstrip("/").rpartition("/")[0] + "/"
        try:
            resolve(path)
        except Http404:
            continue
        return path
    return "/"
