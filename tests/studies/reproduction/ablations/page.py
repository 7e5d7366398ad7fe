"""docs/ablations.md: three tables beside the paper's, and whether its claims hold. Nothing in it is set by hand."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import mean

from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.ablations.claims import CLAIMS, EPOCH_CLAIMS, ROUND_CLAIMS, STAGE_CLAIMS
from tests.studies.reproduction.ablations.rows import (
    A5,
    CLIENTS,
    COUNTS,
    EPOCH_ROWS,
    EPOCHS,
    ROUND_ROWS,
    ROUNDS,
    STAGED_RUNS,
    STAGES,
    Stage,
)
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import Row
from tests.studies.reproduction.verdicts import (
    Outcomes,
    by_row,
    claims_table,
    makers_of,
    seeds_of,
    spread,
    summary,
)


def page(results: Results) -> str:
    """Return the page in Markdown."""
    outcomes = by_row(results.outcomes)
    return fill(
        Path(__file__).with_name("page.md"),
        seeds=seeds_of(results),
        made_with=makers_of(results),
        summary=summary(CLAIMS, outcomes),
        epochs=_epochs(outcomes),
        rounds=_rounds(outcomes),
        stages=_stages(outcomes),
        epoch_claims=claims_table(EPOCH_CLAIMS, outcomes),
        round_claims=claims_table(ROUND_CLAIMS, outcomes),
        stage_claims=claims_table(STAGE_CLAIMS, outcomes),
    )


def _both(head: Sequence[object], rows: Sequence[Row], outcomes: Outcomes) -> list[str]:
    """Return a line of our ANLS, and one of the paper's."""
    ours = (spread([outcome.anls for outcome in outcomes[row.name]]) for row in rows)
    printed = (f"{row.published.share:.4f}" if row.published else "–" for row in rows)
    return [table_row(*head, "here", *ours), table_row(*head, "paper", *printed)]


def _epochs(outcomes: Outcomes) -> list[str]:
    return [
        table_row("epochs", "source", *(f"client {client}" for client in CLIENTS)),
        table_row("--:", "---", *["--:"] * len(CLIENTS)),
        *chain.from_iterable(
            _both([epochs], [EPOCH_ROWS[epochs, client] for client in CLIENTS], outcomes) for epochs in EPOCHS
        ),
    ]


def _rounds(outcomes: Outcomes) -> list[str]:
    return [
        table_row("clients a round", "epochs", "source", *(f"rounds: {rounds}" for rounds in ROUNDS)),
        table_row("--:", "--:", "---", *["--:"] * len(ROUNDS)),
        *chain.from_iterable(
            _both([clients, epochs], [ROUND_ROWS[clients, epochs, rounds] for rounds in ROUNDS], outcomes)
            for clients, epochs in COUNTS
        ),
    ]


def _stages(outcomes: Outcomes) -> list[str]:
    printed = [A5.number(run.printed, "communication") for run in STAGED_RUNS]
    whole = [outcomes[run.row(2, Stage.AGGREGATION).name] for run in STAGED_RUNS]
    first = [outcomes[run.row(1, Stage.DOWNLOAD).name] for run in STAGED_RUNS]
    sent = [mean(outcome.bytes_total for outcome in of_run) for of_run in whole]
    sent_first = [mean(outcome.bytes_total for outcome in of_run) for of_run in first]
    return [
        table_row("round", "stage", "source", *(run.title for run in STAGED_RUNS)),
        table_row("--:", "---", "---", *["--:"] * len(STAGED_RUNS)),
        *chain.from_iterable(
            _both([number, stage], [run.row(number, stage) for run in STAGED_RUNS], outcomes)
            for number, stage in STAGES
        ),
        table_row("", "MB sent", "here", *(f"{total / 1e6:.3f}" for total in sent)),
        table_row("", "MB sent", "paper", *(f"{total.value:g}" for total in printed)),
        table_row(
            "",
            "MB sent, the first download replaced by a seed",
            "here",
            *(f"{(total - download) / 1e6:.3f}" for total, download in zip(sent, sent_first, strict=True)),
        ),
    ]
