"""All checks, in the order in which pages and reports list them.

Workers compare a record with all of its files by `check_record`; `pfl privacy explain` makes the checks whose files are
available. The results of checks are public and the annex is not, so no result reveals a number of providers.
"""

from collections.abc import Sequence

from evaluator.communication.plausibility import LOG_CHECKS
from evaluator.errors import Problem
from evaluator.messages.checks import Findings, NamedCheck
from evaluator.messages.jobs import Check, CheckStatus
from evaluator.records import (
    change_checks,
    declaration_checks,
    file_checks,
    linkage_checks,
    noise_checks,
    round_checks,
    sampling_checks,
    tensor_checks,
)
from evaluator.records.case import Case, RecordCheck

MODULES = (
    declaration_checks,
    round_checks,
    sampling_checks,
    tensor_checks,
    file_checks,
    linkage_checks,
    change_checks,
    noise_checks,
)
RECORD_CHECKS = [one for module in MODULES for one in vars(module).values() if isinstance(one, RecordCheck)]

# The accounting makes this one, by `evaluator.records.epsilon`.
BUDGET = NamedCheck(
    "record.budget",
    name="budget",
    meaning="ε, recomputed from the record's rounds under the track's rules, is within the budget.",
    limit="Anything missing from the record or stated falsely.",
    findings=Findings.PUBLIC,
)
# The site makes these, over all runs of a team.
DECLARED_RUNS = NamedCheck(
    "team.declared_runs",
    name="declared runs",
    meaning="Every earlier challenge that the site drew in this track for this team, or for other teams its members "
    "were on, led to a non-practice run whose ε was computed. A challenge without such a run is unresolved: the team "
    "may have dropped the record after seeing the challenge. This applies regardless of what other "
    "runs the team has in the queue. The check is repeated whenever a run of the team leaves the queue. The check has "
    "no power while the team has unused run tokens, unless the record declares at least as many tuning runs as "
    "there are unused tokens.",
    limit="Training runs without a token, training runs whose record was never uploaded, and the unresolved challenges "
    "of another team that shares no members with this one.",
    findings=Findings.PUBLIC,
)
DRAWN_INDEXES = NamedCheck(
    "team.drawn_indexes",
    name="drawn indexes",
    meaning="Every earlier index of messages for which the site drew rounds led to a non-practice run whose bytes were "
    "counted, and no other team uploaded this run's index first. The challenge of an index without such a run is "
    "unresolved: the team may have dropped the index after seeing the rounds. This applies regardless of what "
    "other runs the team has in the queue. The check is repeated whenever a run of the team leaves the queue.",
    limit="Training runs whose index was never uploaded, and the unresolved challenges of another team that shares no "
    "members with this one.",
    findings=Findings.PUBLIC,
)
JOINT_EPSILON = NamedCheck(
    "team.joint_epsilon",
    name="joint ε",
    meaning="Reports the joint ε of all training runs in this track whose ε was computed, whether by this team or by "
    "its members on other teams. These runs all used the same data. No budget limits the joint ε.",
    limit="Models that were trained on the data but never submitted.",
    findings=Findings.PUBLIC,
)

CHECKS = {
    check.id: check
    for check in (
        BUDGET,
        *(one.check for one in RECORD_CHECKS),
        DECLARED_RUNS,
        DRAWN_INDEXES,
        JOINT_EPSILON,
        *LOG_CHECKS,
    )
}

# Lies that no check detects in an otherwise consistent run, each with the method that can. The tests forge every one
# of them, along with those that checks do detect: tests/evaluator/records/test_lies.py.
UNCAUGHT: dict[str, str] = {
    "noise known to the cheater": "Conformance (L1), if the attached code draws the noise from a seed of its own. In a "
    "replayable run, a replay (L2), because its noise follows from keys committed to before the run.",
    "noise that was rearranged until it adds up to a change without large singular values": "A replay (L2) of any "
    "round.",
    "unclipped updates hidden by the noise": "Conformance (L1), if the attached code doesn't clip; a replay (L2) of "
    "such a round.",
    "a whole run of invented sums, and the model they lead to": "A replay (L2) of any round; another training run "
    "(L3), if the model scores better than a private one can.",
    "two rounds declared as one": "Conformance (L1), if the attached code does so; a replay (L2) of such a round.",
    "another sampling declared as Poisson or as random allocation, with few providers in each round or with invented "
    "counts": "Conformance (L1), if the attached code samples so; a replay (L2), if the run is replayable.",
    "the same providers in every round, or in the same round of every cycle": "Conformance (L1), if the attached code "
    "samples so; a replay (L2), if the run is replayable.",
}


def check_record(case: Case) -> list[Check]:
    """Make every check of a record.

    Raises:
        ProblemError: One of the files can't be read.
        ValueError: The track has no privacy rules.
    """
    return [one.make(case) for one in RECORD_CHECKS]


def failures(checks: Sequence[Check]) -> list[Problem]:
    """Return the problems that failed checks amount to."""
    return [_problem(check) for check in checks if check.status is CheckStatus.FAILED]


def _problem(check: Check) -> Problem:
    code = CHECKS[check.id].code
    if code is None:
        raise ValueError(f"check {check.id} flags and never fails")
    return Problem.of(
        code,
        where=f"check {check.id}, {check.where}" if check.where else f"check {check.id}",
        expected=check.expected,
        found=check.found,
    )


def catalog() -> str:
    """Return the table as Markdown: docs/checks.md is this text."""
    rows = [
        f"| `{check.id}` | {check.name} | {check.meaning} | {check.limit} | "
        f"{f'`{check.code}`' if check.code else 'flagged'} |"
        for check in CHECKS.values()
    ]
    return "\n".join(
        [
            "# Checks",
            "",
            "Generated by `make docs` from the checks in `evaluator/records/` and",
            "`evaluator/communication/plausibility.py`. *record* checks test whether a training record is consistent "
            "with itself",
            "and with the run's other files, *team* checks compare it with the team's other runs, and *log* checks "
            "test whether a",
            "communication log is plausible. A failed check rejects the run with the code in the last column; "
            "reviewers look at",
            "flagged checks. “No power” means that the check found nothing and, with this run's numbers, could",
            "not have found anything relevant, so it is not evidence.",
            "",
            "| check | name | what passing means | not covered | otherwise |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            "## What no check catches",
            "",
            "The tests forge each of these lies, with full knowledge of the checks, and no check detects them. A "
            "higher",
            "[trust level](trust-levels.md) can:",
            "",
            "| lie | detected by |",
            "| --- | --- |",
            *(f"| {lie} | {shown} |" for lie, shown in UNCAUGHT.items()),
            "",
            "If the noise checks have no power, wrong or reused noise can also pass, hidden behind updates.",
            "",
            "No check compares a checkpoint with those of other runs;",
            "[operations.md](operations.md#near-copies) describes how organizers learn of near copies, and the limits.",
            "",
        ]
    )
