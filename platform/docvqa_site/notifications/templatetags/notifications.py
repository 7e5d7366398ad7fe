"""The number of unread notifications in the site's menu."""

from typing import Any

from django import template
from django.template.context import Context

from docvqa_site.notifications.inbox import unread_count

register = template.Library()


@register.simple_tag(takes_context=True)
def unread_notifications(context: Context) -> int:
    """Return how many notifications the visitor hasn't read; visitors who aren't logged in cost no query."""
    # A page of an error may be rendered without a user.
    user: Any = context.get("user")
    return unread_count(user) if user is not None and user.is_authenticated else 0
