"""Names of code in a proof, as links to the cited files of the kit that define them."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from docvqa_site.proofs.installed_kit import installed_file
from docvqa_site.proofs.named_code import NamedCode

# What is a link already, or code of several lines, stays as it is.
CODE = re.compile(r"<a\b.*?</a>|<pre\b.*?</pre>|<code>(?P<name>[\w./]+)(?:\(\))?</code>", re.DOTALL)
# Of a module; what is within a class or function has names that say little alone.
DEFINITION = re.compile(r"^(?:(?:async )?def |class )(\w+)|^(\w+)(?:: [^=\n]+)? = ", re.M)


def link_code(
    html: str, named: NamedCode, address: Callable[[str, int], str], *, is_framed: bool
) -> SafeString:
    """Return the HTML of a proof, with links at the paths of cited files and at the names that one of them defines.

    Args:
        named: Only its files that are the kit's are linked: the site doesn't have those of others.
        address: Makes the address of a line, from a file's path and the line's number, which is 0 for the whole file.
        is_framed: Whether the proof is in a frame, beside which the links open.
    """
    places = _places(named)
    target = ' target="_blank"' if is_framed else ""

    def linked(found: re.Match[str]) -> str:
        name = found["name"]
        place = places.get(name or "") or _of_dotted(name or "", places)
        return f'<a href="{escape(address(*place))}"{target}>{found[0]}</a>' if name and place else found[0]

    return mark_safe(CODE.sub(linked, html))  # noqa: S308  (it was, and paths are of the kit)


def _of_dotted(name: str, places: Mapping[str, tuple[str, int]]) -> tuple[str, int] | None:
    """Return the place of a class from the name of one of its methods, or of what the module before the dot defines."""
    owner, _, defined = name.rpartition(".")
    if not owner:
        return None
    owner = owner.rpartition(".")[2]
    place = places.get(defined)
    is_of_module = place is not None and owner in place[0].removesuffix(".py").split("/")
    return places.get(owner) or (place if is_of_module else None)


def _places(named: NamedCode) -> Mapping[str, tuple[str, int]]:
    """Return the place of each path, and of each name that only one of the files defines."""
    files = {one.path: file for one in named.files if one.is_same and (file := installed_file(one.path))}
    defined = [
        (name, path, line) for path, file in files.items() for name, line in _definitions(file).items()
    ]
    counts = Counter(name for name, _, _ in defined)
    by_name = {name: (path, line) for name, path, line in defined if counts[name] == 1}
    return {**by_name, **{path: (path, 0) for path in files}}


@cache
def _definitions(file: Path) -> Mapping[str, int]:
    """Return the line on which an installed module, which doesn't change while the site runs, defines each name."""
    text = file.read_text(encoding="utf-8")
    found: dict[str, int] = {}
    for one in DEFINITION.finditer(text):
        found.setdefault(one[1] or one[2], text.count("\n", 0, one.start()) + 1)
    return found
