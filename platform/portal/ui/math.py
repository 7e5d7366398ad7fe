"""TeX formulas as MathML, made on the server: no script, no style, no font that a browser would have to fetch.

What can't be converted is shown as it was written, so that no formula disappears. Participants write formulas, and
math-core takes exponential time for brackets that aren't closed: limits here reject the known cases beforehand, and
`portal.ui.converter` stops all others.
"""

import re
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from portal.ui.converter import StoppedError, converter

# A formula beyond one of these isn't converted.
MAX_CHARACTERS = 2_000
MAX_TOKENS = 1_000
# Each bracket that isn't closed doubles the time of a conversion.
MAX_NESTING = 16
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S", re.DOTALL)
OPENING = re.compile(
    r"[({\[⟨⌊⌈⟦⟮]|\\\{|\\(left|begin|mathopen|[bB]igg?l|[ul]lcorner)"
    r"|\\l+([aA]ngle|floor|ceil|vert|Vert|[bB]race|brack|bracket|paren|parenthesis|group|moustache)"
)
CLOSING = re.compile(
    r"[)}\]⟩⌋⌉⟧⟯]|\\\}|\\(right|end|mathclose|[bB]igg?r|[ul]rcorner)"
    r"|\\r+([aA]ngle|floor|ceil|vert|Vert|[bB]race|brack|bracket|paren|parenthesis|group|moustache)"
)
TAGS = {
    "div", "math", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover",
}  # fmt: skip
ATTRIBUTES = {
    "div": {"tabindex"},
    "math": {"display"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
    "mo": {"accent", "fence", "form", "largeop", "lspace", "maxsize", "minsize", "movablelimits", "rspace", "separator",
           "stretchy", "symmetric"},
    "mover": {"accent"},
    "mpadded": {"depth", "height", "lspace", "voffset", "width"},
    "mspace": {"depth", "height", "width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"displaystyle", "scriptlevel"},
    "munder": {"accentunder"},
    "munderover": {"accent", "accentunder"},
}  # fmt: skip
# A formula on a line of its own is in a `div`, which scrolls where it is too long, and which a keyboard reaches.
CLASSES = {"div": {"formula"}, "mtd": {"math-left", "math-right"}}
# The alignment of a column, for which MathML has no attribute that all browsers know; the site's CSS has the classes.
ALIGNMENT = re.compile(r' style="text-align: ?(left|right);[^"]*"')
STYLE = re.compile(r' style="[^"]*"')


@dataclass
class Formulas:
    """Converts the formulas of one text, and none after one that had to be stopped: the text has cost enough."""

    is_stopped: bool = False

    def mathml(self, formula: str, *, display: bool) -> str:
        """Return the formula as MathML, on a line of its own if `display`; as code if it can't be converted."""
        converted = self._converted(formula, display)
        if converted is None:
            shown = f"<code>{escape(formula)}</code>"
            return f"<p>{shown}</p>" if display else shown
        unstyled = STYLE.sub("", ALIGNMENT.sub(r' class="math-\1"', converted))
        return f'<div class="formula" tabindex="0">{unstyled}</div>' if display else unstyled

    def _converted(self, formula: str, display: bool) -> str | None:
        if self.is_stopped or not is_within_limits(formula):
            return None
        try:
            return converter.convert(formula, display=display)
        except StoppedError:
            self.is_stopped = True
            return None


def is_within_limits(formula: str) -> bool:
    """Return whether a formula is short and flat enough to be converted."""
    if len(formula) > MAX_CHARACTERS:
        return False
    tokens = TOKEN.findall(formula)
    depths = accumulate(map(_step, tokens), lambda depth, step: max(0, depth + step), initial=0)
    return len(tokens) <= MAX_TOKENS and max(depths) <= MAX_NESTING


def _step(token: str) -> int:
    """Return by how much the tokens that follow are nested deeper."""
    return bool(OPENING.fullmatch(token)) - bool(CLOSING.fullmatch(token))
