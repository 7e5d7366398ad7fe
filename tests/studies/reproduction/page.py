"""docs/reproduction.md: all outcomes, and whether they are in the papers' order. Nothing in it is set by hand."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.claims import PRIVACY_CLAIMS, TRACK_1_CLAIMS, TRACK_2_CLAIMS, VARIANT_CLAIMS
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import ROWS, Outcome
from tests.studies.reproduction.verdicts import (
    Outcomes,
    by_row,
    claims_table,
    makers_of,
    seeds_of,
    spread,
    summary,
    table_of,
)

ROOT = Path(__file__).parents[3]
AS_PUBLISHED = [*PRIVACY_CLAIMS, *TRACK_1_CLAIMS, *TRACK_2_CLAIMS]


def page(results: Results) -> str:
    """Return the page in Markdown."""
    outcomes = by_row(results.outcomes)
    return fill(
        Path(__file__).with_name("page.md"),
        seeds=seeds_of(results),
        **results.task.model_dump(include={"providers", "clients", "test_forms"}),
        made_with=makers_of(results),
        base_accuracy=results.base.accuracy,
        steps=results.base.settings.steps,
        table=_table(outcomes),
        differences=_differences(),
        summary=summary(AS_PUBLISHED, outcomes),
        claims=claims_table(AS_PUBLISHED, outcomes),
        variants_summary=summary(VARIANT_CLAIMS, outcomes),
        variants=claims_table(VARIANT_CLAIMS, outcomes),
    )


def _table(by_name: Outcomes) -> list[str]:
    lines = [
        "| row | ε | ANLS | accuracy | MB sent | published ANLS | where |",
        "| --- | --: | --: | --: | --: | --: | --- |",
    ]
    for row in ROWS:
        outcomes = by_name[row.name]
        line = table_row(
            row.title,
            _epsilon(outcomes),
            spread([outcome.anls for outcome in outcomes]),
            spread([outcome.accuracy for outcome in outcomes]),
            f"{mean(outcome.bytes_total for outcome in outcomes) / 1e6:.2f}" if outcomes else "–",
            f"{row.published.share:.4f}" if row.published else "–",
            table_of(row.published) if row.published else "–",
        )
        lines.append(line)
    return lines


def _epsilon(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "–"
    epsilon = outcomes[0].epsilon
    return "∞" if epsilon is None else f"{epsilon:.3f}"


def _differences() -> list[str]:
    """One line for each config, of its first row: rows that differ in ε alone share it."""
    first = {row.config: row for row in reversed(ROWS)}
    return [
        table_row(
            f"[{row.config}.yaml](../{row.config_file.relative_to(ROOT)})",
            row.title.split(", ε =")[0],
            row.differs,
        )
        for row in reversed(first.values())
    ]
