"""The front matter of a proof as a short table: what is stated of it, without the length of hashes."""

import re
from collections.abc import Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

MAX_ROWS = 100
MAX_VALUE_CHARACTERS = 300
ENTRY = re.compile(r"\s*(?:- )?([^\s:][^:]{0,199}):(?:\s+(.*))?$")
HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")


def as_table(front: str) -> SafeString:
    """Return the front matter as a folded table. It is read line by line, as text: no YAML is loaded."""
    rows = [row for _, row in zip(range(MAX_ROWS), _rows(front), strict=False)]
    return format_html(
        '<details class="proof-front-matter"><summary>Front matter ({} {})</summary>'
        '<table class="table"><tbody>{}</tbody></table></details>',
        len(rows),
        "entry" if len(rows) == 1 else "entries",
        format_html_join("", '<tr><th scope="row">{}</th><td>{}</td></tr>', rows),
    )


def _rows(front: str) -> Iterator[tuple[str, str]]:
    """Yield each entry with its value; a line that isn't one has no name."""
    for line in front.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = ENTRY.match(line)
        name, value = (found[1], found[2] or "") if found else ("", line.strip())
        # What only names a group says nothing itself.
        if value:
            yield name, HASH.sub(r"\1…", value)[:MAX_VALUE_CHARACTERS]
