"""`pfl version`."""

from starter_kit.commands.app import new_app
from starter_kit.console import print_lines

app = new_app()


@app.command()
def version() -> None:
    """Print the version (recorded with every score)."""
    from evaluator.messages.jobs import evaluator_version

    print_lines(evaluator_version())
