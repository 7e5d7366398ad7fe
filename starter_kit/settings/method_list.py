"""The methods and configs that come with the kit, read from their modules and YAML files.

A method is described by the first line of its module; a config that isn't named after its method, by the comment at its
head. Whose data a method protects follows from its guarantee.
"""

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

from starter_kit.federation.rounds import Client
from starter_kit.settings.configuration import config_names, find_config, load_settings, method_module

FEDERATION = [Client(client, {f"{client}-{number}": [0] for number in range(400)}) for client in range(10)]


@dataclass(frozen=True)
class Config:
    """One of the kit's configs.

    Attributes:
        about: A sentence on what it trains.
        unit: The privacy unit; empty where nothing is private.
    """

    name: str
    method: str
    about: str
    unit: str


def kit_configs() -> list[Config]:
    """Return the kit's configs, sorted by name."""
    return [_config(name) for name in config_names()]


def _config(name: str) -> Config:
    settings = load_settings(name)
    line = (inspect.getdoc(method_module(settings.method)) or "").partition("\n")[0]
    guarantee = settings.plan(FEDERATION).guarantee
    return Config(
        name=name,
        method=settings.method,
        about=line if name == settings.method else _comment(find_config(name)),
        unit=guarantee.unit if guarantee else "",
    )


def _comment(config: Path) -> str:
    """The first sentence of the comment at the head of a config."""
    lines = config.read_text(encoding="utf-8").splitlines()
    text = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    return re.split(r"(?<=\.) ", text, maxsplit=1)[0]
