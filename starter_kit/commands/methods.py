"""`pfl methods`."""

from typing import TYPE_CHECKING

from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.app import new_app
from starter_kit.console import console, print_lines

if TYPE_CHECKING:
    from starter_kit.settings.method_list import Config

app = new_app()

# The title of each table, with the folder of its configs.
TITLES = {
    "For the tiny model": "",
    "Examples of plug-ins, for the tiny model": "plugins",
    "For the real model and data": "full",
}


@app.command()
def methods() -> None:
    """List the methods, the configs and the plug-ins that come with the kit."""
    from starter_kit.settings.method_list import kit_configs
    from starter_kit.settings.plugin_list import kit_plugins

    configs = kit_configs()
    for title, folder in TITLES.items():
        console.print(
            _table(title, [config for config in configs if config.name.rpartition("/")[0] == folder])
        )
    plugins = Table(
        Column("setting", no_wrap=True),
        Column("plug-in", no_wrap=True),
        "what it is, and its source",
        title="Plug-ins",
        title_justify="left",
    )
    for plugin in kit_plugins():
        plugins.add_row(*map(Text, (plugin.kind.setting, plugin.name, plugin.about)))
    console.print(plugins)
    print_lines(
        "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
        "One of your own:  pfl new NAME, for a plug-in with --codec, --optimizer, --hook or --server-optimizer",
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
