"""How the verbs make their apps."""

import click
import typer
from typer.core import TyperGroup


class VerbGroup(TyperGroup):
    """A verb that is a group of others, whose help lists these in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands of the group with the first paragraph of their help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").partition("\n\n")[0]) for name, command in self.commands.items()]
            )


def new_app(about: str | None = None) -> typer.Typer:
    """Return the app of one verb.

    Args:
        about: The help of a verb that is a group of others; a verb of one function has that function's docstring.
    """
    return typer.Typer(help=about, cls=VerbGroup, no_args_is_help=True, add_completion=False)
