"""TeX formulas as MathML, made on the server: no script, no style, no font that a browser would have to fetch.

What can't be converted is shown as it was written, so that no formula disappears.
"""

import re
from html import escape

from math_core import LatexError, LatexToMathML

# A longer one isn't converted. It also bounds how deeply a formula is nested.
MAX_FORMULA_CHARACTERS = 2_000
# How many commands of its own, made with \newcommand, a formula may use.
MAX_EXPANSIONS = 100
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


def mathml(formula: str, *, display: bool) -> str:
    """Return the formula as MathML, on a line of its own if `display`; as code if it can't be converted."""
    if len(formula) <= MAX_FORMULA_CHARACTERS:
        try:
            converted: str = _converter.convert_with_local_state(formula, displaystyle=display)
        except LatexError:
            pass
        else:
            unstyled = STYLE.sub("", ALIGNMENT.sub(r' class="math-\1"', converted))
            return f'<div class="formula" tabindex="0">{unstyled}</div>' if display else unstyled
    shown = f"<code>{escape(formula)}</code>"
    return f"<p>{shown}</p>" if display else shown


_converter = LatexToMathML(fancy_error=False, max_expansions=MAX_EXPANSIONS)
