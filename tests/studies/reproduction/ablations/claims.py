"""What the competition's paper says of its ablations, or shows in them, as statements about two rows.

A claim has the paper's own two numbers; the paper has one run of each.
"""

from itertools import pairwise

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
    StagedRun,
)
from tests.studies.reproduction.rows import Row
from tests.studies.reproduction.verdicts import Claim, Printed, below

COST = 0.01  # of quantization, in ANLS
FACTOR = 7.1  # by which it reduces messages


def _last(run: StagedRun) -> Row:
    return run.row(2, Stage.AGGREGATION)


def _printed(row: Row) -> Printed:
    assert row.published
    return Printed.of(row.published)


def _printed_last(run: StagedRun) -> Printed:
    """What the table prints of the last model: with a single client, that of the last stage that has a number."""
    *_, last = (found for stage in STAGES if (found := run.row(*stage).published))
    return Printed.of(last, A5.number(run.printed, "communication"))


def _below(lower: Row, upper: Row, sign: str = "<") -> Claim:
    return below(lower, upper, (_printed(lower), _printed(upper)), sign)


def _cheap(exact: StagedRun, quantized: StagedRun) -> Claim:
    return Claim(
        f"{quantized.title} is less than {COST} below {exact.title} in ANLS",
        _last(exact).name,
        _last(quantized).name,
        (_printed_last(exact), _printed_last(quantized)),
        lambda exact, quantized: COST - (exact.anls - quantized.anls),
    )


def _small(exact: StagedRun, quantized: StagedRun) -> Claim:
    return Claim(
        f"{quantized.title} sends more than {FACTOR} times fewer bytes than {exact.title}",
        _last(exact).name,
        _last(quantized).name,
        (_printed_last(exact), _printed_last(quantized)),
        lambda exact, quantized: exact.bytes_total / quantized.bytes_total - FACTOR,
    )


_exact_1, _exact_2, _quantized_1, _quantized_2 = STAGED_RUNS
_PAIRS = [(_exact_1, _quantized_1), (_exact_2, _quantized_2)]

EPOCH_CLAIMS = [
    _below(EPOCH_ROWS[fewer, client], EPOCH_ROWS[more, client])
    for fewer, more in pairwise(EPOCHS)
    for client in CLIENTS
]

ROUND_CLAIMS = [
    _below(ROUND_ROWS[2, epochs, rounds], ROUND_ROWS[1, epochs, 2 * rounds], "≤")
    for epochs in sorted({epochs for _, epochs in COUNTS})
    for rounds in ROUNDS[:-1]
]

STAGE_CLAIMS = [
    *(_cheap(*pair) for pair in _PAIRS),
    *(_small(*pair) for pair in _PAIRS),
    # The first mean of two models is worse than they are, which the second recovers.
    *(
        _below(run.row(1, Stage.AGGREGATION), run.row(1, Stage.FINETUNING))
        for run in (_exact_2, _quantized_2)
    ),
    *(
        _below(run.row(2, Stage.FINETUNING), run.row(2, Stage.AGGREGATION))
        for run in (_exact_2, _quantized_2)
    ),
    *(
        below(_last(one), _last(two), (_printed_last(one), _printed_last(two)))
        for one, two in ((_exact_1, _exact_2), (_quantized_1, _quantized_2))
    ),
]

CLAIMS = [*EPOCH_CLAIMS, *ROUND_CLAIMS, *STAGE_CLAIMS]
