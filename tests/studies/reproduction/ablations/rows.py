"""What is trained for the ablations: grids over the settings of track 1's winner, and the cells of three tables.

Every cell is a row of its own, with its ANLS in the competition's paper. The rows of Tables A3 and A4 are trained runs;
those of Table A5 are the stages of four runs, the columns of that table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from tests.studies.reproduction.rows import Row

CONFIG = "ablations"
ALONE = "method=../ablations/single_client.py"

# Table A3: training at one client alone.
EPOCHS = (1, 2, 4, 8, 16)
CLIENTS = (0, 1, 2, 9)
# Table A4: clients of a round and local epochs, its lines; and rounds, its columns.
COUNTS = ((1, 1), (1, 2), (2, 1), (2, 2))
ROUNDS = (1, 2, 4, 8)

_PUBLISHED_OF_EPOCHS = {
    1: (".7648", ".7638", ".7577", ".7552"),
    2: (".7893", ".7912", ".7904", ".7797"),
    4: (".8111", ".8108", ".8039", ".8089"),
    8: (".8247", ".8219", ".8231", ".8176"),
    16: (".8337", ".8345", ".8329", ".8307"),
}
_PUBLISHED_OF_ROUNDS = {
    (1, 1): (".7419", ".7875", ".8083", ".8331"),
    (1, 2): (".7719", ".8061", ".8206", ".8382"),
    (2, 1): (".7493", ".7899", ".8232", ".8400"),
    (2, 2): (".7696", ".8083", ".8355", ".8513"),
}


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


EPOCH_ROWS = {
    (epochs, client): Row(
        f"epochs-{epochs}-client-{client}",
        f"{_counted(epochs, 'epoch')} at client {client}",
        CONFIG,
        (ALONE, f"client={client}", f"local.epochs={epochs}"),
        published,
    )
    for epochs in EPOCHS
    for client, published in zip(CLIENTS, _PUBLISHED_OF_EPOCHS[epochs], strict=True)
}

ROUND_ROWS = {
    (clients, epochs, rounds): Row(
        f"clients-{clients}-epochs-{epochs}-rounds-{rounds}",
        f"{_counted(clients, 'client')}, {_counted(epochs, 'epoch')}, {_counted(rounds, 'round')}",
        CONFIG,
        (f"clients_per_round={clients}", f"local.epochs={epochs}", f"rounds={rounds}"),
        published,
    )
    for clients, epochs in COUNTS
    for rounds, published in zip(ROUNDS, _PUBLISHED_OF_ROUNDS[clients, epochs], strict=True)
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
        published: ANLS by stage; empty where the paper's table has none, as the model is that of the stage before.
    """

    codec: str
    clients: int
    published: Sequence[str]

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

    def row(self, number: int, stage: Stage) -> Row:
        """Return the cell of a stage of round `number`."""
        published = dict(zip(STAGES, self.published, strict=True))[number, stage]
        title = f"{self.title}, {stage} {number}"
        return Row(f"{self.name}-{number}-{stage}", title, self.run.config, self.run.changes, published)


STAGED_RUNS = [
    StagedRun("float32", 1, ("", ".8337", "", "", "", ".8467", "", "")),
    StagedRun("float32", 2, ("", ".8341", "", ".8255", "", ".8437", "", ".8520")),
    StagedRun("nf4", 1, ("", ".8337", ".8301", "", "", ".8448", ".8444", "")),
    StagedRun("nf4", 2, ("", ".8341", ".8313", ".8253", ".8253", ".8445", ".8524", ".8518")),
]

TRAINED_ROWS = [*EPOCH_ROWS.values(), *ROUND_ROWS.values()]
ROWS = [*TRAINED_ROWS, *(run.row(*stage) for run, stage in product(STAGED_RUNS, STAGES))]
