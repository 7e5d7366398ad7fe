"""A method's settings with other noise, clip norm or chances: what the harness may choose, as any user may."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evaluator.mechanisms.mechanism import SamplingRule
from starter_kit.conformance.claims import unsupported
from starter_kit.settings.run_settings import Checkpoints, RunSettings

# Where a target can't be left out, one that no run reaches.
NO_TARGET = 1e9
# The least noise that an event can state, so that every variant has claims of its own.
LEAST_NOISE = 0.1
# The smallest chance that a sampling can state: nobody takes part in a few rounds.
NOBODY = 1e-9


def as_examined(settings: RunSettings) -> RunSettings:
    """Return the settings with exact messages and the amplification rule that is sound for each unit.

    What a codec does to a noised message is post-processing. The rule `product` is about accounting: it takes all coins
    for independent, which those of one client's providers can't be where clients are drawn, too.
    """
    changes = {
        "codec": "float32",
        "evaluate_every": 0,
        "evaluate_questions": None,
        "checkpoints": Checkpoints(),
        "device": "cpu",
        "sampling_rule": SamplingRule.TWO_STAGE,
    }
    return changed(settings, changes)


def with_noise(settings: RunSettings, relative: float, clip_norm: float | None = None) -> RunSettings:
    """Return the settings with this noise over the clip norm, or over the sensitivity, and perhaps this clip norm.

    Raises:
        ProblemError: (`E_CONFORMANCE_UNSUPPORTED`) Their noise or clip norm can't be set.
    """
    fields = type(settings).model_fields
    if not {"noise_multiplier", "epsilon_per_round"} & fields.keys() or "clip_norm" not in fields:
        raise unsupported("the settings clip_norm and noise_multiplier", ", ".join(sorted(fields)))
    changes: dict[str, Any] = {"rounds": 1}
    if "noise_multiplier" in fields:
        changes["noise_multiplier"] = relative
    else:
        changes["epsilon_per_round"] = 1 / relative
    if "target_epsilon" in fields:
        changes["target_epsilon"] = NO_TARGET if fields["target_epsilon"].annotation is float else None
    if clip_norm is not None:
        changes["clip_norm"] = clip_norm
    return changed(settings, changes)


def without_participants(settings: RunSettings) -> RunSettings | None:
    """Return the settings with a chance so small that nobody takes part; None where all do, or a fixed number."""
    values = settings.model_dump()
    sampling = values.get("sampling") or {}
    for rate in ("provider_rate", "client_rate") if sampling.get("type") == "poisson" else ():
        if sampling[rate] < 1:
            return changed(settings, {"sampling": {**sampling, rate: NOBODY}})
    if isinstance(client_rate := values.get("client_rate"), float) and client_rate < 1:
        return changed(settings, {"client_rate": NOBODY})
    return None


def changed(settings: RunSettings, changes: Mapping[str, Any]) -> RunSettings:
    """Return the settings with `changes`, validated again.

    Raises:
        ProblemError: (`E_CONFORMANCE_UNSUPPORTED`) They don't allow it.
    """
    known = {name: value for name, value in changes.items() if name in type(settings).model_fields}
    try:
        return type(settings).model_validate(settings.model_dump() | known)
    except ValidationError as error:
        raise unsupported(
            "settings whose noise and clip norm can be chosen", error.errors()[0]["msg"]
        ) from error
