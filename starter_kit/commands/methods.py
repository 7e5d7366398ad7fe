"""`pfl methods`."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.console import console, print_lines
from starter_kit.settings.method_list import Config, ListedPlugin, kit_configs, listed_plugins


class ConfigKind(StrEnum):
    """The kinds of what the kit has, each of which can be described."""

    TINY = "tiny"
    PLUGINS = "plugins"
    FULL = "full"


TITLES = {
    ConfigKind.TINY: "For the tiny model",
    ConfigKind.PLUGINS: "Examples of plug-ins, for the tiny model",
    ConfigKind.FULL: "For the real model and data",
}
OF_PLUGINS = "Plug-ins, by the setting that names them"
BRACKETS = "In brackets: the method, and whose data its privacy is about, where something is private."


def methods(
    kind: Annotated[
        ConfigKind | None,
        typer.Argument(
            help="What to list in full: configs for the tiny model (the default), plug-ins with their "
            "examples, or configs for the real model."
        ),
    ] = None,
) -> None:
    """List the methods, the configs and the plug-ins that come with the kit."""
    described = kind or ConfigKind.TINY
    print_lines(BRACKETS, "", TITLES[described])
    _describe((config.name, _about(config)) for config in _configs(described))
    if described is ConfigKind.PLUGINS:
        print_lines("", OF_PLUGINS)
        _describe((f"{plugin.setting}: {plugin.name}", plugin.about) for plugin in listed_plugins())
    if kind is None:
        for other in (ConfigKind.PLUGINS, ConfigKind.FULL):
            _name(f"{TITLES[other]}; described by `pfl methods {other}`", _configs(other))
        _name(f"{OF_PLUGINS}; described by `pfl methods {ConfigKind.PLUGINS}`", listed_plugins())
        print_lines(
            "",
            "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
            "One of your own:  pfl new NAME, for a plug-in with --codec, --optimizer, --hook or --server-optimizer",
            "What it computes: docs/methods.md; its settings: docs/settings.md; the real model: docs/full-size.md",
        )


def _configs(kind: ConfigKind) -> list[Config]:
    """The configs of a kind, which are in a folder of that name; those for the tiny model are named without it."""
    folder = "" if kind is ConfigKind.TINY else kind
    return [config for config in kit_configs() if config.name.rpartition("/")[0] == folder]


def _about(config: Config) -> str:
    return f"{config.about} [{', '.join(filter(None, (config.method, config.unit)))}]"


def _describe(rows: Iterable[tuple[str, str]]) -> None:
    table = Table(Column(no_wrap=True), Column(), show_header=False, box=None, pad_edge=False)
    for name, about in rows:
        table.add_row(Text(name), Text(about))
    console.print(table)


def _name(title: str, listed: Sequence[Config | ListedPlugin]) -> None:
    names = (f"{one.setting}: {one.name}" if isinstance(one, ListedPlugin) else one.name for one in listed)
    print_lines("", title)
    console.print(Text(", ".join(names)))
