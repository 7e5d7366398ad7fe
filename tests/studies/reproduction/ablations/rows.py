"""What is trained for the ablations: grids over the settings of track 1's winner, and the cells of three tables.

Every cell is a row of its own, with its ANLS in the competition's paper. The rows of Tables A3 and A4 are trained runs;
those of Table A5 are the stages of four runs, the columns of that table.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from starter_kit.published import Source, published
from tests.studies.reproduction.rows import Row

CONFIG = "ablations"
ALONE = "method=../ablations/single_client.py"

# Table A3: training at one client alone.
EPOCHS = (1, 2, 4, 8, 16)
CLIENTS = (0, 1, 2, 9)
# Table A4: clients of a round and local epochs, its lines; and rounds, its columns.
COUNTS = ((1, 1), (1, 2), (2, 1), (2, 2))
ROUNDS = (1, 2, 4, 8)

_A3, _A4, A5 = (published().table(Source.COMPETITION, name) for name in ("A3", "A4", "A5"))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


EPOCH_ROWS = {
    (epochs, client): Row(
        f"epochs-{epochs}-client-{client}",
        f"{_counted(epochs, 'epoch')} at client {client}",
        CONFIG,
        (ALONE, f"client={client}", f"local.epochs={epochs}"),
        _A3.number(_counted(epochs, "epoch"), f"client_{client}"),
    )
    for epochs in EPOCHS
    for client in CLIENTS
}

ROUND_ROWS = {
    (clients, epochs, rounds): Row(
        f"clients-{clients}-epochs-{epochs}-rounds-{rounds}",
        f"{_counted(clients, 'client')}, {_counted(epochs, 'epoch')}, {_counted(rounds, 'round')}",
        CONFIG,
        (f"clients_per_round={clients}", f"local.epochs={epochs}", f"rounds={rounds}"),
        _A4.number(f"{_counted(clients, 'client')}, {_counted(epochs, 'epoch')}", f"rounds_{rounds}"),
    )
    for clients, epochs in COUNTS
    for rounds in ROUNDS
}


class Stage(StrEnum):
    """A step of a round, after which Table A5 has the score of the model, or the mean of the clients' models."""

    DOWNLOAD = "download"
    FINETUNING = "fine-tuning"
    UPLOAD = "upload"
    AGGREGATION = "aggregation"


STAGES = [(number, stage) for number in (1, 2) for stage in Stage]


@dataclass(frozen=True)
class StagedRun:
    """A column of Table A5.

    Attributes:
        clients: How many take part in each of the two rounds.
    """

    codec: str
    clients: int

    @property
    def name(self) -> str:
        return f"{self.codec}-clients-{self.clients}"

    @property
    def title(self) -> str:
        return f"{'Full precision' if self.codec == 'float32' else 'NF4'}, {_counted(self.clients, 'client')}"

    @property
    def run(self) -> Row:
        """What is trained."""
        changes = (f"codec={self.codec}", f"clients_per_round={self.clients}", "local.epochs=16", "rounds=2")
        return Row(self.name, self.title, CONFIG, changes)

    @property
    def printed(self) -> str:
        """Its name in the table of the paper."""
        precision = "full precision" if self.codec == "float32" else "quantized"
        return f"{precision}, {_counted(self.clients, 'client')}"

    def row(self, number: int, stage: Stage) -> Row:
        """Return the cell of a stage of round `number`.

        Where the paper's table has no number, the model is that of the stage before.
        """
        column = f"{stage.replace('-', '')}_{number}"
        published = next(
            (one for one in A5.numbers() if (one.row, one.column) == (self.printed, column)), None
        )
        title = f"{self.title}, {stage} {number}"
        return Row(f"{self.name}-{number}-{stage}", title, self.run.config, self.run.changes, published)


STAGED_RUNS = [StagedRun(codec, clients) for codec in ("float32", "nf4") for clients in (1, 2)]

TRAINED_ROWS = [*EPOCH_ROWS.values(), *ROUND_ROWS.values()]
ROWS = [*TRAINED_ROWS, *(run.row(*stage) for run, stage in product(STAGED_RUNS, STAGES))]
