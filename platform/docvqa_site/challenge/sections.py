"""The sections of a track's rules, which links lead to."""

import re
from collections import Counter
from dataclasses import dataclass
from html import unescape

from django.utils.html import strip_tags
from django.utils.safestring import SafeString

from docvqa_site.docs.library import slug_of
from docvqa_site.ui.markdown import render_markdown

LEVEL = 2
# As rendered rules have them. An id begins with a word of its own, so that none is one of the page's.
HEADING = re.compile(rf"<h{LEVEL}>(.*?)</h{LEVEL}>", re.DOTALL)
PREFIX = "rules-"


@dataclass(frozen=True)
class Rules:
    """Rules as HTML, and the id and the title of each section."""

    html: SafeString
    sections: list[tuple[str, str]]


def with_sections(text: str) -> Rules:
    """Return rules, written in Markdown, with an id for each of their sections."""
    sections, taken = [], Counter[str]()

    def numbered(found: re.Match[str]) -> str:
        title = unescape(strip_tags(found[1]))
        slug = PREFIX + slug_of(title)
        taken[slug] += 1
        anchor = slug if taken[slug] == 1 else f"{slug}-{taken[slug]}"
        sections.append((anchor, title))
        return f'<h{LEVEL} id="{anchor}">{found[1]}</h{LEVEL}>'

    html = HEADING.sub(numbered, render_markdown(text, LEVEL))
    return Rules(SafeString(html), sections)
