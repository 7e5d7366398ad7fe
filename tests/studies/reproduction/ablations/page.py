"""docs/ablations.md: three tables beside the paper's, and whether its claims hold. Nothing in it is set by hand."""

from pathlib import Path
from statistics import mean

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
from tests.studies.reproduction.verdicts import Outcomes, by_row, claims_table, spread, summary

TEMPLATE = Path(__file__).with_name("page.md")


def page(results: Results) -> str:
    """Return the page in Markdown."""
    outcomes = by_row(results.outcomes)
    return TEMPLATE.read_text(encoding="utf-8").format(
        seeds=len({outcome.seed for outcome in results.outcomes}),
        made_with="; ".join(sorted({outcome.made_with for outcome in results.outcomes})),
        summary="\n".join(summary(CLAIMS, outcomes)),
        epochs="\n".join(_epochs(outcomes)),
        rounds="\n".join(_rounds(outcomes)),
        stages="\n".join(_stages(outcomes)),
        epoch_claims="\n".join(claims_table(EPOCH_CLAIMS, outcomes)),
        round_claims="\n".join(claims_table(ROUND_CLAIMS, outcomes)),
        stage_claims="\n".join(claims_table(STAGE_CLAIMS, outcomes)),
    )


def _line(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _score(row: Row, outcomes: Outcomes) -> str:
    """Return our ANLS, with the paper's in brackets."""
    return f"{spread([outcome.anls for outcome in outcomes[row.name]])} ({row.published or '–'})"


def _epochs(outcomes: Outcomes) -> list[str]:
    return [
        _line("epochs", *(f"client {client}" for client in CLIENTS)),
        _line(*["--:"] * (1 + len(CLIENTS))),
        *(
            _line(epochs, *(_score(EPOCH_ROWS[epochs, client], outcomes) for client in CLIENTS))
            for epochs in EPOCHS
        ),
    ]


def _rounds(outcomes: Outcomes) -> list[str]:
    return [
        _line("clients a round", "epochs", *(f"rounds: {rounds}" for rounds in ROUNDS)),
        _line(*["--:"] * (2 + len(ROUNDS))),
        *(
            _line(
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
        _line("round", "stage", *(run.title for run in STAGED_RUNS)),
        _line("--:", "---", *["--:"] * len(STAGED_RUNS)),
        *(
            _line(number, stage, *(_score(run.row(number, stage), outcomes) for run in STAGED_RUNS))
            for number, stage in STAGES
        ),
        _line("", "MB sent", *(f"{total / 1e6:.3f}" for total in sent)),
        _line(
            "",
            "MB sent, the first download replaced by a seed",
            *(f"{(total - download) / 1e6:.3f}" for total, download in zip(sent, sent_first, strict=True)),
        ),
    ]
