"""The settings of a PEFT adapter by allow-list: what they name must leave it a sum of base weights and products B·A.

PEFT writes every switch that it knows, most of them off. A switch that is on, and whose effect isn't known here, may
change what the product is added to, or how; so the adapter is rejected with its name. Known examples are DoRA,
initializations that change the base weights (PiSSA, OLoRA, CorDA, LoftQ, LoRA-GA), and aLoRA, which acts on some
tokens only.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from evaluator.docvqa.dataset import first_line
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.untrusted_json import UntrustedJSONError, parse
from evaluator.messages.untrusted_text import decode

# Keys that decide the product, which is computed with them, and keys without effect on it.
READ = {"r", "lora_alpha", "use_rslora", "alpha_pattern", "rank_pattern", "modules_to_save"}
NEUTRAL = {
    "auto_mapping",
    "base_model_name_or_path",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "lora_dropout",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
}
# The values that keep a sum of base weights and B·A, of switches that have others as well.
VALUES: Mapping[str, tuple[object, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    # Those that initialize A and B alone.
    "init_lora_weights": (True, False, "gaussian", "eva", "orthogonal"),
}
PATTERNS = ("alpha_pattern", "rank_pattern")
MERGE_THERE = "Merge the adapter with PEFT's `merge_and_unload`, and convert the merged model."


def require_sum_of_products(path: Path) -> None:
    """Check `adapter_config.json`.

    Raises:
        ProblemError: (`E_CHECKPOINT_FORMAT`) It can't be read, or has keys, each named, that make the adapter something
            else than a sum of base weights and B·A.
    """
    try:
        settings = parse(decode(path.read_bytes()).encode())
    except (OSError, UnicodeDecodeError, UntrustedJSONError) as error:
        raise ProblemError(
            _problem(str(path), "the JSON object that PEFT writes", first_line(error))
        ) from error
    if not isinstance(settings, dict):
        raise ProblemError(_problem(str(path), "the JSON object that PEFT writes", type(settings).__name__))
    problems = [problem for key, value in settings.items() for problem in _problems(path, key, value)]
    if problems:
        raise ProblemError(*problems)


def _problems(path: Path, key: str, value: object) -> list[Problem]:
    where = f"{path}, {key}"
    if key in VALUES:
        known = VALUES[key]
        # 1 and 0 equal true and false, and name no initialization.
        if any(value is one or (isinstance(one, str) and value == one) for one in known):
            return []
        expected = " or ".join(str(one).lower() if isinstance(one, bool) else str(one) for one in known)
        return [_problem(where, expected, value, MERGE_THERE)]
    if key in PATTERNS and isinstance(value, dict):
        return [problem for pattern in value if (problem := _pattern_problem(where, pattern))]
    if key in READ | NEUTRAL or value is None or value is False or value in ({}, []):
        return []
    return [
        _problem(where, "an option that leaves the adapter a sum of base weights and B·A", value, MERGE_THERE)
    ]


def _pattern_problem(where: str, pattern: str) -> Problem | None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return _problem(where, "regular expressions for names of layers", f"{pattern} ({error})")
    return None


def _problem(where: str, expected: str, found: object, next_step: str = "") -> Problem:
    return Problem.of(
        ErrorCode.CHECKPOINT_FORMAT,
        message="The adapter can't be added to base weights.",
        where=where,
        expected=expected,
        found=found,
        next_step=next_step or "Save it with PEFT's `save_pretrained`.",
    )
