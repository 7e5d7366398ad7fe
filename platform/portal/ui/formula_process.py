"""The program that converts TeX to MathML in a process of its own, which `portal.ui.converter` starts.

It reads one formula a line, as a JSON array of its TeX and of whether it has a line of its own, and answers each with
a line: the MathML as a JSON string, or `null` if the formula is no TeX that math-core knows. The system kills the
process when one formula takes more CPU time than allowed; a busy machine changes nothing about that.
"""

import json
import resource
import signal
import sys

from math_core import LatexError, LatexToMathML

# The slowest formula within the limits of `portal.ui.math` that people write takes a thousandth of a second.
CPU_SECONDS = 0.25
MEMORY_BYTES = 1024**3
# How many commands of its own, made with \newcommand, a formula may use.
MAX_EXPANSIONS = 100


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    converter = LatexToMathML(fancy_error=False, max_expansions=MAX_EXPANSIONS)
    for line in sys.stdin:
        formula, display = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            converted = converter.convert_with_local_state(formula, displaystyle=display)
        except (LatexError, ValueError):
            # A lone surrogate can't be passed on.
            converted = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(converted) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
