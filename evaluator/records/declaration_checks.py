"""Checks of what a record declares, by its first line alone."""

from evaluator.errors import ErrorCode
from evaluator.mechanisms.units import PrivacyUnit
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records.case import Case, record_check


@record_check(
    NamedCheck(
        "record.track_rules",
        name="track rules",
        meaning="The record's privacy unit, adjacency, δ and number of clients match the track's.",
        limit="Whether the trainer really protects this unit; see the privacy proof.",
        code=ErrorCode.RECORD_RULES,
        findings=Findings.PUBLIC,
    )
)
def track_rules(this: NamedCheck, case: Case) -> Check:
    run = case.record.run
    pairs = {
        "unit": (PrivacyUnit.PROVIDER, run.unit),
        "adjacency": (case.privacy.adjacency, run.adjacency),
        "delta": (case.privacy.delta, run.delta),
        "clients": (case.rules.clients, run.clients),
    }
    differences = [
        Difference(expected, found, f"line 1, {name}")
        for name, (expected, found) in pairs.items()
        if expected != found
    ]
    return this.judge(differences, otherwise=f"{run.unit}, {run.adjacency}, δ = {run.delta:g}")


@record_check(
    NamedCheck(
        "record.other_uses",
        name="other uses of private data",
        meaning="According to the record, no settings, rounds or checkpoints were chosen based on private data. ε "
        "would not account for such choices.",
        limit="Undeclared uses.",
        findings=Findings.PUBLIC,
    )
)
def other_uses(this: NamedCheck, case: Case) -> Check:
    run = case.record.run
    uses = {
        "validation_on_private_data": run.validation_on_private_data,
        "tuning.private_runs": run.tuning.private_runs,
    }
    differences = [
        Difference("none: ε doesn't cover such uses", found, f"line 1, {name}", rejects=False)
        for name, found in uses.items()
        if found
    ]
    return this.judge(differences, otherwise="none declared")
