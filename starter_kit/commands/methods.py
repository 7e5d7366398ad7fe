"""`pfl methods`."""

from typing import TYPE_CHECKING

from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.app import new_app
from starter_kit.console import console, print_lines

if TYPE_CHECKING:
    from starter_kit.settings.method_list import Config

app = new_app()


@app.command()
def methods() -> None:
    """List the methods and the configs that come with the kit."""
    from starter_kit.settings.method_list import kit_configs

    configs = kit_configs()
    console.print(_table("For the tiny model", [config for config in configs if "/" not in config.name]))
    console.print(_table("For the real model and data", [config for config in configs if "/" in config.name]))
    print_lines(
        "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
        "What it computes: docs/methods.md; its settings: docs/settings.md; the real model: docs/full-size.md",
    )


def _table(title: str, configs: "list[Config]") -> Table:
    table = Table(
        Column("config", no_wrap=True),
        Column("method", no_wrap=True),
        "privacy unit",
        "what it is, and its source",
        title=title,
        title_justify="left",
    )
    for config in configs:
        table.add_row(*map(Text, (config.name, config.method, config.unit or "–", config.about)))
    return table
