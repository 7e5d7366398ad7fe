"""How the verbs make their apps."""

from collections.abc import Callable

import click
import typer
from typer.core import TyperGroup
from typer.main import get_command


class VerbGroup(TyperGroup):
    """A verb that is a group of others, whose help lists these in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands of the group with the first paragraph of their help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").partition("\n\n")[0]) for name, command in self.commands.items()]
            )


def new_app(about: str | None = None, cls: type[VerbGroup] = VerbGroup) -> typer.Typer:
    """Return the app of a verb; `about` is the help of one that is a group of others."""
    return typer.Typer(help=about, cls=cls, no_args_is_help=True, add_completion=False)


def command_of(verb: Callable[..., None]) -> click.Command:
    """Return the command of a verb of one function, whose docstring is its help."""
    app = new_app()
    app.command()(verb)
    return get_command(app)
