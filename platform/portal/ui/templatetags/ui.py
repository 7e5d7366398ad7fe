"""Template tags for what every page shows alike: sizes, scores, times, navigation."""

from datetime import datetime

from django import template
from django.conf import settings
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from evaluator.contracts import evaluator_version
from evaluator.scoring.metrics import cut
from portal.ui.markdown import render_markdown
from portal.ui.rounding import interval_text

register = template.Library()

BYTE_UNITS = ["kB", "MB", "GB", "TB", "PB"]
MISSING = "–"


@register.filter("bytes")
def bytes_tag(size: int | None) -> str:
    """Return a number of bytes with three digits in decimal units, with the exact number in the title."""
    if size is None:
        return MISSING
    return format_html('<data value="{}" title="{} bytes">{}</data>', size, f"{size:,}", readable_bytes(size))


def readable_bytes(size: int) -> str:
    """Return `size` bytes as text: 1_234_567 is "1.23 MB"."""
    if size < 1000:
        return f"{size} B"
    value, units = size / 1000, iter(BYTE_UNITS)
    unit = next(units)
    while value >= 999.5 and (larger := next(units, None)):
        value, unit = value / 1000, larger
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f} {unit}"


@register.filter
def score(value: float | None) -> str:
    """Return a score in [0, 1] as `cut` shows it. Further digits would reveal more of the test set than they should."""
    return MISSING if value is None else cut(value)


@register.simple_tag
def score_interval(low: float | None, high: float | None) -> str:
    """Return an interval of scores; empty where there is none."""
    return "" if low is None or high is None else interval_text(low, high)


@register.filter
def exact_score(value: float | None) -> str:
    """Return a score for organizers, with all of its digits in the title."""
    if value is None:
        return MISSING
    return format_html('<data value="{}" title="{}">{}</data>', value, value, cut(value))


@register.filter
def ago(moment: datetime | None) -> str:
    """Return a time relative to now, such as "3 hours ago", with the exact time in the title."""
    if moment is None:
        return MISSING
    return _time(moment, naturaltime(moment))


@register.filter
def day(moment: datetime | None) -> str:
    """Return the date of a time, such as "22 Nov 2026", with the time in the title."""
    if moment is None:
        return MISSING
    local = localtime(moment)
    return _time(moment, f"{local.day} {local:%b %Y}")


@register.filter
def at(moment: datetime | None) -> str:
    """Return a time in full."""
    if moment is None:
        return MISSING
    return _time(moment, _in_full(moment))


def _time(moment: datetime, text: str) -> SafeString:
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), _in_full(moment), text)


def _in_full(moment: datetime) -> str:
    local = localtime(moment)
    return f"{local.day} {local:%B %Y, %H:%M %Z}"


@register.filter
def markdown(text: str) -> SafeString:
    """Return Markdown as sanitized HTML."""
    return render_markdown(text)


@register.filter
def inline_code(text: str) -> SafeString:
    """Return text as HTML, with what is between backticks as code. Text that is HTML already stays as it is."""
    if isinstance(text, SafeString):
        return text
    parts = enumerate(str(text).split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if at % 2 else part,) for at, part in parts)
    )


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, view: str, label: str, app: str = "") -> SafeString:
    """Return a link of the main navigation, marked as current on every page of its app."""
    match = getattr(context.get("request"), "resolver_match", None)
    current = match is not None and match.app_name == (app or view.partition(":")[0])
    return format_html(
        '<a href="{}"{}>{}</a>', reverse(view), SafeString(' aria-current="page"' if current else ""), label
    )


@register.simple_tag
def version() -> str:
    """Return the version of the site and its evaluator."""
    return evaluator_version()


@register.simple_tag
def source_url() -> str:
    """Return the address of the source code."""
    return settings.SOURCE_URL
