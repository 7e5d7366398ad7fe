"""Several management commands in one process, as most of the time of a short one goes into its start.

`python tests/demo/management.py` reads a JSON list of commands, each a list of words, and writes what each
printed as a JSON list. The first command that fails ends it, as it would a shell script.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO

from django.core.management import execute_from_command_line


def run(arguments: Sequence[str]) -> str:
    """Run one management command; return what it printed. One that fails is named after its own message."""
    try:
        with redirect_stdout(StringIO()) as printed:
            execute_from_command_line(["manage.py", *arguments])
    except BaseException:
        sys.stderr.write(f"The command {arguments[0]} failed.\n")
        raise
    return printed.getvalue().strip()


if __name__ == "__main__":
    commands = json.load(sys.stdin)
    # The site's settings ask there whether static files are being collected.
    sys.argv = ["manage.py", *(arguments[0] for arguments in commands)]
    json.dump([run(arguments) for arguments in commands], sys.stdout)
