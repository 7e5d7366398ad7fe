"""`pfl version`."""

from starter_kit.commands.app import new_app
from starter_kit.console import print_lines

app = new_app()


@app.command()
def version() -> None:
    """Print the version; scores are stamped with it."""
    from evaluator.messages.jobs import evaluator_version

    print_lines(evaluator_version())
