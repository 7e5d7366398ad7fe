"""A run's results in words: ε by each rule and accountant, the trust level, the checks."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from docvqa_site.challenge.rankings import Shortfall
from docvqa_site.evaluation.display.power import (
    HARDLY_ANY_POWER,
    HARDLY_ANY_POWER_MEANS,
    has_hardly_any_power,
)
from docvqa_site.submissions.models import Run
from docvqa_site.ui.rounding import power_of_ten
from evaluator.accounting.accountant import Accountant
from evaluator.communication.plausibility import LOG_CHECKS
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.checks import NamedCheck
from evaluator.messages.jobs import ArtifactKind, Check, CheckStatus, Epsilon
from evaluator.messages.leakage import Leakage
from evaluator.messages.results import RunResults
from evaluator.records.case import RunFile
from evaluator.records.check_table import CHECKS, RECORD_CHECKS

# Whole numbers with four digits or more, but no parts of hashes, dates and decimals; and powers of ten.
NUMBERS = re.compile(r"(?<![\w.-])(?:(?P<whole>\d{4,})(?![\w-]|\.\d)|\d(?:\.\d+)?e-\d+\b)")
WORST_FIRST = [
    CheckStatus.FAILED,
    CheckStatus.FLAGGED,
    CheckStatus.NO_POWER,
    CheckStatus.PASSED,
    CheckStatus.NOT_APPLICABLE,
]

# What everybody may read of a run whose team is named, once it is on a board.
PUBLIC_FILES = (ArtifactKind.TRAINING_RECORD, ArtifactKind.COMMUNICATION_LOG, ArtifactKind.TRANSCRIPT)
# The artifacts behind the files of a record check. The base weights are public with their track.
ARTIFACTS = {
    RunFile.CHECKPOINT: ArtifactKind.CHECKPOINT,
    RunFile.LOG: ArtifactKind.COMMUNICATION_LOG,
    RunFile.ANNEX: ArtifactKind.TRAINING_ANNEX,
}
# The artifacts that a check reads, by its id.
READS: dict[str, set[ArtifactKind]] = {
    **{
        one.check.id: {
            ArtifactKind.TRAINING_RECORD,
            *(ARTIFACTS[file] for file in one.needs if file in ARTIFACTS),
        }
        for one in RECORD_CHECKS
    },
    # What these take from the checkpoint, the changed tensors and the bytes that they need, is on the run's page.
    **{check.id: {ArtifactKind.COMMUNICATION_LOG} for check in LOG_CHECKS},
}

# The checks by what they are about, in the order of what they say of the training; the first beginning of an id counts.
SUBJECTS = {
    "record.noise_": "Noise",
    "record.linkage": "From the noised sums to the model",
    "record.whole_change": "From the noised sums to the model",
    "record.alignment": "From the noised sums to the model",
    "record.": "Training record",
    "team.": "Other runs of the team",
    "log.": "Communication log",
    "": "Other checks",
}
# What the checks of a subject exclude where all that apply have passed, and what they leave possible all the same.
SUMMARIES = {
    "Noise": (
        "noise that is much weaker than declared, reused or missing, in blocks that the site drew afterward.",
        "noise that someone knows, and noise that was rearranged.",
    ),
    "From the noised sums to the model": (
        "a checkpoint that doesn't follow from the recorded noised sums.",
        "sums that no training produced.",
    ),
    "Training record": (
        "a record that contradicts itself, the run's other files or the track's rules.",
        "whatever the record leaves out or states falsely throughout.",
    ),
    "Other runs of the team": (
        "records or indexes that the team dropped after seeing the site's challenge.",
        "training runs that the team never registered.",
    ),
    "Communication log": (
        "a log with irregular gaps, or too few bytes for the change in the weights.",
        "messages that are missing throughout.",
    ),
}
# What these exclude by themselves, where another check of their subject could have found hardly anything.
EXCLUDED_ALONE = {
    "record.noise_size": "noise that is much weaker than declared",
    "record.noise_reuse": "reused noise",
    "record.noise_shape": "missing noise",
}
DRAWN_AFTERWARD = ", in blocks that the site drew afterward."


@dataclass(frozen=True)
class EpsilonColumn:
    """One ε of a run as the tables of the site show it.

    Attributes:
        key: Its name in published data, after `epsilon_`.
        rule: None for the sampling rule that decides.
    """

    key: str
    title: str
    meaning: str
    accountant: Accountant
    rule: SamplingRule | None

    def of(self, results: RunResults) -> Epsilon | None:
        """Return the column's ε of a run; None where the run has none."""
        rule = self.rule or deciding_rule(results)
        # A loop, as exports ask for each ε of thousands of runs.
        for row in results.epsilons:
            if row.accountant is self.accountant and row.sampling_rule is rule:
                return row
        return None


def deciding_rule(results: RunResults) -> SamplingRule | None:
    """Return the sampling rule whose ε is compared with the budget; None where there is none."""
    for row in results.epsilons:
        if row.decides:
            return row.sampling_rule
    return None


EPSILON_COLUMNS = (
    EpsilonColumn(
        key="two_stage",
        title="ε two-stage",
        meaning="Recomputed from the training record with privacy loss distributions, assuming an observer who knows "
        "which clients take part in each round",
        accountant=Accountant.PLD,
        rule=SamplingRule.TWO_STAGE,
    ),
    EpsilonColumn(
        key="product",
        title="ε product",
        meaning="The same, with each provider's sampling rate taken as client rate times provider rate, as in the "
        "published competition",
        accountant=Accountant.PLD,
        rule=SamplingRule.PRODUCT,
    ),
    EpsilonColumn(
        key="rdp",
        title="ε (RDP)",
        meaning="With Rényi differential privacy, under the sampling rule used for ranking",
        accountant=Accountant.RDP,
        rule=None,
    ),
)


@dataclass(frozen=True)
class ShownCheck:
    """A check with its words. `is_public` says whether the public may read what it expected and found."""

    check: Check
    name: str
    meaning: str
    limit: str
    is_public: bool

    @property
    def status(self) -> str:
        return _words(self.check.status)

    @property
    def has_hardly_any_power(self) -> bool:
        """Whether it passed, and what it says of its power is near the limit of none."""
        return has_hardly_any_power(self.check)

    @property
    def expected(self) -> str:
        return _readable(self.check.expected)

    @property
    def found(self) -> str:
        return _readable(self.check.found)


def column_epsilons(results: RunResults) -> list[Epsilon | None]:
    """Return the run's ε in the order of `EPSILON_COLUMNS`."""
    return [column.of(results) for column in EPSILON_COLUMNS]


def epsilon_rows(results: RunResults) -> list[Epsilon]:
    """Return the recomputed ε of every column, the deciding one first; none before the accounting."""
    rows = [row for row in column_epsilons(results) if row is not None]
    return sorted(rows, key=lambda row: not row.decides)


def shortfall(run: Run, *, results: RunResults | None = None, rejected: str = "") -> Shortfall | None:
    """Return what keeps a scored run from a rank; None if nothing does.

    Args:
        results: Those that the run is about to get; its own by default.
        rejected: The reviewers' reason; empty unless they reject its proof.
    """
    submission = run.submission
    track, phase = submission.track, submission.phase
    return track.kind.shortfall(
        results or run.results,
        track.limits(run.budget),
        disqualified=run.disqualified_because,
        rejected=rejected,
        requires_counted=phase is not None and phase.requires_counted,
        is_log_accepted=run.log_accepted_at is not None,
    )


def leakage_text(leakage: Leakage | None) -> str:
    """Return the AUC of the attack on a run in a few signs; empty where it wasn't measured."""
    if leakage is None:
        return ""
    return "n.s." if leakage.auc is None else f"{leakage.auc:.2f}"


def shown_checks(run: Run, public_files: Collection[str] = ()) -> list[ShownCheck]:
    """Return the run's checks with their words, in the order in which they were made.

    Args:
        public_files: The kinds of the run's files that everybody may read.
    """
    return [_shown(check, _is_public(run.budget, check, public_files)) for check in run.results.checks]


def by_subject(checks: Iterable[ShownCheck]) -> list[tuple[str, list[ShownCheck]]]:
    """Return the checks in groups, each with its subject, in the order of `SUBJECTS`."""
    groups: dict[str, list[ShownCheck]] = {subject: [] for subject in SUBJECTS.values()}
    for check in checks:
        groups[next(SUBJECTS[start] for start in SUBJECTS if check.check.id.startswith(start))].append(check)
    return [(subject, found) for subject, found in groups.items() if found]


@dataclass(frozen=True)
class SubjectSummary:
    """What the checks of one subject say together.

    Attributes:
        tally: How many ended in each way.
        excluded: What is excluded by those that passed with more than hardly any power; empty if one is flagged.
        doubts: The others by name, such as "No power: linkage.".
        possible: What is possible all the same.
    """

    subject: str
    tally: str
    excluded: str
    doubts: str
    possible: str


def summaries(checks: Iterable[ShownCheck]) -> list[SubjectSummary]:
    """Return what the checks of each subject exclude together, in the order of `SUBJECTS`."""
    return [
        SubjectSummary(
            subject=subject,
            tally=tally([shown.check for shown in group]),
            excluded=_excluded(subject, group),
            doubts=_doubts(group),
            possible=SUMMARIES[subject][1],
        )
        for subject, group in by_subject(checks)
        if subject in SUMMARIES
    ]


def _excluded(subject: str, group: Sequence[ShownCheck]) -> str:
    """Return what the checks of a subject exclude: all of it, or what those with power exclude by themselves."""
    statuses = {shown.check.status for shown in group} - {CheckStatus.NOT_APPLICABLE}
    is_weak = any(shown.has_hardly_any_power for shown in group)
    if statuses == {CheckStatus.PASSED} and not is_weak:
        return SUMMARIES[subject][0]
    if statuses & {CheckStatus.FAILED, CheckStatus.FLAGGED}:
        return ""
    found = [
        EXCLUDED_ALONE[shown.check.id]
        for shown in group
        if shown.check.status is CheckStatus.PASSED
        and not shown.has_hardly_any_power
        and shown.check.id in EXCLUDED_ALONE
    ]
    return ", and ".join(found) + DRAWN_AFTERWARD if found else ""


def _doubts(group: Sequence[ShownCheck]) -> str:
    """Return the checks that didn't pass, or had little or no power, by how they ended."""
    named: dict[str, list[str]] = {}
    for shown in sorted(group, key=lambda shown: WORST_FIRST.index(shown.check.status)):
        if shown.has_hardly_any_power:
            named.setdefault(HARDLY_ANY_POWER_MEANS, []).append(shown.name or shown.check.id)
        elif shown.check.status not in (CheckStatus.PASSED, CheckStatus.NOT_APPLICABLE):
            named.setdefault(shown.status, []).append(shown.name or shown.check.id)
    return " ".join(f"{words.capitalize()}: {', '.join(names)}." for words, names in named.items())


def tally(checks: Sequence[Check]) -> str:
    """Return how many checks ended in each way, the worst first, such as "1 flagged, 9 passed"."""
    counts = Counter(check.status for check in checks)
    weak = sum(map(has_hardly_any_power, checks))
    notes = {CheckStatus.PASSED: f" ({weak} with {HARDLY_ANY_POWER})"} if weak else {}
    return ", ".join(
        f"{counts[status]} {_words(status)}{notes.get(status, '')}"
        for status in WORST_FIRST
        if counts[status]
    )


def public_results(
    results: RunResults, budget: float | None, public_files: Collection[str] = ()
) -> RunResults:
    """Return the results of a run as everyone may read them: of some checks the status alone."""
    if not results.checks:
        return results
    checks = [
        check if _is_public(budget, check, public_files) else Check(id=check.id, status=check.status)
        for check in results.checks
    ]
    return results.model_copy(update={"checks": checks})


def without_traces_of_team(results: RunResults) -> RunResults:
    """Return the results of an anonymous submission without what links them with others of the same team."""
    # The number of a team's trainings would, and so would what the checks say of its tokens and keys.
    checks = [Check(id=check.id, status=check.status) for check in results.checks]
    return results.model_copy(update={"joint_epsilon": None, "joint_runs": None, "checks": checks})


def _is_public(budget: float | None, check: Check, public_files: Collection[str]) -> bool:
    reads = READS.get(check.id)
    follows_from_public_files = reads is not None and reads <= set(public_files)
    return budget is None or follows_from_public_files or _named(check).findings.are_public(check.status)


def _shown(check: Check, is_public: bool) -> ShownCheck:
    named = _named(check)
    return ShownCheck(check, named.name, named.meaning, named.limit, is_public)


def _named(check: Check) -> NamedCheck:
    # A run may have been checked by an evaluator of another version, which made other checks.
    return CHECKS.get(check.id, NamedCheck(check.id, name="", meaning="", limit=""))


def _readable(text: str) -> str:
    """Return what a check states with its numbers as pages write them: 10⁻⁵ and 73,728,000 bytes."""
    return NUMBERS.sub(
        lambda found: f"{int(found['whole']):,}" if found["whole"] else power_of_ten(float(found[0])), text
    )


def _words(status: CheckStatus) -> str:
    return status.replace("_", " ")
