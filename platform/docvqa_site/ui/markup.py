"""HTML put together from values, for the pages that are made of a thousand small pieces."""

from html import escape

from django.utils.safestring import SafeString


def markup(template: str, *values: object) -> SafeString:
    """Return the template with these values in it, each escaped unless it is HTML already.

    The same as `django.utils.html.format_html` for values that aren't lazy, in a third of the time.
    """
    return SafeString(
        template.format(*(value if isinstance(value, SafeString) else escape(str(value)) for value in values))
    )
