"""The template filter for upper bounds, of which ε is the one."""

from django import template
from django.utils.html import format_html

from portal.ui.rounding import rounded_up

register = template.Library()


@register.filter
def bound(epsilon: float | None) -> str:
    """An ε, rounded up; all of its digits are in the title."""
    if epsilon is None:
        return "–"
    return format_html('<data value="{}" title="{}">{}</data>', epsilon, epsilon, rounded_up(epsilon))
