"""What the platform itself knows about a question of the checklist: checks, recorded numbers, run tokens.

It never answers a question. A passed check is evidence with limits, which its text on the page names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.db.models import Count
from pydantic import ValidationError

from evaluator.mechanisms.events import Event, TwoStage
from evaluator.messages.jobs import AccountingResult, CheckStatus, Step
from portal.evaluation.display.results import shown_checks
from portal.evaluation.display.status import RunStatus
from portal.submissions.models import RunToken, Submission
from portal.ui.budgets import IN_ONE_PIECE
from portal.ui.rounding import rounded_up

# The checks that bear on a question, by their ids in `evaluator.records.check_table`.
CHECKS_OF: Mapping[str, tuple[str, ...]] = {
    "unit": ("record.track_rules",),
    "releases": ("record.bytes", "record.tensors", "record.other_uses"),
    "sensitivity": ("record.linkage", "record.whole_change", "record.alignment"),
    "noise": ("record.noise_size", "record.noise_reuse", "record.noise_shape", "record.whole_change"),
    "sampling": ("record.clients", "record.providers"),
    "empty_rounds": ("record.rounds", "record.clients"),
    "composition": ("record.rounds", "record.models"),
    "conversion": ("record.track_rules",),
    "recomputed": ("record.budget",),
    "tuning": ("team.declared_runs", "record.other_uses"),
    "multiple_releases": ("team.declared_runs", "team.joint_epsilon"),
}


@dataclass(frozen=True)
class Evidence:
    """One fact about a run or the team, with the status of the check that it comes from, if it comes from one."""

    text: str
    status: str = ""
    badge: CheckStatus | None = None
    check: str = ""

    @property
    def is_passed(self) -> bool:
        """Whether it is a check that has passed."""
        return self.badge is CheckStatus.PASSED


def evidence_on(submission: Submission, runs: Iterable[RunStatus]) -> dict[str, list[Evidence]]:
    """Return the evidence by item of the checklist, in one query beside those of `runs`."""
    # What is the same in several runs is said once, with the budgets of them all.
    budgets: dict[str, dict[Evidence, list[str]]] = {}
    for status in runs:
        for key, fact in _facts(status):
            budgets.setdefault(key, {}).setdefault(fact, []).append(f"{status.run.budget:g}")
    found = {
        key: [replace(fact, text=f"{IN_ONE_PIECE}{', '.join(of)}: {fact.text}") for fact, of in facts.items()]
        for key, facts in budgets.items()
    }
    own = RunToken.objects.filter(team=submission.team_id, track=submission.track_id)
    tokens = own.aggregate(issued=Count("pk"), used=Count("run"), drawn=Count("challenged_at"))
    if tokens["issued"]:
        text = (
            f"Run tokens of the team in this track: {tokens['issued']} issued, {tokens['used']} used by a run, "
            f"{tokens['drawn'] - tokens['used']} lost."
        )
        for key in ("tuning", "multiple_releases"):
            found.setdefault(key, []).append(Evidence(text))
    return found


def recorded(result: AccountingResult) -> dict[str, list[str]]:
    """Return what the accounting of a record says about the questions, by item."""
    releases = [in_words(event) for event in result.events]
    difference = result.epsilon - result.epsilon_claimed
    return {
        "noise": releases,
        "sampling": releases,
        "composition": [f"{result.rounds} rounds accounted for", *releases],
        "conversion": [f"δ = {result.delta:g}, by {result.accountant}"],
        "recomputed": [
            f"claimed {rounded_up(result.epsilon_claimed)}, recomputed {rounded_up(result.epsilon)}, "
            f"difference {difference:+.2g}"
        ],
        "tuning": [f"{result.tuning_runs} earlier training runs on the private data declared"],
    }


def in_words(event: Event) -> str:
    """Return a release in words: its rounds, rates and noise. The noise is relative to the sensitivity."""
    rounds = f"{event.rounds} round{'' if event.rounds == 1 else 's'}"
    if isinstance(event, TwoStage):
        return f"{rounds}: client rate {event.client_rate:g}, within a client {_parameters(event.within)}"
    return f"{rounds}: {_parameters(event)}"


def _parameters(event: Event) -> str:
    """Return the parameters of a release, all but its rounds, privacy unit and adjacency."""
    values = event.model_dump(exclude={"type", "unit", "adjacency", "rounds"})
    return ", ".join([event.type, *(f"{name} {value:g}" for name, value in values.items())]).replace("_", " ")


def _accounting(status: RunStatus) -> AccountingResult | None:
    result = next((step.result for step in status.steps if step.step is Step.ACCOUNTING), {})
    try:
        return AccountingResult.model_validate(result) if result else None
    except ValidationError:
        # The report of an evaluator of another version: the page has the other evidence.
        return None


def _facts(status: RunStatus) -> Iterable[tuple[str, Evidence]]:
    """Return what is known of one run, without its budget: each fact once, with the item that it bears on."""
    result = _accounting(status)
    stated = recorded(result) if result else {}
    pairs = ((key, Evidence(text)) for key, texts in stated.items() for text in texts)
    return dict.fromkeys([*pairs, *_checked(status)])


def _checked(status: RunStatus) -> Iterable[tuple[str, Evidence]]:
    shown = {check.check.id: check for check in shown_checks(status.run)}
    for key, ids in CHECKS_OF.items():
        for check in (shown[id_] for id_ in ids if id_ in shown):
            found = f": {check.check.found}" if check.check.found else ""
            yield (
                key,
                Evidence(
                    f"{check.check.id} {check.name}{found}",
                    check.status,
                    check.check.status,
                    check.check.id,
                ),
            )
