"""`pfl version`."""

from starter_kit.console import print_lines


def version() -> None:
    """Print the version (recorded with every score)."""
    from evaluator.messages.jobs import evaluator_version

    print_lines(evaluator_version())
