"""The rules of the competition's tracks, by which `pfl check` and `pfl plan` judge a run."""

from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES, RULES

TRACKS = {"track-1": FEWEST_BYTES, "track-2": BEST_ANLS_AT_BUDGET}
# A track elsewhere is known by its kind.
KNOWN = TRACKS | RULES
BUDGETS = (1, 4, 8)  # values of ε
DELTA = 1e-5
MAX_ROUNDS = 10_000
RULE = SamplingRule.TWO_STAGE
