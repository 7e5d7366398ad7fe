"""What of a board a visitor asks for: its filters and its order, as the address has them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from urllib.parse import urlencode
from uuid import UUID

MAX_TEXT_CHARACTERS = 100


class Baselines(StrEnum):
    """Which of the organizers' baselines are shown."""

    ALL = ""
    ONLY = "only"
    NONE = "none"


class Sort(StrEnum):
    """The order of the rows with a rank."""

    RANK = ""
    ANLS = "anls"
    EPSILON = "epsilon"
    BYTES = "bytes"
    NEWEST = "newest"
    METHOD = "method"
    LEAKAGE = "leakage"
    STATUS = "status"

    def direction(self, *, is_reversed: bool = False) -> str:
        """Return whether its values rise or fall from row to row, as `aria-sort` says it."""
        falls = self in (Sort.ANLS, Sort.NEWEST)
        return "descending" if falls is not is_reversed else "ascending"


SORT_LABELS = {
    Sort.RANK: "rank",
    Sort.ANLS: "highest ANLS",
    Sort.EPSILON: "smallest ε",
    Sort.BYTES: "fewest bytes",
    Sort.NEWEST: "newest",
    Sort.METHOD: "method",
    Sort.LEAKAGE: "least leakage",
    Sort.STATUS: "accepted proofs first",
}


@dataclass(frozen=True)
class Selection:
    """Filters and order of the rows of a board. Ranks stay those among all rows.

    Attributes:
        verified: Only runs whose proof enough reviewers have accepted.
        best: Only the best run of each team that the other filters leave.
        open_code: Only submissions with a link to their code.
        text: Part of the method's or the team's name.
        team: The slug of the only team.
        submissions: The only submissions, which no address of a board names; empty for all.
        phase: The name of the only phase in which they were submitted.
        since: The first day of submission, in the time zone of the site.
        until: The last one.
        is_reversed: Whether the last row in this order is the first.
    """

    verified: bool = False
    best: bool = False
    open_code: bool = False
    baselines: Baselines = Baselines.ALL
    text: str = ""
    team: str = ""
    phase: str = ""
    since: date | None = None
    until: date | None = None
    sort: Sort = Sort.RANK
    is_reversed: bool = False
    submissions: tuple[UUID, ...] = ()

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Selection":
        """Return the selection that an address asks for; what it doesn't know is ignored."""
        baselines, sort = query.get("baselines", ""), query.get("sort", "")
        return cls(
            verified=query.get("verified") == "1",
            best=query.get("best") == "1",
            open_code=query.get("code") == "1",
            baselines=Baselines(baselines) if baselines in set(Baselines) else Baselines.ALL,
            text=" ".join(query.get("q", "").split())[:MAX_TEXT_CHARACTERS],
            team=query.get("team", ""),
            phase=query.get("phase", ""),
            since=_day(query.get("since", "")),
            until=_day(query.get("until", "")),
            sort=Sort(sort) if sort in set(Sort) else Sort.RANK,
            is_reversed=query.get("reverse") == "1",
        )

    @property
    def is_filter(self) -> bool:
        """Whether it leaves rows out."""
        return replace(self, sort=Sort.RANK, is_reversed=False) != Selection()

    @property
    def is_folded(self) -> bool:
        """Whether it asks for more than a text and an order, by controls that are folded until they are used."""
        return replace(self, text="", sort=Sort.RANK, is_reversed=False) != Selection()

    @property
    def has_swapped_days(self) -> bool:
        """Whether no day can match, because the first day is after the last."""
        return bool(self.since and self.until and self.since > self.until)

    @property
    def is_of_visitors_making(self) -> bool:
        """Whether it has a value that a visitor makes up, of which there is no end."""
        return bool(self.text or self.team or self.since or self.until)

    @property
    def query(self) -> str:
        """The part of the address that asks for it, without what is as it would be anyway."""
        values = {
            "verified": "1" if self.verified else "",
            "best": "1" if self.best else "",
            "code": "1" if self.open_code else "",
            "baselines": self.baselines.value,
            "q": self.text,
            "team": self.team,
            "phase": self.phase,
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "",
            "sort": self.sort.value,
            "reverse": "1" if self.is_reversed else "",
        }
        return urlencode({name: value for name, value in values.items() if value})


def _day(text: str) -> date | None:
    """Return the day as a form sends it; None for anything else."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


EVERYTHING = Selection()
