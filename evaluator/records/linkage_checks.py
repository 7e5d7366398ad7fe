"""The check that the noised sums, by the server's declared rule, lead from the base weights to the checkpoint.

On the blocks that the annex opens, every round is replayed: from wₜ₋₁ and uₜ, and the rule's own state from the rounds
before, to wₜ, up to the float32 rounding that `replay` derives. w₀ is read from the base weights, and the check
`record.models` compares the roots of both ends with base weights and checkpoint as a whole. Adapters are in neither:
the annex has theirs, which
must have the record's roots, begin without an effect, and give the checkpoint when they are merged (`merging`).

The texts say nothing of a value in the annex: what is found is only where the first difference is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evaluator.checkpoints.weight_vector import WeightVector, weight_vector
from evaluator.errors import ErrorCode
from evaluator.messages.checks import Difference, NamedCheck
from evaluator.messages.jobs import Check
from evaluator.records.annex import Annex, Openings
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.certificate import (
    BLOCK,
    Floats,
    block_count,
    drawn_openings,
    is_opening_of,
    root_of_pieces,
)
from evaluator.records.file_checks import last_weights
from evaluator.records.lines import RunLine, TrainingRecord
from evaluator.records.merging import badly_merged
from evaluator.records.replay import Doubles, Replay, next_weights, replay_of

# The most that roundings may hide, if they all point one way, over the length of all steps, if these are noise.
MOST_SLACK = 0.1


@record_check(
    NamedCheck(
        "record.linkage",
        name="linkage",
        meaning="On blocks of the vectors, drawn after all vectors were committed to, the declared server update (with "
        "its learning rate, normalizer and other parameters) leads from the base weights through every noised sum to "
        "the checkpoint, up to float32 rounding (for a sum, 8·2⁻²³ of the summed magnitudes). Adapters, which the "
        "annex contains in full, start without effect and give the checkpoint once merged. Update rules that can't be "
        "replayed, tensors that can't be followed, and steps so small that rounding could hide a tenth of them or more "
        "are flagged.",
        limit="Sums invented to produce the wanted model, such as the wanted change plus noise that is canceled over "
        "the rounds (see `record.noise_size` and `record.noise_reuse`); whether the sums contain clipped updates, or "
        "come from any training at all; noise known to someone; a change to a share s of all blocks, which goes "
        "undetected with a probability of (1 − s)ⁿ if n blocks are opened, with only one attempt (`record.challenge`); "
        "and initial adapter values chosen by looking at private data.",
        code=ErrorCode.RECORD_MODELS,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
    RunFile.ANNEX,
)
def linkage(this: NamedCheck, case: Case) -> Check:
    record, annex = case.record, case.annex
    drawn = drawn_openings(annex.challenge, len(record.rounds), record.run.numel)
    if annex.openings.keys() != set(drawn) or _wrong(annex.openings, record, "update_root"):
        return this.not_applicable("the noised sums in the annex aren't those selected by the challenge")
    blocks = sorted({block for _, block in drawn})
    return this.judge(
        _differences(case, blocks),
        otherwise=f"{len(record.rounds)} rounds by the rule {record.run.server.rule}, on {len(blocks)} of "
        f"{block_count(record.run.numel)} blocks",
    )


def _differences(case: Case, blocks: Sequence[int]) -> Iterator[Difference]:
    record, annex = case.record, case.annex
    base, checkpoint = case.files[RunFile.BASE], case.files[RunFile.CHECKPOINT]
    run = record.run
    if annex.weights.keys() != annex.openings.keys():
        yield Difference("the weight blocks selected by the challenge", "others", "annex")
        return
    if where := _wrong(annex.weights, record, "weights_root"):
        yield Difference("values with the record's weights_root", "others", where)
        return
    start, end = adapter_tensors(run, annex.adapters.start), adapter_tensors(run, annex.adapters.end)
    if start is None or end is None:
        yield Difference(
            "the coordinates of all adapters, at the start and at the end", "others", "annex, adapters"
        )
        return
    first = weight_vector(base, run.shapes, start)
    last = weight_vector(checkpoint, run.shapes, end)
    if run.adapters and first is not None and last is not None:
        yield from _adapter_differences(record, first, last)
        yield from badly_merged(run, start, end, base, checkpoint, case.changes)
    yield from _unbound(run, first, last)
    if blocks and (rule := replay_of(run.server, run.normalizer)) is not None:
        yield from _replayed(record, annex, blocks, first, rule)


def _wrong(openings: Openings, record: TrainingRecord, root: str) -> str:
    """Return the place of the first opening that isn't of the vector with this `root` of its round; or nothing."""
    wrong = (
        f"annex, round {number}, block {block}"
        for (number, block), opening in openings.items()
        if not is_opening_of(opening, getattr(record.rounds[number - 1], root), record.run.numel)
    )
    return next(wrong, "")


def adapter_tensors(run: RunLine, values: Floats) -> Mapping[str, Floats] | None:
    """Return the coordinates of each adapter by its name; None where they aren't as many as the adapters have."""
    names = {tensor.name for pair in run.adapters for tensor in (pair.down, pair.up)}
    tensors = [tensor for tensor in run.trainable if tensor.name in names]
    if len(values) != sum(tensor.numel for tensor in tensors):
        return None
    bounds = np.cumsum([tensor.numel for tensor in tensors])[:-1]
    return {tensor.name: part for tensor, part in zip(tensors, np.split(values, bounds), strict=False)}


def _adapter_differences(
    record: TrainingRecord, first: WeightVector, last: WeightVector
) -> Iterator[Difference]:
    """Yield where the vectors of both ends, with the annex's adapters, aren't those of the record."""
    ends = {
        "line 1": (first, record.run.weights_root),
        last_weights(record): (last, record.last_weights_root),
    }
    for line, (vector, root) in ends.items():
        if root_of_pieces(vector.pieces()) != root:
            yield Difference(
                "the root of the annex's adapters and the other trained tensors",
                "another",
                f"{line}, weights_root",
            )


def _unbound(run: RunLine, first: WeightVector | None, last: WeightVector | None) -> Iterator[Difference]:
    """Yield why the rounds are tied to the base weights or the checkpoint by nothing, which may be honest."""
    if run.server.rule == "other":
        yield Difference(
            "an update rule that can be replayed; otherwise nothing shows that the sums led to the model",
            run.server.rule,
            "line 1, server",
            rejects=False,
        )
    if first is None or last is None:
        yield Difference(
            "tensors of the base weights, and adapters that line 1 says how to merge",
            "other tensors, so nothing shows that the rounds led to the checkpoint",
            "line 1, trainable",
            rejects=False,
        )


def _replayed(
    record: TrainingRecord,
    annex: Annex,
    blocks: Sequence[int],
    first: WeightVector | None,
    rule: Replay,
) -> Iterator[Difference]:
    """Yield the first round and block in which the weights aren't what the rule makes of the noised sum.

    Yield as well, if that is so, that all roundings together could hide a drift beside which the steps are small.
    """
    slack = squares = 0.0
    before = None if first is None else _opened([_block(first, block) for block in blocks])
    for number in range(1, len(record.rounds) + 1):
        places = [(number, block) for block in blocks]
        step = rule.step(_opened([annex.openings[place].values for place in places]))
        after = _opened([annex.weights[place].values for place in places])
        if before is not None:
            due = next_weights(before, step)
            off = np.flatnonzero(~(np.abs(after - due.value) <= due.error))
            if len(off):
                yield Difference(
                    f"weights to which the rule {record.run.server.rule} leads from the round before and the noised "
                    "sum, up to float32 rounding",
                    "others",
                    f"round {number}, block {blocks[off[0] // BLOCK]}",
                )
                return
            slack += float(np.linalg.norm(due.error))
            squares += float(step.value @ step.value)
        before = after
    if squares and slack > MOST_SLACK * math.sqrt(squares):
        yield Difference(
            f"steps beside which float32 rounding in {len(record.rounds)} rounds is small, so that it hides no drift",
            "smaller steps",
            "line 1, server",
            rejects=False,
        )


def _block(vector: WeightVector, block: int) -> Floats:
    return vector.read(block * BLOCK, (block + 1) * BLOCK)


def _opened(blocks: Sequence[Floats]) -> Doubles:
    return np.concatenate(blocks).astype(np.float64)
