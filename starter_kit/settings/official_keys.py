"""The competition's configuration files and command-line flags, as settings of this kit.

`pfl train` accepts a `configs/models/VT5.yml` of the competition's kit unchanged, and the flags of that kit on the
command line. It reports the translation of every key, one line per key, and rejects an unknown key by name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evaluator.errors import ErrorCode, Problem, ProblemError
from starter_kit.settings.files import read_settings_file, with_setting
from starter_kit.settings.words import choices, written

MARKS = ("model_name", "training_parameters", "fl_parameters", "dp_parameters")
# The folder of model files in the competition's kit.
MODEL_CONFIGS = Path("configs") / "models"


@dataclass(frozen=True)
class Chosen:
    """Settings that the official kit sets in its code rather than in its file."""

    settings: dict[str, Any]
    remark: str

    @property
    def described(self) -> str:
        return ", ".join(f"{name}: {written(value)}" for name, value in self.settings.items())


PLAIN = Chosen({"method": "fedavg", "dropout": True}, "--use_dp chooses fl-provider-dp")
PRIVATE = Chosen(
    {
        "method": "fl-provider-dp",
        "sampling.type": "fixed_size",
        "delta": 1e-5,
        "placement": "client_full",
        "dropout": True,
    },
    "as published; placement: server leaves less noise, where the server may see the sums of updates",
)


@dataclass(frozen=True)
class Meaning:
    """The translation of an official key.

    Attributes:
        setting: The setting of this kit; empty where there is none.
        private_setting: The setting of this kit for a private method, if that is another one.
        remark: A remark on it; where there is no setting, the reason.
        private: Whether it concerns private training only.
    """

    setting: str = ""
    remark: str = ""
    private: bool = False
    private_setting: str = ""

    @property
    def settings(self) -> list[str]:
        """All settings that the key may be translated to."""
        return [name for name in (self.setting, self.private_setting) if name]

    def setting_of(self, *, private: bool) -> str:
        """Return the setting that the key is translated to."""
        return self.private_setting if private and self.private_setting else self.setting


KEYS: dict[str, Meaning] = {
    "model_name": Meaning("experiment", "--base determines the model"),
    "model_weights": Meaning(remark="--base names the folder of the weights"),
    "max_input_tokens": Meaning("max_input_tokens"),
    "save_dir": Meaning(remark="--out names the run folder"),
    "device": Meaning("device"),
    "seed": Meaning("seed"),
    "visual_module.model": Meaning(remark="the image layers are part of the base weights"),
    "visual_module.model_weights": Meaning(remark="the image layers are part of the base weights"),
    "visual_module.finetune": Meaning(remark="the image tower is never trained, as in the competition's kit"),
    "training_parameters.lr": Meaning("local.learning_rate"),
    "training_parameters.batch_size": Meaning("local.batch_size"),
    "fl_parameters.sample_clients": Meaning(
        "clients_per_round", private_setting="sampling.clients_per_round"
    ),
    "fl_parameters.total_clients": Meaning(remark="the data folder lists the clients"),
    "fl_parameters.num_rounds": Meaning("rounds"),
    "fl_parameters.iterations_per_fl_round": Meaning(
        "local.epochs", "passes over a client's examples, or with privacy over a provider's"
    ),
    "dp_parameters.providers_per_fl_round": Meaning(
        "sampling.providers_per_client",
        "a fixed number, as published; with the same noise, ε is larger than with a coin for each provider "
        "(type poisson)",
        private=True,
    ),
    "dp_parameters.sensitivity": Meaning("clip_norm", private=True),
    "dp_parameters.noise_multiplier": Meaning("noise_multiplier", private=True),
    "dataset_name": Meaning("experiment", "--data names the data folder"),
    "imdb_dir": Meaning(
        remark="--data names the data folder; `pfl data imdb` creates one from the official files"
    ),
    "images_dir": Meaning(
        remark="--data names the data folder; `pfl data imdb` creates one from the official files"
    ),
    "provider_docs": Meaning(remark="the data folder lists each page's provider"),
    "flower": Meaning(remark="all clients run in this process, without Flower"),
    "use_dp": Meaning("method"),
}

FLAGS: dict[str, str] = {
    "--dataset": "dataset_name",
    "--batch-size": "training_parameters.batch_size",
    "--max-sequence-length": "max_input_tokens",
    "--seed": "seed",
    "--save-dir": "save_dir",
    "--flower": "flower",
    "--sample_clients": "fl_parameters.sample_clients",
    "--num_rounds": "fl_parameters.num_rounds",
    "--iterations_per_fl_round": "fl_parameters.iterations_per_fl_round",
    "--use_dp": "use_dp",
    "--providers_per_fl_round": "dp_parameters.providers_per_fl_round",
    "--sensitivity": "dp_parameters.sensitivity",
    "--noise_multiplier": "dp_parameters.noise_multiplier",
}
"""The flags, and the keys that they override."""

GROUPS = {key.partition(".")[0] for key in KEYS if "." in key}


@dataclass
class Translation:
    """Settings of this kit, translated from official keys and flags.

    Attributes:
        values: The settings as a file of this kit contains them.
        notes: One line on each key and flag and its translation.
        origins: Where a setting comes from, if it doesn't come from a key of the same name.
    """

    values: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)

    def put(self, label: str, value: object, setting: str, remark: str) -> None:
        """Set `setting`, and add a note about it."""
        self.values = with_setting(self.values, setting, value)
        if label.startswith("--"):
            self.origins[setting] = f"{label} ({setting})"
        self.note(label, value, f"{setting}: {written(value)}", remark)

    def note(self, label: str, value: object, outcome: str, remark: str = "") -> None:
        """Add a note about the key or flag `label`."""
        self.notes.append(f"{label}: {written(value)} -> {outcome}" + (f" ({remark})" if remark else ""))


def is_official(values: Mapping[str, Any]) -> bool:
    """Return whether a file with these settings belongs to the competition's kit."""
    return "method" not in values and any(key in values for key in MARKS)


def find_model_config(model: str) -> Path:
    """Return the file that `--model` names: a path, or a name among configs/models.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There is no such file.
    """
    paths = [Path(model), MODEL_CONFIGS / f"{model}.yml"]
    for path in paths:
        if path.is_file():
            return path
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where=f"--model {model}",
        expected=choices([*map(str, paths)]),
        found="no such file",
    )


def translate(path: Path, values: Mapping[str, Any], flags: Mapping[str, object]) -> Translation:
    """Translate an official file into settings of this kit; `flags`, which are among `FLAGS`, override its keys.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Keys are unknown, or a file that is included can't be read.
    """
    given = {key: (key, value) for key, value in _keys(path, with_includes(path, values)).items()}
    given |= {FLAGS[flag]: (flag, value) for flag, value in flags.items()}
    label, private = given.pop("use_dp", ("use_dp", False))
    if not isinstance(private, bool):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, where=f"{path.name}, use_dp", expected="true or false", found=private
        )
    names = [given[key][1] for key in ("model_name", "dataset_name") if key in given]
    experiment = _experiment([str(name) for name in names] or [path.stem], private)
    origins = {
        name: f"{path.name}, {key} ({name})"
        for key, meaning in KEYS.items()
        for name in [meaning.setting_of(private=private)]
    }
    translation = Translation({"experiment": experiment}, origins=origins)
    for key, (origin, value) in given.items():
        meaning = KEYS[key]
        if meaning.private and not private:
            translation.note(origin, value, "ignored", "nothing is private without --use_dp")
        elif meaning.setting == "experiment":
            translation.note(origin, value, f"experiment: {experiment}", meaning.remark)
        elif meaning.setting:
            translation.put(origin, value, meaning.setting_of(private=private), meaning.remark)
        else:
            translation.note(origin, value, "ignored", meaning.remark)
    method = PRIVATE if private else PLAIN
    for name, setting in method.settings.items():
        translation.values = with_setting(translation.values, name, setting)
    translation.note(label, private, method.described, method.remark)
    return translation


def translate_flags(path: Path, values: Mapping[str, Any], flags: Mapping[str, object]) -> Translation:
    """Return the settings of a file of this kit; `flags`, which are among `FLAGS`, override them.

    Raises:
        ProblemError: (`E_CONFIGURATION`) `--use_dp` is given, but the file itself determines the method.
    """
    translation = Translation(dict(values))
    for flag, value in flags.items():
        meaning = KEYS[FLAGS[flag]]
        if meaning.setting == "method":
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="--use_dp",
                expected="an official file, whose method the flag chooses",
                found=f"{path.name}, with the method {values.get('method')}",
                next_step="Omit the flag, and name the config of a private method: `pfl methods` lists them.",
            )
        if meaning.setting in ("", "experiment"):
            translation.note(flag, value, "ignored", meaning.remark)
        else:
            translation.put(flag, value, meaning.setting_of(private="sampling" in values), meaning.remark)
    return translation


def with_includes(path: Path, values: Mapping[str, Any], above: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the keys of an official file and of the files that it includes, whose keys it overrides.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file includes itself, or an included file can't be read.
    """
    if path.resolve() in above:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=f"{path}, includes",
            expected="other files",
            found="the file itself",
        )
    included: dict[str, Any] = {}
    names = values.get("includes") or []
    for name in names if isinstance(names, list) else [names]:
        below = path.parent / str(name)
        included |= with_includes(below, read_settings_file(below), [*above, path.resolve()])
    return included | {name: value for name, value in values.items() if name != "includes"}


def _experiment(names: Sequence[str], private: bool) -> str:
    """Return the run's name, without the time that the competition's kit appends to it."""
    return re.sub(r"[^\w.-]", "-", "_".join([*names, "dp"] if private else names))


def _keys(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's keys, those of groups with the group's name before them."""
    keys: dict[str, Any] = {}
    for name, value in values.items():
        if name in GROUPS and isinstance(value, Mapping):
            keys |= {f"{name}.{below}": value_below for below, value_below in value.items()}
        else:
            keys[name] = value
    if problems := [_unknown(path, key) for key in keys if key not in KEYS]:
        raise ProblemError(*problems)
    return keys


def _unknown(path: Path, key: str) -> Problem:
    group, dot, _ = key.rpartition(".")
    known = sorted(
        {name.removeprefix(group + dot).partition(".")[0] for name in KEYS if name.startswith(group + dot)}
    )
    alike = get_close_matches(key, KEYS, n=1, cutoff=0.7)
    listed = "docs/settings.md lists the keys of the competition's files that are known here."
    problem = Problem.of(
        ErrorCode.CONFIGURATION,
        where=f"{path.name}, {key}",
        next_step=f"Is {alike[0]} meant?" if alike else listed,
    )
    expected = "a group of keys" if key in GROUPS else f"one of {', '.join(known)}"
    # Set afterwards, so that it isn't truncated as input would be.
    return problem.model_copy(update={"expected": expected})
