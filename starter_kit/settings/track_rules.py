"""The rules of the competition's track 2, by which `pfl check` and `pfl plan` judge a run."""

from evaluator.mechanisms.mechanism import SamplingRule

BUDGETS = (1, 4, 8)  # values of ε
DELTA = 1e-5
MAX_ROUNDS = 10_000
RULE = SamplingRule.TWO_STAGE
