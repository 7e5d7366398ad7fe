"""Links that teams give, to pages elsewhere."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from typing_extensions import override

from docvqa_site.ui.names import is_hidden

SCHEMES = ("http", "https")


def safe_href(link: str) -> str:
    """Return the link if a browser may be sent there, else one that leads nowhere."""
    return link if urlsplit(link).scheme in SCHEMES else "#"


class LinkField(forms.URLField):
    """A link, of which the scheme may be left out; a browser's own check of URLs would reject that."""

    default_validators = [URLValidator(schemes=SCHEMES)]
    default_error_messages = {"invalid": "Enter a web address, such as https://example.org/page."}

    def __init__(self, label: str | None = None) -> None:
        super().__init__(label=label, required=False, assume_scheme="https", max_length=200)

    @override
    def clean(self, value: Any) -> Any:
        """Return the link. Raises `ValidationError` for one that looks like another."""
        link = super().clean(value)
        if any(is_hidden(character) for character in link):
            raise ValidationError(
                "The link has a character that can't be seen. Type it instead of pasting it."
            )
        if not (urlsplit(link).hostname or "").isascii():
            raise ValidationError(
                "Give the host in ASCII: letters of other scripts as “xn--…”, as browsers show it."
            )
        return link
