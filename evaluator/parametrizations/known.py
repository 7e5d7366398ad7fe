"""The parametrizations that starter kit and evaluator know, by their names."""

from evaluator.parametrizations.alternating_lora import ALTERNATING_LORA
from evaluator.parametrizations.core import CORE
from evaluator.parametrizations.ffa_lora import FFA_LORA
from evaluator.parametrizations.lora import LORA
from evaluator.parametrizations.rs_lora import RS_LORA

PARAMETRIZATIONS = {
    known.name: known
    for known in (
        LORA,
        FFA_LORA,
        RS_LORA,
        CORE,
        ALTERNATING_LORA,
    )
}


def check_known(name: str) -> str:
    """Return the name of a parametrization. Raises ValueError for any other."""
    if name not in PARAMETRIZATIONS:
        raise ValueError(f"should be one of {', '.join(PARAMETRIZATIONS)}")
    return name
