"""`pfl methods`."""

from collections.abc import Iterable

from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.app import new_app
from starter_kit.console import console, print_lines

app = new_app()

# The title of each list, with the folder of its configs.
TITLES = {
    "For the tiny model": "",
    "Examples of plug-ins, for the tiny model": "plugins",
    "For the real model and data": "full",
}


@app.command()
def methods() -> None:
    """List the methods, the configs and the plug-ins that come with the kit."""
    from starter_kit.settings.method_list import kit_configs, listed_plugins

    configs = kit_configs()
    print_lines("In brackets: the method, and whose data its privacy is about, where something is private.")
    for title, folder in TITLES.items():
        _print_list(
            title,
            (
                (config.name, f"{config.about} [{', '.join(filter(None, (config.method, config.unit)))}]")
                for config in configs
                if config.name.rpartition("/")[0] == folder
            ),
        )
    _print_list(
        "Plug-ins, by the setting that names them",
        ((f"{plugin.setting}: {plugin.name}", plugin.about) for plugin in listed_plugins()),
    )
    print_lines(
        "",
        "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
        "One of your own:  pfl new NAME, for a plug-in with --codec, --optimizer, --hook or --server-optimizer",
        "What it computes: docs/methods.md; its settings: docs/settings.md; the real model: docs/full-size.md",
    )


def _print_list(title: str, rows: Iterable[tuple[str, str]]) -> None:
    table = Table(Column(no_wrap=True), Column(), show_header=False, box=None, pad_edge=False)
    for name, about in rows:
        table.add_row(Text(name), Text(about))
    print_lines("", title)
    console.print(table)
