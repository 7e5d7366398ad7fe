"""Template tags for what every page shows alike: sizes, scores, times, navigation."""

import re
from collections.abc import Callable
from datetime import datetime
from html import unescape
from urllib.parse import urljoin

from django import template
from django.conf import settings
from django.forms import BaseForm, BaseFormSet
from django.template.defaultfilters import stringfilter
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime, now

from docvqa_site.sizes import exact_size
from docvqa_site.ui.budgets import at_budget, board_query, budget_text, unbroken
from docvqa_site.ui.commands import command_html
from docvqa_site.ui.links import safe_href
from docvqa_site.ui.markdown import ADDRESS, TOP_HEADING, render_markdown
from docvqa_site.ui.markup import markup
from docvqa_site.ui.plain_text import plain_text
from docvqa_site.ui.rounding import INTERVAL_DECIMALS, interval_text
from evaluator.messages.jobs import evaluator_version
from evaluator.messages.results import MOST_DECIMALS
from evaluator.scoring.metrics import cut

register = template.Library()

BYTE_UNITS = ["kB", "MB", "GB", "TB", "PB"]
MISSING = "–"
BAR = (
    '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
    '<rect width="{}" height="4"/></svg>'
)
MINUTE_S = 60
# Seconds of the units in which a distance from now is given.
DISTANCES = [(365 * 86_400, "year"), (86_400, "day"), (3_600, "h"), (MINUTE_S, "min")]
WORDS = {"year", "day"}
# A document, as texts name it that the command line prints as well.
DOCUMENT = re.compile(r"\bdocs/[a-z/-]+\.md\b")


@register.filter("bytes")
def bytes_tag(size: int | None) -> str:
    """Return a number of bytes with three digits in decimal units, with the exact number in the title."""
    if size is None:
        return MISSING
    return markup('<data value="{}" title="{} bytes">{}</data>', size, f"{size:,}", readable_bytes(size))


@register.filter("exact_size")
def exact_size_tag(size: int) -> str:
    """Return a limit in the unit in which it was set, with the exact number in the title."""
    return markup('<data value="{}" title="{} bytes">{}</data>', size, f"{size:,}", exact_size(size))


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
def score(value: float | None, decimals: int = MOST_DECIMALS) -> str:
    """Return a score in [0, 1] with as many decimals as its test set supports; more would be chance."""
    return MISSING if value is None else cut(value, decimals)


@register.filter
def budget(value: float | str) -> str:
    """Return a privacy budget, such as "ε = 8", in one piece."""
    return budget_text(float(value))


register.filter("safe_href", stringfilter(safe_href))
register.filter("at_budget", at_budget)
register.filter("board_query", board_query)
register.filter("unbroken", stringfilter(unbroken))


@register.simple_tag
def score_interval(low: float | None, high: float | None, decimals: int = INTERVAL_DECIMALS) -> str:
    """Return an interval of scores with these decimals; empty where there is none."""
    return "" if low is None or high is None else interval_text(low, high, decimals)


@register.simple_tag
def bar(share: float) -> SafeString:
    """Return a thin bar that is filled by this share, for a cell that has the number beside it."""
    return markup(BAR, max(0, min(100, round(100 * share))))


def _time_filter(name: str, text: Callable[[datetime], str]) -> Callable[[datetime | None], str]:
    """Register a filter that shows a time by this text, with the time in full in the title."""

    @register.filter(name)
    def shown(moment: datetime | None) -> str:
        if moment is None:
            return MISSING
        title = _in_full(moment)
        return markup('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), title, text(moment))

    return shown


def _in_full(moment: datetime) -> str:
    return f"{_day(moment)}, {localtime(moment):%H:%M %Z}"


def _day(moment: datetime) -> str:
    local = localtime(moment)
    return f"{local:%b} {local.day}, {local:%Y}"


def _distance(moment: datetime) -> str:
    """Return how far a time is from now in its largest unit, such as "2 h ago" or "in 3 days"."""
    seconds = (moment - now()).total_seconds()
    amount = abs(seconds)
    if amount < MINUTE_S:
        return "just now" if seconds <= 0 else "in less than a minute"
    unit, name = next((unit, name) for unit, name in DISTANCES if amount >= unit)
    count = int(amount // unit)
    # The units of time have symbols without a plural; words have one.
    text = f"{count}\xa0{name}{'s' if count > 1 and name in WORDS else ''}"
    return f"{text} ago" if seconds < 0 else f"in {text}"


# Such as "Nov 22, 2026 (2 h ago)".
ago = _time_filter("ago", lambda moment: f"{_day(moment)} ({_distance(moment)})")
# Such as "Nov 22, 2026".
day = _time_filter("day", _day)
# Such as "Nov 22, 2026, 14:00 UTC (2 h ago)".
at = _time_filter("at", lambda moment: f"{_in_full(moment)} ({_distance(moment)})")
# In full alone, for pages that are cached, where a distance from now would become wrong.
on = _time_filter("on", _in_full)


@register.filter
def markdown(text: str, top_heading: int = TOP_HEADING) -> SafeString:
    """Return Markdown as sanitized HTML, its highest headings of the level `top_heading`."""
    return render_markdown(text, top_heading)


@register.filter
def command(text: str) -> SafeString:
    """Return commands whose lines break between options; those of a block of a template are HTML already."""
    return command_html(unescape(text) if isinstance(text, SafeString) else str(text))


# Markdown without its markup, where nothing can be formatted.
register.filter("plain_text", plain_text)


@register.filter
def addresses_as_links(text: str) -> SafeString:
    """Return text as HTML, with the addresses in it as links."""
    parts = enumerate(ADDRESS.split(text))
    return format_html_join(
        "",
        "{}",
        (
            (
                format_html('<a href="{0}" rel="nofollow noopener noreferrer">{0}</a>', part)
                if at % 2
                else part,
            )
            for at, part in parts
        ),
    )


@register.filter
def inline_code(text: str) -> SafeString:
    """Return text as HTML, with what is between backticks as code. Text that is HTML already stays as it is."""
    # A message of a view forgets that its text is HTML when it becomes text.
    text = getattr(text, "message", text)
    if isinstance(text, SafeString):
        return text
    parts = enumerate(str(text).split("`"))
    return SafeString(
        "".join(markup("<code>{}</code>", part) if at % 2 else _linked(part) for at, part in parts)
    )


def _linked(text: str) -> SafeString:
    """Return text as HTML, with addresses of this site and names of its documents as links."""
    if settings.SITE_URL not in text and not DOCUMENT.search(text):
        return markup("{}", text)
    parts = enumerate(re.split(rf"({re.escape(settings.SITE_URL)}/\S*[\w/]|{DOCUMENT.pattern})", text))
    return format_html_join("", "{}", ((_link(part) if at % 2 else part,) for at, part in parts))


def _link(text: str) -> SafeString:
    name = DOCUMENT.fullmatch(text)
    href = reverse("docs:document", args=[f"{text[len('docs/') : -len('.md')]}/"]) if name else text
    return format_html('<a href="{}">{}</a>', href, text)


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, view: str, label: str, app: str = "") -> SafeString:
    """Return a link of the main navigation, marked as current on every page of its app."""
    match = getattr(context.get("request"), "resolver_match", None)
    current = match is not None and match.app_name == (app or view.partition(":")[0])
    return format_html(
        '<a href="{}"{}>{}</a>', reverse(view), SafeString(' aria-current="page"' if current else ""), label
    )


@register.simple_block_tag(takes_context=True)
def titled(context: template.Context, content: str) -> SafeString:
    """Return the title of the page, also as sites show it that link to the page. The content is HTML already.

    If a form has errors, the title begins with "Error:", which screen readers read first.
    """
    title = " ".join(content.split())
    quoted = title.replace('"', "&quot;")
    error = "Error: " if any(map(_has_errors, context.flatten().values())) else ""
    # The page's templates wrote it.
    return SafeString(
        f'<title>{error}{title} · PFL-DocVQA</title>\n  <meta property="og:title" content="{quoted} · PFL-DocVQA">'
    )


def _has_errors(value: object) -> bool:
    # First by its type: `isinstance` would look up a lazy value, such as the user.
    if not issubclass(type(value), BaseForm | BaseFormSet):
        return False
    return isinstance(value, BaseForm | BaseFormSet) and value.is_bound and not value.is_valid()


@register.simple_tag(takes_context=True)
def canonical(context: template.Context) -> str:
    """Return the one address of the page, without its parameters; empty where there is no page."""
    request = context.get("request")
    if request is None or request.resolver_match is None:
        return ""
    return f"{settings.SITE_URL}{request.path}"


@register.simple_tag
def absolute_static(path: str) -> str:
    """Return the address of a static file with the site's, for readers elsewhere."""
    return urljoin(f"{settings.SITE_URL}/", static(path))


register.simple_tag(evaluator_version, name="version")
register.simple_tag(lambda: settings.SOURCE_URL, name="source_url")
register.simple_tag(lambda: settings.ORGANIZERS, name="site_organizers")
register.simple_tag(lambda: settings.CONTACT, name="contact_address")
