"""TeX formulas as MathML, made on the server: no script, no style, no font that a browser would have to fetch.

What can't be converted is shown as it was written, so that no formula disappears. Participants write formulas, and
math-core takes exponential time for brackets that aren't closed: limits here reject the known cases beforehand, and
`docvqa_site.ui.converter` stops all others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, islice

from docvqa_site.ui.converter import Converted, converter
from docvqa_site.ui.delimiters import Formula
from docvqa_site.ui.dialect import Translated, translated

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
    "math", "menclose", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom",
    "mprescripts", "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd",
    "mtext", "mtr", "munder", "munderover", "span",
}  # fmt: skip
ATTRIBUTES = {
    "math": {"display"},
    "menclose": {"notation"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
    "mo": {"accent", "fence", "form", "largeop", "lspace", "maxsize", "minsize", "movablelimits", "rspace", "separator",
           "stretchy", "symmetric"},
    "mover": {"accent"},
    "mpadded": {"depth", "height", "lspace", "voffset", "width"},
    "mspace": {"depth", "height", "width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtd": {"id"},
    "mtable": {"displaystyle", "scriptlevel"},
    "munder": {"accentunder"},
    "munderover": {"accent", "accentunder"},
    "span": {"aria-label", "role", "tabindex"},
}  # fmt: skip
# A formula on a line of its own scrolls where it is too long, and a keyboard reaches it. It may be in a paragraph.
CLASSES = {
    "mtable": {"math-wide"},
    "mtd": {"math-left", "math-margin", "math-number", "math-right"},
    "span": {"formula"},
}
# The alignment of a column, for which MathML has no attribute that all browsers know; the site's CSS has the classes.
ALIGNMENT = re.compile(r' style="text-align: ?(left|right);[^"]*"')
STYLE = re.compile(r' style="[^"]*"')


# Of a line with a number: it takes the whole width, and what is beside the formula takes equal parts of the rest.
WIDE = re.compile(r' style="width: 100%"')
MARGIN = re.compile(r' style="width: [0-9.]+%"')
NUMBER = re.compile(r' style="width: [0-9.]+%;text-align: right;[^"]*"')
LABELED = re.compile(r'id="([^"]*)"><mtext>\(([^<]*)\)</mtext>')
REFERENCE = re.compile(r'<a href="#([^"]*)">\([^<]*\)</a>')
FRAME = '<span class="formula" tabindex="0" role="group" aria-label="Formula">{}</span>'
NOTHING = "<math></math>"
# Where in the TeX that math-core was given.
PLACE = re.compile(r"^[0-9]+: ")


@dataclass(frozen=True)
class Drawn:
    """A formula as HTML: MathML, or its source as code because of the `problem`."""

    formula: Formula
    html: str
    problem: str = ""


@dataclass
class Formulas:
    """Draws the formulas of one document, and none after one that had to be stopped: the document has cost enough.

    Attributes:
        prefix: The beginning of the ids of numbered equations, so that no two documents of a page share one.
    """

    prefix: str = ""
    is_stopped: bool = False

    def draw(self, formulas: Sequence[Formula], characters: int) -> list[Drawn]:
        """Return the formulas of a document as HTML; what they define and number is known to those after them.

        References know numbers that come later as well. `characters` limits the MathML; what would be beyond it is
        shown as code, like everything that can't be converted.
        """
        texts = [
            translated(formula.tex, is_display=formula.is_display) if is_within_limits(formula.tex) else None
            for formula in formulas
        ]
        requests = [
            part
            for text, formula in zip(texts, formulas, strict=True)
            if text
            for part in [
                *((definition, False) for definition in text.definitions),
                (text.tex, formula.is_display),
            ]
        ]
        answers = (
            [] if self.is_stopped else converter.convert(requests, characters=characters, prefix=self.prefix)
        )
        self.is_stopped = self.is_stopped or len(answers) < len(requests)
        numbers = dict(found for answer in answers for found in LABELED.findall(answer.mathml or ""))
        left = iter(answers)
        return [
            _drawn(formula, list(islice(left, len(text.definitions) + 1)) if text else [], text, numbers)
            for text, formula in zip(texts, formulas, strict=True)
        ]


def _drawn(
    formula: Formula, answers: list[Converted], text: Translated | None, numbers: dict[str, str]
) -> Drawn:
    """Return the formula as the answers to its definitions and to itself say."""
    if text is None:
        return _as_code(formula, "it is too long, or nested too much")
    if len(answers) <= len(text.definitions):
        return _as_code(formula, "it, or a formula before it, takes too long to draw")
    for answer in answers:
        if answer.mathml is None:
            return _as_code(formula, PLACE.sub("", answer.problem).rstrip("."))
    mathml = answers[-1].mathml or ""
    if any(equation not in numbers for equation in REFERENCE.findall(mathml)):
        return _as_code(formula, "it refers to a label that no equation has")
    html = _styled(_numbered(mathml, numbers, has_brackets=not formula.source.startswith("\\ref")))
    return Drawn(formula, "" if mathml == NOTHING else _placed(html, formula))


def _numbered(mathml: str, numbers: dict[str, str], *, has_brackets: bool) -> str:
    """Return the MathML with the numbers that its references refer to, also of equations that come later."""
    shown = "({})" if has_brackets else "{}"
    return REFERENCE.sub(lambda found: f'<a href="#{found[1]}">{shown.format(numbers[found[1]])}</a>', mathml)


def _styled(mathml: str) -> str:
    """Return the MathML with classes in place of styles, which the policy of the pages forbids."""
    mathml = MARGIN.sub(' class="math-margin"', WIDE.sub(' class="math-wide"', mathml))
    mathml = ALIGNMENT.sub(r' class="math-\1"', NUMBER.sub(' class="math-number"', mathml))
    return STYLE.sub("", mathml)


def _as_code(formula: Formula, problem: str) -> Drawn:
    return Drawn(formula, _placed(f"<code>{escape(formula.source)}</code>", formula), problem)


def _placed(html: str, formula: Formula) -> str:
    return FRAME.format(html) if formula.is_display else html


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
