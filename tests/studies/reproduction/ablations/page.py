"""docs/ablations.md: three tables beside the paper's, and whether its claims hold. Nothing in it is set by hand."""

from pathlib import Path
from statistics import mean

from tests.studies.markdown import fill, table_row
from tests.studies.reproduction.ablations.claims import CLAIMS, EPOCH_CLAIMS, ROUND_CLAIMS, STAGE_CLAIMS
from tests.studies.reproduction.ablations.rows import (
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


def _score(row: Row, outcomes: Outcomes) -> str:
    """Return our ANLS, with the paper's in brackets."""
    return f"{spread([outcome.anls for outcome in outcomes[row.name]])} ({row.published or '–'})"


def _epochs(outcomes: Outcomes) -> list[str]:
    return [
        table_row("epochs", *(f"client {client}" for client in CLIENTS)),
        table_row(*["--:"] * (1 + len(CLIENTS))),
        *(
            table_row(epochs, *(_score(EPOCH_ROWS[epochs, client], outcomes) for client in CLIENTS))
            for epochs in EPOCHS
        ),
    ]


def _rounds(outcomes: Outcomes) -> list[str]:
    return [
        table_row("clients a round", "epochs", *(f"rounds: {rounds}" for rounds in ROUNDS)),
        table_row(*["--:"] * (2 + len(ROUNDS))),
        *(
            table_row(
                clients,
                epochs,
                *(_score(ROUND_ROWS[clients, epochs, rounds], outcomes) for rounds in ROUNDS),
            )
            for clients, epochs in COUNTS
        ),
    ]


def _stages(outcomes: Outcomes) -> list[str]:
    whole = [outcomes[run.row(2, Stage.AGGREGATION).name] for run in STAGED_RUNS]
    first = [outcomes[run.row(1, Stage.DOWNLOAD).name] for run in STAGED_RUNS]
    sent = [mean(outcome.bytes_total for outcome in of_run) for of_run in whole]
    sent_first = [mean(outcome.bytes_total for outcome in of_run) for of_run in first]
    return [
        table_row("round", "stage", *(run.title for run in STAGED_RUNS)),
        table_row("--:", "---", *["--:"] * len(STAGED_RUNS)),
        *(
            table_row(number, stage, *(_score(run.row(number, stage), outcomes) for run in STAGED_RUNS))
            for number, stage in STAGES
        ),
        table_row("", "MB sent", *(f"{total / 1e6:.3f}" for total in sent)),
        table_row(
            "",
            "MB sent, the first download replaced by a seed",
            *(f"{(total - download) / 1e6:.3f}" for total, download in zip(sent, sent_first, strict=True)),
        ),
    ]
