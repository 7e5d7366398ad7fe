"""The notices at the top of every page."""

from django import template
from django.template.context import Context

from docvqa_site.liveness.models import Notice
from docvqa_site.liveness.notices import shown_notices

register = template.Library()


@register.simple_tag(takes_context=True)
def site_notices(context: Context) -> list[Notice]:
    """Return the notices to show now; none on the page of an error, which is rendered without a request."""
    request = context.get("request")
    return shown_notices(request) if request is not None else []
