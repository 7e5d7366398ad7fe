"""docs/fewest-bytes.md: what counted bytes are needed for. Its numbers are not set by hand."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.claims import WITHIN
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.fewest.rows import CANDIDATES, CHANGES, CONFIG, LADDER, REFERENCE
from tests.studies.reproduction.rows import Outcome, Row
from tests.studies.reproduction.verdicts import Outcomes, by_row, makers_of, seeds_of, spread
from tests.studies.study import DOCS

REPRODUCTION = DOCS / "reproduction.json"
BASELINE, FIRST, SEEDS = "fedavg", "lora-nf4", "fedkseed"
HEAD = ["| row | counted bytes | ANLS | seeds that reach the threshold |", "| --- | --: | --: | --: |"]


def page(results: Results) -> str:
    """Return the page in Markdown."""
    outcomes = by_row(results.outcomes)
    reproduced = by_row(Results.model_validate_json(REPRODUCTION.read_bytes()).outcomes)
    thresholds = {outcome.seed: (1 - WITHIN) * outcome.anls for outcome in reproduced[BASELINE]}
    fewest = fewest_that_reach(outcomes, thresholds)
    return fill(
        Path(__file__).with_name("page.md"),
        seeds=seeds_of(results),
        within=f"{1 - WITHIN:.0%}",
        threshold=f"{mean(thresholds.values()):.4f}",
        config=f"[{CONFIG}.yaml](../tests/studies/reproduction/configs/{CONFIG}.yaml)",
        reference_bytes=f"{_bytes(outcomes[REFERENCE.name]):,.0f}",
        first_bytes=f"{_bytes(reproduced[FIRST]):,.0f}",
        fewest=fewest.title,
        fewest_bytes=f"{_bytes(outcomes[fewest.name]):,.0f}",
        factor=f"{_bytes(reproduced[FIRST]) / _bytes(outcomes[fewest.name]):,.0f}",
        ladder=[
            *HEAD,
            _line("LoRA, NF4 of the reproduction", reproduced[FIRST], thresholds),
            *(_line(row.title, outcomes[row.name], thresholds) for row in LADDER),
        ],
        changes=[
            *HEAD,
            *(_line(row.title, outcomes[row.name], thresholds) for row in (*CANDIDATES, *CHANGES)),
            _line("seeds: FedKSeed of the reproduction", reproduced[SEEDS], thresholds),
        ],
        made_with=makers_of(results),
    )


def reaching(outcomes: Sequence[Outcome], thresholds: dict[int, float]) -> int:
    """Return in how many seeds a row reaches that seed's threshold."""
    return sum(outcome.anls >= thresholds[outcome.seed] for outcome in outcomes)


def fewest_that_reach(outcomes: Outcomes, thresholds: dict[int, float]) -> Row:
    """Return the row with the fewest bytes of those with all seeds that reach the threshold of each seed."""
    reach = [
        row
        for row in (*LADDER, *CANDIDATES)
        if reaching(outcomes[row.name], thresholds) == len(outcomes[row.name])
    ]
    return min(reach, key=lambda row: _bytes(outcomes[row.name]))


def _bytes(outcomes: Sequence[Outcome]) -> float:
    return mean(outcome.bytes_total for outcome in outcomes)


def _line(title: str, outcomes: Sequence[Outcome], thresholds: dict[int, float]) -> str:
    return table_row(
        title,
        f"{_bytes(outcomes):,.0f}",
        spread([outcome.anls for outcome in outcomes]),
        f"{reaching(outcomes, thresholds)} of {len(outcomes)}",
    )
