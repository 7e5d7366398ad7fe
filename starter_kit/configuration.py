"""Settings of a training run: a YAML file, read safely, with single settings changed on the command line.

Unknown and impossible settings are refused by name, so that a misspelt one is never ignored.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from evaluator.contracts import SamplingRule
from evaluator.errors import ErrorCode, Problem, ProblemError, refuse
from evaluator.records.lines import Tuning
from starter_kit.learning import LocalTraining
from starter_kit.methods.fl_provider_dp import NoisePlacement

CONFIGS = Path(__file__).parent / "configs"


class RunSettings(BaseModel):
    """What every method needs.

    Attributes:
        experiment: Name of the run, and of its folder under `save/`.
        rounds: Federated rounds. FedAvg with none of them gives the base weights as they are, for reference.
        max_input_tokens: Longest text, question and words, that is read of a page in training.
        trainable: Patterns of the names of the tensors that are trained and sent, such as `*.layer_norm.weight`.
        local: How a client (FedAvg) or a provider (FL-PROVIDER-DP) trains within a round.
        device: Where the model trains.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: str = Field(pattern=r"^[\w.-]{1,100}$")
    rounds: int = Field(ge=0)
    max_input_tokens: int = Field(default=512, ge=16)
    trainable: list[str] = Field(default=["*"], min_length=1)
    local: LocalTraining
    device: Literal["cpu", "cuda"] = "cpu"


class FedAvgSettings(RunSettings):
    """Federated averaging; see starter_kit/methods/fedavg.py."""

    method: Literal["fedavg"]
    clients_per_round: int = Field(default=2, ge=1)


class ProviderDPSettings(RunSettings):
    """FL-PROVIDER-DP; see starter_kit/methods/fl_provider_dp.py.

    Exactly one of `target_epsilon`, for which σ is computed, and `noise_multiplier`, σ itself, is given.

    Attributes:
        sampling_rule: How two stages of sampling are accounted where σ is computed and ε is claimed; the track's.
        max_weight_noise: The most noise, as a standard deviation, that the whole run may leave in a weight; the server
            learning rate is lowered to keep to it. It follows from public numbers, so it costs no privacy.
        tuning: How these settings were chosen, for the training record.
        validation_on_private_data: Whether a provider's data chose a setting, the round or the checkpoint; recorded.
    """

    method: Literal["fl-provider-dp"]
    rounds: int = Field(ge=1)
    target_epsilon: float | None = Field(default=None, gt=0)
    noise_multiplier: float | None = Field(default=None, gt=0)
    delta: float = Field(gt=0, lt=1)
    clip_norm: float = Field(gt=0)
    provider_rate: float = Field(gt=0, le=1)
    client_rate: float = Field(default=1.0, gt=0, le=1)
    sampling_rule: SamplingRule = SamplingRule.TWO_STAGE
    placement: NoisePlacement = NoisePlacement.SERVER
    server_learning_rate: float = Field(default=1.0, gt=0)
    max_weight_noise: float | None = Field(default=None, gt=0)
    tuning: Tuning = Tuning(private_runs=0)
    validation_on_private_data: bool = False

    @model_validator(mode="after")
    def _one_noise(self) -> Self:
        if (self.target_epsilon is None) == (self.noise_multiplier is None):
            raise ValueError("give exactly one of target_epsilon and noise_multiplier; set the other to null")
        return self


Settings = Annotated[FedAvgSettings | ProviderDPSettings, Field(discriminator="method")]
_ADAPTER: TypeAdapter[FedAvgSettings | ProviderDPSettings] = TypeAdapter(Settings)


def load_settings(config: str, changes: Sequence[str] = ()) -> FedAvgSettings | ProviderDPSettings:
    """The settings of `config`, a YAML file or the name of one in starter_kit/configs, with `changes` applied.

    A change is `name=value`, with the value in YAML and dots for nested names: `local.learning_rate=0.001`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) One problem for each setting that is wrong.
    """
    path = find_config(config)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise refuse(
            ErrorCode.CONFIGURATION,
            where=str(path),
            expected="a YAML file",
            found=" ".join(str(error).split()),
        ) from error
    if not isinstance(values, dict):
        raise refuse(ErrorCode.CONFIGURATION, where=str(path), expected="settings, one a line", found=values)
    for change in changes:
        _apply(values, change)
    try:
        return _ADAPTER.validate_python(values)
    except ValidationError as error:
        raise ProblemError(*_problems(error, path.name)) from error


def find_config(config: str) -> Path:
    """The file that `config` names: a path, or a name among starter_kit/configs."""
    for path in (Path(config), CONFIGS / f"{config}.yaml"):
        if path.is_file():
            return path
    raise refuse(
        ErrorCode.CONFIGURATION,
        where=config,
        expected=f"a YAML file, or one of {', '.join(sorted(path.stem for path in CONFIGS.glob('*.yaml')))}",
        found="no such file",
    )


def snapshot(settings: FedAvgSettings | ProviderDPSettings) -> str:
    """`settings` as YAML that `load_settings` reads again."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False)


def _apply(values: dict[str, Any], change: str) -> None:
    name, equals, text = change.partition("=")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        equals = ""
    if not (name and equals):
        raise refuse(ErrorCode.CONFIGURATION, where=f"--set {change}", expected="name=value", found=change)
    *parents, last = name.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise refuse(
                ErrorCode.CONFIGURATION, where=f"--set {change}", expected="a group of settings", found=parent
            )
    values[last] = value


def _problems(error: ValidationError, file: str) -> list[Problem]:
    problems = []
    for detail in error.errors(include_url=False):
        name = ".".join(str(part) for part in detail["loc"][1:])  # the first part is the method's name
        problems.append(
            refuse(
                ErrorCode.CONFIGURATION,
                where=f"{file}, {name}" if name else file,
                expected=detail["msg"].removeprefix("Value error, "),
                found="" if isinstance(detail["input"], dict) else detail["input"],
            ).problem
        )
    return problems
