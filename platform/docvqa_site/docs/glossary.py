"""The terms of the glossary, and where each is explained."""

import re
from functools import cache

from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from docvqa_site.docs import library

ROW = re.compile(r"^\| (\*\*.+?\*\*(?:, \*\*.+?\*\*)*) \|", re.M)


@cache
def rows() -> dict[str, str]:
    """Return each term of the glossary in lower case, with the name of its row: all terms that the row explains."""
    names = [name.replace("**", "") for name in ROW.findall(library.read("glossary"))]
    return {term.lower(): name for name in names for term in (name, *name.split(", "))}


def row_of(words: str) -> str | None:
    """Return the name of the row that explains a term, also in the plural or genitive; None of any other words."""
    term = words.lower().removesuffix("'s")
    forms = (term, term.removesuffix("s"), term.removesuffix("es"), f"{term.removesuffix('ies')}y")
    return next((rows()[form] for form in forms if form in rows()), None)


def linked(term: str, text: str = "") -> SafeString:
    """Return a text, or the term itself, as a link to what the glossary says. Raises `KeyError` if it says nothing."""
    address = reverse("docs:document", args=["glossary/"]) + f"#row-{library.slug_of(rows()[term.lower()])}"
    return format_html('<a class="term" href="{}">{}</a>', address, text or term)


def linked_if_explained(words: str) -> SafeString:
    row = row_of(words)
    return linked(row, words) if row else escape(words)
