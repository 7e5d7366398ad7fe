"""Claims about two rows, and whether they hold in the outcomes of all seeds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Protocol, Self

from starter_kit.published import Number, Source
from tests.studies.markdown import table_row
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import Outcome, Row

Outcomes = Mapping[str, Sequence[Outcome]]  # of each row, by seed

HOLDS = "holds in every seed"
NOT_RUN = "not run"
PAPERS = {Source.PRIVACY: "privacy paper", Source.COMPETITION: "competition"}


class Scored(Protocol):
    """What a claim is about: an outcome, or what a table prints."""

    @property
    def anls(self) -> float: ...
    @property
    def bytes_total(self) -> int: ...


@dataclass(frozen=True)
class Printed:
    """A row of a published table.

    Attributes:
        table: The paper and its table.
        bytes_total: 0 where the claim isn't about bytes.
    """

    table: str
    anls: float
    bytes_total: int = 0

    @classmethod
    def of(cls, anls: Number, sent: Number | None = None) -> Self:
        """Return the row with this ANLS, and with these bytes."""
        return cls(table_of(anls), anls.share, round(sent.bytes) if sent else 0)


def table_of(number: Number) -> str:
    """Return the paper and the table of a published number, in words."""
    is_numbered = number.table[-1].isdigit() and " " not in number.table
    return f"{PAPERS[number.source]}, {'Table ' if is_numbered else ''}{number.table}"


@dataclass(frozen=True)
class Claim:
    """A statement about two rows.

    Attributes:
        printed: What the paper prints for both rows.
        margin: By how much the first is below the second, in the outcomes of one seed; positive where the claim holds.
    """

    text: str
    lower: str
    upper: str
    printed: tuple[Printed, Printed]
    margin: Callable[[Scored, Scored], float]

    @property
    def tables(self) -> str:
        """Where the paper says so."""
        return "; ".join(dict.fromkeys(printed.table for printed in self.printed))


def below(lower: Row, upper: Row, printed: tuple[Printed, Printed], sign: str = "<") -> Claim:
    """Return the claim that one row has a lower ANLS than another."""
    text = f"{lower.title} {sign} {upper.title} in ANLS"
    return Claim(text, lower.name, upper.name, printed, lambda lower, upper: upper.anls - lower.anls)


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
    """Return mean and standard deviation; one value has no deviation, and a row without outcomes wasn't run."""
    if not values:
        return NOT_RUN
    return f"{mean(values):.4f} ± {stdev(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def verdict(margins: Sequence[float]) -> str:
    """In words, of the margins of all seeds: positive ones hold."""
    if not margins:
        return NOT_RUN
    if min(margins) > 0:
        return HOLDS
    if mean(margins) > 0:
        return f"holds on average, in {sum(margin > 0 for margin in margins)} of {len(margins)} seeds"
    return "**doesn't hold**"


def summary(claims: Sequence[Claim], outcomes: Outcomes) -> list[str]:
    """Return lines on how many claims hold in every seed, and which don't."""
    verdicts = {claim.text: verdict(_margins(claim, outcomes)) for claim in claims}
    missed = {text: said for text, said in verdicts.items() if said != HOLDS}
    not_run = sum(said == NOT_RUN for said in missed.values())
    others = f", and {not_run} were not run" if not_run else ""
    lines = [f"Of {len(claims)} claims, {len(claims) - len(missed)} hold in every seed{others}."]
    if missed:
        lines += ["", "The other claims:", "", *(f"- {text}: {said}." for text, said in missed.items())]
    return lines


def claims_table(claims: Sequence[Claim], outcomes: Outcomes) -> list[str]:
    """Return the lines of the table of all claims."""
    head = ("claim", "where", "published margin", "mean margin here", "lowest", "highest", "verdict")
    lines = [table_row(*head), table_row("---", "---", *["--:"] * 4, "---")]
    for claim in claims:
        margins = _margins(claim, outcomes)
        ours = map(_number, (mean(margins), min(margins), max(margins))) if margins else ["–"] * 3
        published = _number(claim.margin(*claim.printed))
        lines.append(table_row(claim.text, claim.tables, published, *ours, verdict(margins)))
    return lines


def _margins(claim: Claim, outcomes: Outcomes) -> list[float]:
    """Of each seed; none where one of the rows wasn't run."""
    lower, upper = outcomes[claim.lower], outcomes[claim.upper]
    pairs = zip(lower, upper, strict=True) if lower and upper else ()
    return [claim.margin(lower, upper) for lower, upper in pairs]


def _number(margin: float) -> str:
    """A margin of scores or of bytes, whose sizes can't be mixed up."""
    return f"{margin / 1e6:+.2f} MB" if abs(margin) > 1 else f"{margin:+.4f}"
