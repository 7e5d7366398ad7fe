"""Names that look alike, by the confusable characters of Unicode's Technical Standard 39.

Two names that a reader may take for each other have one skeleton: `Team Alpha`, `TEAM-ALPHA`, `Team A1pha` and one with
a Greek capital alpha. A skeleton is compared and never shown.
"""

import unicodedata
from collections import defaultdict
from functools import cache

from confusable_homoglyphs.confusables import confusables_data

# In many typefaces the capital I is a small l; with the small i, a skeleton doesn't depend on the case.
BY_CASE = str.maketrans({"i": "l", "1": "l", "0": "o"})
LEFT_TO_RIGHT = "\u200e"
# Unicode's table has but a few of them.
SMALL_CAPITALS = str.maketrans(
    {unicodedata.lookup(f"LATIN LETTER SMALL CAPITAL {one}"): one.lower() for one in "ABCDEGHIJKLMNOPRTUVWYZ"}
)


def skeleton(name: str) -> str:
    """Return a name without case, marks, spaces and punctuation, each letter as the plainest one that looks like it."""
    plain = _prototypes(_prototypes(name).casefold()).casefold().translate(BY_CASE)
    return "".join(character for character in unicodedata.normalize("NFKD", plain) if character.isalnum())


def _prototypes(text: str) -> str:
    table = _table()
    return "".join(
        table.get(character, character)
        for character in unicodedata.normalize("NFKC", text).translate(SMALL_CAPITALS)
    )


@cache
def _table() -> dict[str, str]:
    """Return for each confusable character the one that stands for all that look like it."""
    partners: dict[str, set[str]] = defaultdict(set)
    for name, rows in confusables_data.items():
        for row in rows:
            # Unicode's table wraps characters that are written from right to left into marks of the other direction.
            one, other = name.strip(LEFT_TO_RIGHT), row["c"].strip(LEFT_TO_RIGHT)
            partners[one].add(other)
            partners[other].add(one)
    table: dict[str, str] = {}
    for character in partners:
        if character not in table:
            group = _connected(character, partners)
            # A sequence, such as the two letters that look like an m, is what Unicode maps the others to.
            table.update(dict.fromkeys(group, min(group, key=lambda member: (-len(member), member))))
    return table


def _connected(start: str, partners: dict[str, set[str]]) -> set[str]:
    group, waiting = {start}, [start]
    while waiting:
        fresh = partners[waiting.pop()] - group
        group |= fresh
        waiting += fresh
    return group
