"""Claims about two rows, and whether they hold in the outcomes of all seeds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from tests.studies.markdown import table_row
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import Outcome, Row

Outcomes = Mapping[str, Sequence[Outcome]]  # of each row, by seed

HOLDS = "holds in every seed"


@dataclass(frozen=True)
class Claim:
    """A statement about two rows.

    Attributes:
        margin: By how much the first is below the second, in the outcomes of one seed; positive where the claim holds.
    """

    text: str
    lower: str
    upper: str
    margin: Callable[[Outcome, Outcome], float]


def below(lower: Row, upper: Row, sign: str = "<") -> Claim:
    """Return the claim that one row has a lower ANLS than another."""
    text = f"{lower.title} {sign} {upper.title} in ANLS"
    return Claim(text, lower.name, upper.name, lambda lower, upper: upper.anls - lower.anls)


def seeds_of(results: Results) -> int:
    """Return the number of seeds."""
    return len({outcome.seed for outcome in results.outcomes})


def makers_of(results: Results) -> str:
    """Return the versions and machines that made the outcomes."""
    return "; ".join(sorted({outcome.made_with for outcome in results.outcomes}))


def by_row(outcomes: Iterable[Outcome]) -> Outcomes:
    """Return the outcomes of each row, in the order of the seeds."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda outcome: outcome.seed):
        rows[outcome.row].append(outcome)
    return rows


def spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation; one value has no deviation."""
    return f"{mean(values):.4f} ± {stdev(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def verdict(margins: Sequence[float]) -> str:
    """In words, of the margins of all seeds: positive ones hold."""
    if min(margins) > 0:
        return HOLDS
    if mean(margins) > 0:
        return f"holds on average, in {sum(margin > 0 for margin in margins)} of {len(margins)} seeds"
    return "**doesn't hold**"


def summary(claims: Sequence[Claim], outcomes: Outcomes) -> list[str]:
    """Return lines on how many claims hold in every seed, and which don't."""
    verdicts = {claim.text: verdict(_margins(claim, outcomes)) for claim in claims}
    missed = {text: said for text, said in verdicts.items() if said != HOLDS}
    lines = [f"Of {len(claims)} claims, {len(claims) - len(missed)} hold in every seed."]
    if missed:
        lines += ["", "The other claims:", "", *(f"- {text}: {said}." for text, said in missed.items())]
    return lines


def claims_table(claims: Sequence[Claim], outcomes: Outcomes) -> list[str]:
    """Return the lines of the table of all claims."""
    lines = ["| claim | margin, mean | of single seeds | verdict |", "| --- | --: | --: | --- |"]
    for claim in claims:
        margins = _margins(claim, outcomes)
        singles = f"{_number(min(margins))} to {_number(max(margins))}"
        lines.append(table_row(claim.text, _number(mean(margins)), singles, verdict(margins)))
    return lines


def _margins(claim: Claim, outcomes: Outcomes) -> list[float]:
    pairs = zip(outcomes[claim.lower], outcomes[claim.upper], strict=True)
    return [claim.margin(lower, upper) for lower, upper in pairs]


def _number(margin: float) -> str:
    """A margin of scores or of bytes, whose sizes can't be mixed up."""
    return f"{margin / 1e6:+.2f} MB" if abs(margin) > 1 else f"{margin:+.4f}"
