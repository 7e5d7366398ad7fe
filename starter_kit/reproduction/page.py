"""docs/reproduction.md: all outcomes, and whether they are in the papers' order. Nothing in it is set by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from starter_kit.reproduction.experiment import Results
from starter_kit.reproduction.rows import CLAIMS, ROWS, Outcome

TEMPLATE = Path(__file__).with_name("page.md")

# ANLS × 100 in the papers; the template says of which tables.
PUBLISHED = {
    "zero-shot": "44.58",
    "fl-provider-dp-1": "57.47",
    "fl-provider-dp-4": "61.91",
    "fl-provider-dp-8": "65.81",
    "dp-lora-1": "58.54 (48.32)",
    "dp-lora-4": "61.21 (50.24)",
    "dp-lora-8": "62.25 (51.32)",
    "lora-nf4": "86.73 (88.73)",
    "fedavg": "88.73",
    "centralized": "90.91",
}

Outcomes = Mapping[str, Sequence[Outcome]]  # of each row, by seed


def page(results: Results) -> str:
    """The page in Markdown."""
    by_row = {
        row.name: sorted(
            (outcome for outcome in results.outcomes if outcome.row == row.name),
            key=lambda outcome: outcome.seed,
        )
        for row in ROWS
    }
    return TEMPLATE.read_text(encoding="utf-8").format(
        seeds=len({outcome.seed for outcome in results.outcomes}),
        **results.task.model_dump(include={"providers", "clients", "test_forms"}),
        **results.model_dump(include={"kit_version", "torch_version", "machine"}),
        base_accuracy=results.base.accuracy,
        steps=results.base.settings.steps,
        table="\n".join(_table(by_row)),
        claims="\n".join(_claims(by_row)),
    )


def verdict(margins: Sequence[float]) -> str:
    """In words, of the margins of all seeds: positive ones hold."""
    if min(margins) > 0:
        return "holds in every seed"
    if mean(margins) > 0:
        return f"holds on average, in {sum(margin > 0 for margin in margins)} of {len(margins)} seeds"
    return "**doesn't hold**"


def _table(by_row: Outcomes) -> list[str]:
    lines = [
        "| row | ε | ANLS | accuracy | MB sent | in the papers |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for row in ROWS:
        outcomes = by_row[row.name]
        epsilon = outcomes[0].epsilon
        cells = [
            row.title,
            "∞" if epsilon is None else f"{epsilon:.3f}",
            _spread([outcome.anls for outcome in outcomes]),
            _spread([outcome.accuracy for outcome in outcomes]),
            f"{mean(outcome.bytes_total for outcome in outcomes) / 1e6:.2f}",
            PUBLISHED[row.name],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.4f} ± {stdev(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def _claims(by_row: Outcomes) -> list[str]:
    lines = ["| claim | margin, mean | of single seeds | verdict |", "| --- | --: | --: | --- |"]
    for claim in CLAIMS:
        pairs = zip(by_row[claim.lower], by_row[claim.upper], strict=True)
        margins = [claim.margin(lower, upper) for lower, upper in pairs]
        singles = f"{_number(min(margins))} to {_number(max(margins))}"
        lines.append(f"| {claim.text} | {_number(mean(margins))} | {singles} | {verdict(margins)} |")
    return lines


def _number(margin: float) -> str:
    """A margin of scores or of bytes, whose sizes can't be mixed up."""
    return f"{margin / 1e6:+.2f} MB" if abs(margin) > 1 else f"{margin:+.4f}"
