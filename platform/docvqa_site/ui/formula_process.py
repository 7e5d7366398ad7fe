"""The program that converts TeX to MathML in a process of its own, which `docvqa_site.ui.converter` starts.

It reads the formulas of one document a line, as a JSON object, and answers each formula with a line: a JSON array of
its MathML, or of `null` and why it can't be converted. Commands that a formula defines and numbers of equations are
those of the document. The system kills the process when one formula takes more CPU time than allowed; a busy machine
changes nothing about that.
"""

import json
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

from math_core import LatexError, LatexToMathML

# The slowest formula within the limits of `docvqa_site.ui.math` that people write takes a thousandth of a second.
CPU_SECONDS = 0.25
MEMORY_BYTES = 1024**3
# How many commands of its own, made with \newcommand, a formula may use.
MAX_EXPANSIONS = 100
# What JupyterLab draws and math-core doesn't know, for looks that are the same or nearly so.
MACROS = {
    "ensuremath": "#1",
    "hfill": "",
    "intertext": r"\text{#1}",
    "mathds": r"\mathbb{#1}",
    "mbox": r"\text{#1}",
    "qed": r"\square",
    "smash": "#1",
    "substack": r"\begin{matrix}#1\end{matrix}",
    "textnormal": r"\textrm{#1}",
    "textup": r"\textrm{#1}",
}


def answers(request: dict[str, Any]) -> Iterator[tuple[str | None, str]]:
    """Yield the MathML of each formula of a document, or None and the reason, up to a number of characters."""
    converter = LatexToMathML(
        fancy_error=False,
        max_expansions=MAX_EXPANSIONS,
        global_group=True,
        allow_unreliable_rendering=True,
        macros=MACROS,
        id_prefix=request["prefix"],
    )
    left = request["characters"]
    for tex, display in request["formulas"]:
        if left < 0:
            yield None, "the text has too many formulas"
            continue
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        answer: tuple[str | None, str]
        try:
            converted = converter.convert_with_global_state(tex, displaystyle=display)
            left -= len(converted)
            answer = converted, ""
        except (LatexError, ValueError) as error:
            # A lone surrogate can't be passed on.
            answer = None, str(error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        yield answer


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        for answer in answers(json.loads(line)):
            sys.stdout.write(json.dumps(answer) + "\n")
            # The next formula may end the process.
            sys.stdout.flush()


if __name__ == "__main__":
    main()
