"""The block of metadata above the text of a Markdown file, between two lines of three hyphens."""

import re

BLOCK = re.compile(r"\A---\r?\n(.*?)\n---\r?\n", re.S)


def split_front_matter(text: str) -> tuple[str, str]:
    """Return the front matter of a Markdown file, empty where it has none, and the rest."""
    found = BLOCK.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)
