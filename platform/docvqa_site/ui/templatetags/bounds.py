"""Template filters for upper bounds, such as ε."""

from django import template

from docvqa_site.ui.markup import markup
from docvqa_site.ui.rounding import epsilon_text, percent_up, power_of_ten, rounded_up

register = template.Library()


@register.filter
def bound(epsilon: float | None) -> str:
    """Return an ε, rounded up, with all of its digits in the title."""
    return "–" if epsilon is None else _titled(epsilon, rounded_up(epsilon))


@register.filter
def epsilon(value: float | None) -> str:
    """Return a run's ε with four decimals, rounded up, with all of its digits in the title."""
    return "–" if value is None else _titled(value, epsilon_text(value))


register.filter("delta", power_of_ten)


register.filter("percent_up", percent_up)


def _titled(value: float, text: str) -> str:
    return markup('<data value="{}" title="{}">{}</data>', value, value, text)
