"""The methods, configs and plug-ins that come with the kit, read from their files as texts, since what trains takes
seconds to load.

A method is described by the first line of its module; a config that isn't named after its method, by the comment at its
head.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

import evaluator
from starter_kit.plugin import PLUGINS
from starter_kit.settings.config_files import METHODS, config_names, find_config

# Whose data the guarantee of a method is about; nothing is private in the others.
UNITS = {
    "adaptive-clipping": "provider",
    "centralized-dp": "provider",
    "client-dp": "client",
    "dp-clgecl": "provider",
    "fl-provider-dp": "provider",
    "laplace-fedavg": "record",
    "laplace-iadmm": "record",
}

PARAMETRIZATIONS = Path(evaluator.__path__[0]) / "parametrizations"
# The setting that names a plug-in, by the folder of its kind.
PLUGIN_SETTINGS = {
    "codecs": "codec",
    "local_optimizers": "local.optimizer",
    "hooks": "local.hook",
    "server_optimizers": "server_optimizer",
}


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


@dataclass(frozen=True)
class ListedPlugin:
    """One of the kit's plug-ins, or a parametrization.

    Attributes:
        setting: The setting that names it.
        about: A sentence on what it does.
    """

    setting: str
    name: str
    about: str


def kit_configs() -> list[Config]:
    """Return the kit's configs, sorted by name."""
    return [_config(name) for name in config_names()]


def listed_plugins() -> list[ListedPlugin]:
    """Return the kit's plug-ins, by kind and name, and the parametrizations."""
    files = [
        (setting, path) for folder, setting in PLUGIN_SETTINGS.items() for path in _modules(PLUGINS / folder)
    ]
    # Those that `known.py` imports: the folder also has what they share.
    known = re.findall(
        r"^from evaluator\.parametrizations\.(\w+) ", (PARAMETRIZATIONS / "known.py").read_text(), re.M
    )
    files += [("lora.type", PARAMETRIZATIONS / f"{name}.py") for name in known]
    return [ListedPlugin(setting, path.stem.replace("_", "-"), first_line(path)) for setting, path in files]


def _modules(folder: Path) -> list[Path]:
    return sorted(folder.glob("[a-z]*.py"))


def _config(name: str) -> Config:
    text = find_config(name).read_text(encoding="utf-8")
    method = yaml.safe_load(text)["method"]
    return Config(
        name=name,
        method=method,
        about=first_line(METHODS / f"{method.replace('-', '_')}.py") if name == method else _comment(text),
        unit=UNITS.get(method, ""),
    )


def first_line(module: Path) -> str:
    """Return the first line of the docstring of a Python file, without running it."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def _comment(config: str) -> str:
    """The first sentence of the comment at the head of a config."""
    lines = config.splitlines()
    text = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    return re.split(r"(?<=\.) ", text, maxsplit=1)[0]
