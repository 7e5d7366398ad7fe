"""Notebooks of the kit, and the `%pfl` command that they use.

`%load_ext starter_kit.notebooks` gives a notebook the line magic `%pfl`: the verbs of the command line with the same
arguments, in the notebook's own process, which has loaded the libraries already. A verb that fails stops the notebook.
"""

import shlex
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Register `%pfl`; IPython calls it for `%load_ext starter_kit.notebooks`."""
    # tqdm, which transformers imports, asks for widgets that nothing here shows.
    warnings.filterwarnings("ignore", message="IProgress not found")
    shell.register_magic_function(pfl, "line")  # type: ignore[arg-type]  # a decorator hides its signature


def pfl(line: str) -> None:
    """Run a verb of `pfl`, with its arguments as in a shell.

    Raises:
        UsageError: The verb rejected its input and has said why. IPython shows it without a traceback.
    """
    import click
    from IPython.core.error import UsageError

    from starter_kit.commands.main import app

    try:
        status = app.main(shlex.split(line), prog_name="pfl", standalone_mode=False)
    except click.ClickException as error:
        raise UsageError(f"pfl: {error.format_message()}") from error
    if status:
        raise UsageError(f"pfl ended with status {status}; the reason is above.")
