"""The plug-ins that come with the kit, read from their files."""

import inspect
from dataclasses import dataclass

from starter_kit.compression.plugin_codecs import CODECS
from starter_kit.federation.server_optimizers import SERVER_OPTIMIZERS
from starter_kit.learning.plugins import HOOKS, OPTIMIZERS
from starter_kit.plugin import Plugin, PluginKind

KINDS = (CODECS, OPTIMIZERS, HOOKS, SERVER_OPTIMIZERS)


@dataclass(frozen=True)
class KitPlugin:
    """One of the kit's plug-ins.

    Attributes:
        about: The first line of its file.
    """

    kind: PluginKind
    name: str
    known: type[Plugin]
    about: str


def kit_plugins() -> list[KitPlugin]:
    """Return the kit's plug-ins, by kind and name."""
    return [
        KitPlugin(
            kind,
            name,
            kind.plugin_class(name),
            (inspect.getdoc(kind.module(name)) or "").partition("\n")[0],
        )
        for kind in KINDS
        for name in kind.names
    ]
