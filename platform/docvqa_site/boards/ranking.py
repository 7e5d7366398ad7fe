"""The rows of a board, ranked in memory by the rule of the track's kind.

Every entry becomes a row. Entries that qualify are ranked from 1 on, without gaps; all others follow unranked, those
that missed a rank by least first, each with the reason. No two rows share a rank: of equal results the earlier
submission comes first. Pages of a board are ordered by the database, in `docvqa_site.boards.queries`, which the tests
compare with the functions here.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.conf import settings

from docvqa_site.boards.uncertainty import RankRange
from docvqa_site.challenge.rankings import Ranking, Shortfall
from docvqa_site.evaluation.display.results import EPSILON_COLUMNS, EpsilonColumn, column_epsilons
from docvqa_site.reviews.verdict import ResultStatus, rejection_of
from evaluator.messages.jobs import ArtifactKind, Epsilon, FirstDownload, TrustLevel
from evaluator.messages.rankings import Limits
from evaluator.messages.results import RunResults


# Not frozen, nor is a row: an export makes thousands, and that of a frozen one takes four times as long.
@dataclass
class Entry:
    """One scored run, with results of which not all is public.

    Attributes:
        key: The run's, as text.
        budget: That of its board; None where ε plays no part.
        license: Under which the team published its run; empty if the track stated none.
        results: Without checks, except where they are published.
        proof_url: The page with its privacy proof; empty unless that is public.
        status_reason: Why the result has its status, where reviewers decide on it.
        is_withheld: Whether its rank is withheld until a reviewer accepts a revised proof.
        disqualified_because: The organizers' public reason; empty unless they disqualified the run.
        examined_ranks: How many of the first ranks of its phase need the trust level `examined_level`.
        requires_counted: Whether its phase ranks counted bytes alone, where bytes rank.
        is_log_accepted: Whether an organizer has accepted its declared log in spite of a flag.
        first_download: The track's rule at the time of the submission, by which its bytes are what they are.
    """

    key: str
    method: str
    team: str
    url: str
    submitted_at: datetime
    results: RunResults
    status: ResultStatus = ResultStatus.SCORED
    status_reason: str = ""
    is_withheld: bool = False
    flagged_checks: int = 0
    disqualified_because: str = ""
    is_baseline: bool = False
    is_evaluated_again: bool = False
    team_slug: str = ""
    code_url: str = ""
    license: str = ""
    paper_url: str = ""
    submission_key: str = ""
    budget: float | None = None
    phase: str = ""
    examined_ranks: int = 0
    examined_level: int = TrustLevel.RERUN
    requires_counted: bool = False
    is_log_accepted: bool = False
    first_download: str = FirstDownload.FREE
    proof_url: str = ""

    @cached_property
    def run(self) -> UUID:
        """The run's key."""
        return UUID(self.key)

    @cached_property
    def submission(self) -> UUID:
        """The submission's key."""
        return UUID(self.submission_key)

    @property
    def epsilons(self) -> list[tuple[EpsilonColumn, Epsilon | None]]:
        """The columns of ε, each with the run's."""
        return list(zip(EPSILON_COLUMNS, column_epsilons(self.results), strict=True))

    def file_url(self, kind: ArtifactKind) -> str | None:
        """Return the address of a file that everybody may read; None for a team that is anonymous."""
        if not self.team_slug:
            return None
        # To look each address up takes a third of the time of an export.
        return f"{settings.SITE_URL}{self.evidence_url}{kind.value}/"

    @property
    def evidence_url(self) -> str:
        """The page of its evidence; for a team that is anonymous, its row on the page of the method."""
        return f"{self.url}runs/{self.key}/" if self.team_slug else f"{self.url}#run-{self.key}"

    @property
    def lacked_level(self) -> TrustLevel | None:
        """The trust level that it needs to be among the first of its phase and lacks; None where it needs none."""
        is_enough = (self.results.trust_level or 0) >= self.examined_level
        return None if is_enough or not self.examined_ranks else TrustLevel(self.examined_level)

    @property
    def withheld(self) -> bool:
        """Whether reviewers, organizers or an examination took its rank, whatever its results."""
        is_rejected = self.status is ResultStatus.REJECTED
        return bool(self.disqualified_because) or is_rejected or self.results.failed_level is not None

    @property
    def accountant_name(self) -> str:
        """The accountant with its version, without its precision."""
        return ", ".join(self.results.accountant.split(", ")[:2])


@dataclass
class Row:
    """An entry with its rank, or with the reason for having none: as a sentence, and in a few signs.

    Attributes:
        ranks: Which ranks it could have, by the uncertainty of the scores; None where nobody has asked.
        was: Its rank a week before, 0 where it had none; None where that isn't known, or nobody has asked.
        pending: The trust level that the run lacks for its rank to be final; None where nothing is missing.
    """

    entry: Entry
    rank: int | None
    reason: str = ""
    short_reason: str = ""
    ranks: RankRange | None = None
    was: int | None = None
    pending: TrustLevel | None = None

    @property
    def status(self) -> str:
        """The status in words; where reviewers, organizers or an examination took the rank, which of them did."""
        return self.short_reason if self.entry.withheld else self.entry.status.label

    @property
    def badge(self) -> str:
        """The look of the status."""
        return "rejected" if self.entry.withheld else self.entry.status

    @property
    def possible_ranks(self) -> str:
        """The ranks that the intervals of scores allow, such as "could be 1–2"; empty where that is one."""
        return self.ranks.in_words if self.ranks else ""

    @property
    def rank_words(self) -> str:
        """The rank with those that are possible, and what it waits for, such as "#1 (could be 1–2)"."""
        rank = f"#{self.rank} ({self.possible_ranks})" if self.possible_ranks else f"#{self.rank}"
        return ", ".join(filter(None, [rank, self.pending_words]))

    @property
    def pending_words(self) -> str:
        """What the rank waits for, such as "replay (L2) pending"; empty where it is final, and without a rank."""
        return f"{self.pending.examination} pending" if self.pending else ""


def rank(entries: Iterable[Entry], kind: Ranking, limits: Limits) -> list[Row]:
    """Rank the entries by the rule of a kind of track, with these limits.

    Those without a rank follow, the ones that missed it by least first.
    """

    def age(entry: Entry) -> tuple[datetime, UUID]:
        # The id decides where even the times are equal.
        return entry.submitted_at, entry.run

    judged = [(entry, rejection(entry, kind, limits)) for entry in sorted(entries, key=age)]
    qualified = sorted(
        (entry for entry, reason in judged if not reason), key=lambda entry: kind.rule.key_of(entry.results)
    )
    unranked = sorted(
        ((entry, reason) for entry, reason in judged if reason), key=lambda one: _miss(one[0], kind)
    )
    lacking = pending(qualified)
    return [
        *(Row(entry, rank, pending=lacking.get(entry.run)) for rank, entry in enumerate(qualified, 1)),
        *(Row(entry, None, reason.sentence, reason.short) for entry, reason in unranked),
    ]


def pending(qualified: Iterable[Entry]) -> dict[UUID, TrustLevel]:
    """Return the runs with a rank that isn't final, with the level that each lacks, of all with a rank, best first.

    A phase says how many of its own runs, counted from its best, need an examination, wherever they rank among all.
    """
    counted: Counter[str] = Counter()
    found = {}
    for entry in qualified:
        counted[entry.phase] += 1
        if counted[entry.phase] <= entry.examined_ranks and entry.lacked_level is not None:
            found[entry.run] = entry.lacked_level
    return found


def rejection(entry: Entry, kind: Ranking, limits: Limits) -> Shortfall | None:
    """Return why the entry has no rank on a board with these limits; None if it has one."""
    return kind.shortfall(
        entry.results,
        limits,
        disqualified=entry.disqualified_because,
        rejected=rejection_of(entry.status, entry.status_reason, is_withheld=entry.is_withheld),
        requires_counted=entry.requires_counted,
        is_log_accepted=entry.is_log_accepted,
    )


def _miss(entry: Entry, kind: Ranking) -> tuple[float, ...]:
    return entry.status is ResultStatus.REJECTED, *kind.rule.distance(entry.results)
