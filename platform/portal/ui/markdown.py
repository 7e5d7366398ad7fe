"""Markdown of organizers and participants, made safe to show to anyone."""

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# No images: a picture from elsewhere would reveal to its owner who looks at a page, and when.
TEXT_TAGS = {"h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "ul", "ol", "li"}
INLINE_TAGS = {"strong", "em", "s", "code", "pre", "a"}
TABLE_TAGS = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS = TEXT_TAGS | INLINE_TAGS | TABLE_TAGS
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}

_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def render_markdown(text: str) -> SafeString:
    """Return `text` as sanitized HTML: CommonMark with tables, without raw HTML, images, styles or scripts."""
    html = nh3.clean(
        _parser.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
    )
    return mark_safe(html)  # noqa: S308  (nh3 has just cleaned it)
