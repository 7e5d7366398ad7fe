"""docs/reproduction.md: all outcomes, and whether they are in the papers' order. Nothing in it is set by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from starter_kit.reproduction.claims import CLAIMS, Claim
from starter_kit.reproduction.experiment import Results
from starter_kit.reproduction.rows import ROWS, Outcome

TEMPLATE = Path(__file__).with_name("page.md")
ROOT = Path(__file__).parents[2]

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
        made_with="; ".join(sorted({outcome.made_with for outcome in results.outcomes})),
        base_accuracy=results.base.accuracy,
        steps=results.base.settings.steps,
        table="\n".join(_table(by_row)),
        differences="\n".join(_differences()),
        summary="\n".join(_summary(by_row)),
        claims="\n".join(_claims(by_row)),
    )


HOLDS = "holds in every seed"


def verdict(margins: Sequence[float]) -> str:
    """In words, of the margins of all seeds: positive ones hold."""
    if min(margins) > 0:
        return HOLDS
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
            row.published or "–",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.4f} ± {stdev(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def _differences() -> list[str]:
    """One line for each config, of its first row: rows that differ in ε alone share it."""
    first = {row.config: row for row in reversed(ROWS)}
    return [
        f"| [{row.config}.yaml](../{row.config_file.relative_to(ROOT)}) "
        f"| {row.title.split(', ε =')[0]} | {row.differs} |"
        for row in reversed(first.values())
    ]


def _margins(claim: Claim, by_row: Outcomes) -> list[float]:
    pairs = zip(by_row[claim.lower], by_row[claim.upper], strict=True)
    return [claim.margin(lower, upper) for lower, upper in pairs]


def _summary(by_row: Outcomes) -> list[str]:
    """How many claims hold in every seed, and which don't."""
    verdicts = {claim.text: verdict(_margins(claim, by_row)) for claim in CLAIMS}
    missed = {text: said for text, said in verdicts.items() if said != HOLDS}
    lines = [f"Of {len(CLAIMS)} claims, {len(CLAIMS) - len(missed)} hold in every seed."]
    if missed:
        lines += ["", "The others:", "", *(f"- {text}: {said}." for text, said in missed.items())]
    return lines


def _claims(by_row: Outcomes) -> list[str]:
    lines = ["| claim | margin, mean | of single seeds | verdict |", "| --- | --: | --: | --- |"]
    for claim in CLAIMS:
        margins = _margins(claim, by_row)
        singles = f"{_number(min(margins))} to {_number(max(margins))}"
        lines.append(f"| {claim.text} | {_number(mean(margins))} | {singles} | {verdict(margins)} |")
    return lines


def _number(margin: float) -> str:
    """A margin of scores or of bytes, whose sizes can't be mixed up."""
    return f"{margin / 1e6:+.2f} MB" if abs(margin) > 1 else f"{margin:+.4f}"
