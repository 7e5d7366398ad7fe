"""How the verbs make their apps."""

import typer


def new_app(about: str | None = None) -> typer.Typer:
    """Return the app of one verb.

    Args:
        about: The help of a verb that is a group of others; a verb of one function has that function's docstring.
    """
    return typer.Typer(help=about, no_args_is_help=True, add_completion=False)
