"""docs/reproduction.md: all outcomes, and whether they are in the papers' order. Nothing in it is set by hand."""

from pathlib import Path
from statistics import mean

from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.claims import CLAIMS
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import ROWS
from tests.studies.reproduction.verdicts import (
    Outcomes,
    by_row,
    claims_table,
    makers_of,
    seeds_of,
    spread,
    summary,
)

ROOT = Path(__file__).parents[3]


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
        summary=summary(CLAIMS, outcomes),
        claims=claims_table(CLAIMS, outcomes),
    )


def _table(by_name: Outcomes) -> list[str]:
    lines = [
        "| row | ε | ANLS | accuracy | MB sent | in the papers |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for row in ROWS:
        outcomes = by_name[row.name]
        epsilon = outcomes[0].epsilon
        line = table_row(
            row.title,
            "∞" if epsilon is None else f"{epsilon:.3f}",
            spread([outcome.anls for outcome in outcomes]),
            spread([outcome.accuracy for outcome in outcomes]),
            f"{mean(outcome.bytes_total for outcome in outcomes) / 1e6:.2f}",
            row.published or "–",
        )
        lines.append(line)
    return lines


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
