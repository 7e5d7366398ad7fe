r"""TeX as people write it for Jupyter, GitHub and pandoc, in the words of math-core, which knows less of it.

What is renamed here looks the same or nearly so: `split` is `aligned`, `eqnarray` is `align`. What this doesn't know
is left as it was, for math-core to reject.
"""

import re
from dataclasses import dataclass

RENAMED = [
    (re.compile(r"\\(begin|end)\{split\}"), r"\\\1{aligned}"),
    (re.compile(r"\\(begin|end)\{smallmatrix\}"), r"\\\1{matrix}"),
    (re.compile(r"\\begin\{(?:x?alignat|flalign)(\*?)\}(?:\{[0-9]{1,2}\})?"), r"\\begin{align\1}"),
    (re.compile(r"\\end\{(?:x?alignat|flalign)(\*?)\}"), r"\\end{align\1}"),
    (re.compile(r"\\begin\{alignedat\}(?:\{[0-9]{1,2}\})?"), r"\\begin{aligned}"),
    (re.compile(r"\\end\{alignedat\}"), r"\\end{aligned}"),
    # They number or center what they contain, and nothing else.
    (re.compile(r"\\(?:begin|end)\{(?:subequations|displaymath|math)\}"), ""),
    (re.compile(r"\\(?:require|vspace\*?|renewcommand\{\\arraystretch\})\{[^{}]*\}"), ""),
    (re.compile(r"\\(?:allowdisplaybreaks|noindent|centering)(?![A-Za-z])"), ""),
    # A blank line ends no formula here.
    (re.compile(r"\n\s*\n"), "\n"),
]
EQNARRAY = re.compile(r"\\begin\{eqnarray(\*?)\}(.*?)\\end\{eqnarray\1\}", re.DOTALL)
LABEL = re.compile(r"\\(label|eqref|ref)\s*\{([^{}]*)\}")
NOT_IN_LABEL = re.compile(r"[^A-Za-z0-9:.]")
NUMBERED = re.compile(r"\\begin\{(?:equation|align|gather|multline)\}")
TEXT = re.compile(r"\\(?:text|textrm|textnormal|textup|textbf|textit|mbox|hbox)\s*(?=\{)")
OPERATOR = re.compile(r"\\mathop\s*(?=\{)")
LIMITS = re.compile(r"\s*(?:\\limits)?\s*(?:_\s*(?P<subscript>\{|\\[A-Za-z]+|[A-Za-z0-9]))?")
DEFINITION = re.compile(
    r"\\(?P<new>(?:re)?newcommand|providecommand)\*?\s*\{?\s*(?P<name>\\[A-Za-z]+)\s*\}?\s*(?P<count>\[[0-9]\])?\s*(?=[{\[])"
    r"|\\DeclareMathOperator(?P<star>\*?)\s*\{?\s*(?P<operator>\\[A-Za-z]+)\s*\}?\s*(?=\{)"
    r"|\\def\s*\\[A-Za-z]+(?:#[0-9])*\s*(?=\{)"
    r"|\\let\s*\\[A-Za-z]+\s*=?\s*(?:\\[A-Za-z]+|[^\\\s])"
)
DOLLAR = re.compile(r"(?<!\\)\$")
BRACES = re.compile(r"\\.|[{}]", re.DOTALL)


@dataclass(frozen=True)
class Translated:
    """A formula for math-core, and the commands that it defines, for itself and for those after it."""

    tex: str
    definitions: list[str]


def translated(tex: str, *, is_display: bool) -> Translated:
    """Return a formula in the words of math-core. Takes a time that grows with the square of its length at most."""
    for pattern, replacement in RENAMED:
        tex = pattern.sub(replacement, tex)
    tex = EQNARRAY.sub(_aligned, tex)
    tex = LABEL.sub(_label, tex)
    tex = _with_math_in_text(tex)
    tex = _with_limits_below(tex)
    rest, definitions = _definitions(tex)
    # A number is asked for: only an environment that numbers its lines has one.
    if is_display and ("\\label{" in rest or "\\tag" in rest) and not NUMBERED.search(rest):
        rest = f"\\begin{{equation}}{rest}\\end{{equation}}"
    return Translated(rest.strip(), definitions)


def _aligned(found: re.Match[str]) -> str:
    """Return three columns, the middle one a relation, as the two that `align` has for them."""
    rows = [row.split("&") for row in found[2].split("\\\\")]
    merged = [[row[0], row[1] + row[2]] if len(row) == 3 else row for row in rows]
    return "".join(
        [
            f"\\begin{{align{found[1]}}}",
            "\\\\".join("&".join(row) for row in merged),
            f"\\end{{align{found[1]}}}",
        ]
    )


def _label(found: re.Match[str]) -> str:
    kind = "label" if found[1] == "label" else "eqref"
    return f"\\{kind}{{{NOT_IN_LABEL.sub('-', found[2].strip())}}}"


def _with_math_in_text(tex: str) -> str:
    r"""Return the formula with `\text{a $b$}` as `\text{a }{b}`."""
    pieces, position = [], 0
    while (found := TEXT.search(tex, position)) and (end := _group_end(tex, found.end())):
        parts = DOLLAR.split(tex[found.end() + 1 : end - 1])
        # The parts between two dollars are formulas; a dollar without another one stays an error.
        texts = [f"{{{part}}}" if index % 2 else f"{found[0]}{{{part}}}" for index, part in enumerate(parts)]
        pieces += [tex[position : found.start()], *(texts if len(parts) % 2 else [tex[found.start() : end]])]
        position = end
    return "".join([*pieces, tex[position:]])


def _with_limits_below(tex: str) -> str:
    r"""Return the formula with what is written below each `\mathop` below it."""
    pieces, position = [], 0
    while (found := OPERATOR.search(tex, position)) and (end := _group_end(tex, found.end())):
        limits = LIMITS.match(tex, end)
        operator, start = tex[found.start() : end], limits.end() if limits else end
        pieces.append(tex[position : found.start()])
        if limits and limits["subscript"]:
            start = _group_end(tex, limits.start("subscript")) if limits["subscript"] == "{" else limits.end()
            operator = f"\\underset{{{tex[limits.start('subscript') : start]}}}{{{operator}}}"
        pieces.append(operator)
        position = start or len(tex)
    return "".join([*pieces, tex[position:]])


def _definitions(tex: str) -> tuple[str, list[str]]:
    """Return the formula without the definitions of commands, and these, each of which may replace an earlier one."""
    rest, definitions, position = [], [], 0
    while found := DEFINITION.search(tex, position):
        end = found.end()
        if tex[end : end + 1] == "{" and not found[0].startswith("\\let"):
            end = _group_end(tex, end) or len(tex)
        rest.append(tex[position : found.start()])
        definitions.append(_definition(found, tex[found.end() : end]) or tex[found.start() : end])
        position = end
    return "".join([*rest, tex[position:]]), definitions


def _definition(found: re.Match[str], body: str) -> str:
    if name := found["operator"]:
        return (
            f"\\providecommand{{{name}}}{{}}\\renewcommand{{{name}}}{{\\operatorname{found['star']}{body}}}"
        )
    if name := found["name"]:
        return f"\\providecommand{{{name}}}{{}}\\renewcommand{{{name}}}{found['count'] or ''}{body}"
    return ""


def _group_end(tex: str, start: int) -> int:
    """Return where the group in braces that begins at `start` ends; 0 if it doesn't."""
    depth = 0
    for found in BRACES.finditer(tex, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return 0
