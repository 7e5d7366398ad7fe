"""`pfl methods`."""

from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.app import new_app
from starter_kit.console import console, print_lines

app = new_app()


@app.command()
def methods() -> None:
    """List the methods and the configs that come with the kit."""
    console.print(_table())
    print_lines(
        "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
        "What it computes: docs/methods.md; its settings: docs/settings.md",
    )


def _table() -> Table:
    from starter_kit.settings.method_list import kit_configs

    table = Table(
        Column("config", no_wrap=True),
        Column("method", no_wrap=True),
        "privacy unit",
        "what it is, and its source",
    )
    for config in kit_configs():
        table.add_row(*map(Text, (config.name, config.method, config.unit or "–", config.about)))
    return table
