"""Actions of the administration on several objects, which first show how many, which, and what will happen to them."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

Action = Callable[[Any, HttpRequest, "QuerySet[Any]"], HttpResponse | None]
# More are changed all the same.
MOST_SHOWN = 20


def mass_action(description: str, *, effect: str, permissions: Sequence[str]) -> Callable[[Action], Action]:
    """Return a decorator for an action that runs once its number of objects and its `effect` were confirmed.

    If the number has changed since it was shown, it is shown again.
    """

    def decorate(action: Action) -> Action:
        @admin.action(description=description, permissions=permissions)
        @wraps(action)
        def confirmed(self: Any, request: HttpRequest, queryset: "QuerySet[Any]") -> HttpResponse | None:
            count = queryset.count()
            if request.POST.get("confirmed") == str(count):
                return action(self, request, queryset)
            context = {
                **self.admin_site.each_context(request),
                "title": f"{description}?",
                "opts": self.opts,
                "media": self.media,
                "count": count,
                "objects": queryset[:MOST_SHOWN],
                "more": max(count - MOST_SHOWN, 0),
                "effect": effect,
                "action": action.__name__,
                "selected": request.POST.getlist("_selected_action"),
                "across": request.POST.get("select_across", "0"),
            }
            return TemplateResponse(request, "admin/mass_action.html", context)

        confirmed.effect = effect  # type: ignore[attr-defined]  # by which a test finds the actions that don't ask
        return confirmed

    return decorate
