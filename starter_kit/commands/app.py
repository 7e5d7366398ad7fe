"""How the verbs make their apps."""

import re
from collections.abc import Callable

import click
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


class VerbGroup(TyperGroup):
    """A verb that is a group of others, whose help lists these in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands of the group with the first paragraph of their help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").partition("\n\n")[0]) for name, command in self.commands.items()]
            )


class CommandOfNumber(TyperCommand):
    """A command whose argument is a number, which is one below zero too: it isn't taken for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a leading number below zero behind all options."""
        if args and re.fullmatch(r"-[\d.].*", args[0]):
            args = [*args[1:], "--", args[0]]
        return super().parse_args(ctx, args)


def new_app(about: str | None = None, cls: type[VerbGroup] = VerbGroup) -> typer.Typer:
    """Return the app of a verb; `about` is the help of one that is a group of others."""
    return typer.Typer(help=about, cls=cls, no_args_is_help=True, add_completion=False)


def command_of(verb: Callable[..., None]) -> click.Command:
    """Return the command of a verb of one function, whose docstring is its help."""
    app = new_app()
    app.command()(verb)
    return get_command(app)
