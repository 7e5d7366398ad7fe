"""The command-line flags of the competition's kit, which `pfl train` accepts beside its own and doesn't list."""

from collections.abc import Mapping
from typing import Any

import click
from typer.core import TyperCommand

from starter_kit.commands.options import wrong_option
from starter_kit.settings.config_files import find_config
from starter_kit.settings.official_keys import FLAGS, find_model_config

GIVEN = "starter_kit.official_flags"  # the key in a context's meta
MODEL = "--model"
SHORT = {MODEL: "-m", "--dataset": "-d", "--batch-size": "-bs", "--max-sequence-length": "-msl"}
SWITCHES = {"--flower", "--use_dp"}
KINDS: Mapping[str, Any] = {
    MODEL: click.STRING,
    "--dataset": click.STRING,
    "--save-dir": click.STRING,
    "--sensitivity": click.FLOAT,
    "--noise_multiplier": click.FLOAT,
}  # the others are whole numbers


class CommandWithOfficialFlags(TyperCommand):
    """A command that accepts the flags, and keeps those that were given for `given_flags`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += [_option(flag) for flag in (MODEL, *FLAGS)]


def given_flags(context: click.Context) -> dict[str, object]:
    """Return the flags of `FLAGS` that were given, with their values."""
    return {flag: value for flag, value in _given(context).items() if flag in FLAGS}


def config_of(context: click.Context, config: str | None) -> str:
    """Return the config to train: the one that was named, or the official file that `--model` names.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Neither was named, or both were, or there is no such file.
    """
    model = _given(context).get(MODEL)
    if (config is None) == (model is None):
        raise wrong_option(
            "CONFIG",
            "a YAML file, or the name of one of the kit's configs",
            "nothing" if config is None else f"{config}, and --model {model}",
            next_step="Name one: `pfl methods` lists them.",
        )
    if config is None:
        return str(find_model_config(str(model)))
    # Before anything is loaded that takes seconds.
    find_config(config)
    return config


def _option(flag: str) -> click.Option:
    return click.Option(
        [flag, *([SHORT[flag]] if flag in SHORT else [])],
        type=click.BOOL if flag in SWITCHES else KINDS.get(flag, click.INT),
        is_flag=flag in SWITCHES,
        hidden=True,
        expose_value=False,
        callback=_keep,
    )


def _keep(context: click.Context, option: click.Parameter, value: object) -> None:
    if value is not None and value is not False:
        context.meta.setdefault(GIVEN, {})[option.opts[0]] = value


def _given(context: click.Context) -> Mapping[str, object]:
    given: Mapping[str, object] = context.meta.get(GIVEN, {})
    return given
