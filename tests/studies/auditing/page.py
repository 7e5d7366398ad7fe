"""docs/auditing.md: its text is page.md, its figures are simulated; a claim is made only where the figures allow it."""

from collections.abc import Sequence
from pathlib import Path

from evaluator.auditing.audit import ALPHA
from evaluator.auditing.escrow import GUESS_SHARE, LEAST_CANARIES
from tests.studies.auditing.simulation import EPSILONS, TEAMS, Fault, Rounds, Simulated
from tests.studies.markdown import fill, table_row

# Of 100 faulty runs: from so many on, the page says that the audit finds the fault.
FOUND = 95


def page(simulated: Sequence[Simulated]) -> str:
    """Return the page in Markdown."""
    honest = [found for found in simulated if found.fault is Fault.NONE]
    return fill(
        Path(__file__).with_name("page.md"),
        alpha=f"{ALPHA:g}",
        teams=TEAMS,
        least=LEAST_CANARIES,
        share=f"{GUESS_SHARE:.0%}",
        honest_runs=f"{sum(found.runs for found in honest):,}",
        honest_refuted=sum(found.refuted for found in honest),
        worst=max(found.refuted for found in honest),
        runs=f"{honest[0].runs:,}",
        faulty_runs=max(found.runs for found in simulated if found.fault is not Fault.NONE),
        table=map(_row, simulated),
        claims=_claims(simulated),
    )


def _row(found: Simulated) -> str:
    return table_row(
        found.rounds.name,
        found.epsilon,
        f"{found.canaries:,}",
        found.fault,
        f"{found.refuted} of {found.runs:,}",
        f"{found.refuted_among_teams} of {found.runs:,}",
    )


def _claims(simulated: Sequence[Simulated]) -> list[str]:
    """Return a line for each sampling: from how many canaries on a run without clip and noise is found."""
    lines = []
    for rounds in dict.fromkeys(found.rounds for found in simulated):
        parts = [f"ε = {epsilon}: {_enough(simulated, rounds, epsilon)}" for epsilon in EPSILONS]
        lines.append(f"- {rounds.name}: {'; '.join(parts)}.")
    return lines


def _enough(simulated: Sequence[Simulated], rounds: Rounds, epsilon: int) -> str:
    sizes = [
        found.canaries
        for found in simulated
        if (found.rounds, found.epsilon, found.fault) == (rounds, epsilon, Fault.NO_CLIP_NO_NOISE)
        and found.refuted_among_teams >= FOUND * found.runs / 100
    ]
    return f"from {min(sizes):,} canaries on" if sizes else "not at any of these sizes"
