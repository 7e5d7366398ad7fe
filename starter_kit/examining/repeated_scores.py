"""Is a submitted score explained by the chance of training? The comparison of a rerun, as a function of values.

Repeats have other seeds, noise and coins. Where their scores are draws of one normal distribution, and the submitted
score is another, it is in the prediction interval

    mean ± t(n - 1) · s · √(1 + 1/n)

with the probability `LEVEL`, where s is their standard deviation and t(n - 1) the quantile of Student's t. One run in a
hundred that is as honest as can be is outside of it. With few repeats the interval is wide: with three it allows 11
deviations, with five 5, so that it then shows little; what it allows is therefore always stated. Scores that vary less
than a question, or a byte in a hundred, never count as different.

Fewer than three repeats say nothing of the variation. They must agree as far as that. The interval that scoring has is
no substitute: it is of other questions, with the model as it is.
"""

import statistics
from collections.abc import Sequence

from scipy.special import stdtrit

from evaluator.messages.examinations import Comparison

LEVEL = 0.99
MIN_REPEATS = 3
BYTES_TOLERANCE = 0.01


def compare(
    name: str, submitted: float, repeats: Sequence[float], least: float, least_basis: str
) -> Comparison:
    """Return the submitted score beside those of the repeats; a difference of `least` is always allowed."""
    count, mean = len(repeats), statistics.fmean(repeats)
    allowed = least
    if count >= MIN_REPEATS:
        quantile = float(stdtrit(count - 1, (1 + LEVEL) / 2))
        allowed = quantile * statistics.stdev(repeats) * (1 + 1 / count) ** 0.5
    basis = f"the {LEVEL:.0%} prediction interval of {count} repeats" if allowed > least else least_basis
    return Comparison(name=name, submitted=submitted, repeated=mean, allowed=max(allowed, least), basis=basis)


def compare_anls(submitted: float, repeats: Sequence[float], questions: int) -> Comparison:
    """Compare the ANLS; one question's worth is always allowed, and so is the cut of four decimals."""
    return compare("ANLS", submitted, repeats, 1 / questions + 1e-4, "one question of the test set")


def compare_bytes(submitted: int, repeats: Sequence[int]) -> Comparison:
    """Compare the bytes that were sent."""
    least = BYTES_TOLERANCE * submitted
    return compare("bytes", submitted, repeats, least, f"{BYTES_TOLERANCE:.0%} of them")
