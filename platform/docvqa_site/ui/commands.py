"""Commands as pages show them: a line that is too long for a page breaks between options, never within one."""

import re
from html import escape

from django.utils.safestring import SafeString

# A comment; or an option with its value, or any other word.
UNIT = re.compile(
    r"""(?P<comment>(?<!\S)\#[^\n]*)"""
    r"""|-{1,2}[A-Za-z][^\s"']*(?:[ ](?:"[^"\n]*"|'[^'\n]*'|[^\s"'\-&|;<>#\\][^\s"']*)(?!\S))?"""
    r"""|(?:"[^"\n]*"|'[^'\n]*'|\S)+"""
)
UNIT_HTML = '<span class="unit">{}</span>'


def command_html(text: str) -> SafeString:
    """Return commands as the HTML of a `pre`, with each of their units in an element that stays in one piece.

    A comment breaks as any text.
    """
    pieces, end = [], 0
    for found in UNIT.finditer(text):
        unit = escape(found[0])
        pieces += [escape(text[end : found.start()]), unit if found["comment"] else UNIT_HTML.format(unit)]
        end = found.end()
    return SafeString("".join([*pieces, escape(text[end:])]))
