"""The files of the kit's configs and methods, and how a config is found. Nothing here loads what trains."""

from difflib import get_close_matches
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.plugin import is_file

CONFIGS = Path(__file__).parents[1] / "configs"
# Those for the tiny model, which are named without their folder.
TINY = "tiny"
# Those for the tiny model that try a plug-in, or a method that is an example for one's own.
EXAMPLES = "plugins"
METHODS = Path(__file__).parents[1] / "methods"


def find_config(config: str) -> Path:
    """Return the file that `config` names: a path, or a name among starter_kit/configs.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There is no such file.
    """
    for path in (Path(config), CONFIGS / TINY / f"{config}.yaml", CONFIGS / f"{config}.yaml"):
        if is_file(path):
            return path
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where=config,
        expected="a YAML file, or the name of one of the kit's configs",
        found="no such file",
        next_step=f"{_meant(config)}The kit's configs are {', '.join(config_names())}; `pfl methods` describes them.",
    )


def config_names() -> list[str]:
    """Return the names of the kit's own configs: `fedavg` for the tiny model, `full/fedavg` for the real one,
    `plugins/topk` for an example of a plug-in."""
    return [
        *_names_in(TINY),
        *(f"{folder}/{name}" for folder in (EXAMPLES, "full") for name in _names_in(folder)),
    ]


def _names_in(folder: str) -> list[str]:
    return sorted(path.stem for path in (CONFIGS / folder).glob("*.yaml"))


def method_names() -> list[str]:
    """Return the names of the kit's own methods."""
    return sorted(path.stem.replace("_", "-") for path in METHODS.glob("[a-z]*.py"))


def _meant(config: str) -> str:
    """Return a sentence with the names that are like the one that was given; nothing where there are none."""
    # A name without its folder is like one in a folder.
    names = {name.rpartition("/")[2]: name for name in reversed(config_names())}
    names |= {name: name for name in config_names()}
    close = dict.fromkeys(names[name] for name in get_close_matches(config, names, n=3, cutoff=0.75))
    return f"Do you mean {' or '.join(close)}? " if close else ""
