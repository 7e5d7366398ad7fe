"""The leakage of a run in tables."""

from django import template

from evaluator.messages.leakage import Leakage
from portal.evaluation.display.results import leakage_text

register = template.Library()


@register.filter
def leakage(measured: Leakage | None) -> str:
    """Return the AUC of the attack in a few signs; empty where it wasn't measured."""
    return leakage_text(measured)
