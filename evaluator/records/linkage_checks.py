"""The check that the noised sums, by the server's declared rule, lead from the base weights to the checkpoint.

On the common blocks of the annex all rounds are replayed, from the base weights to the checkpoint, up to the float32
rounding that `replay` derives. On its fresh blocks a single round is, from wₜ₋₁ and uₜ to wₜ, where the rule keeps
nothing from earlier rounds. The check `record.models` compares the roots of both ends with base weights and checkpoint
as a whole. Adapters are in neither: the annex has theirs, which must have the record's roots, begin without an effect,
and give the checkpoint when they are merged (`merging`).

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
    DrawnBlocks,
    Floats,
    drawn_blocks,
    is_opening_of,
    root_of_pieces,
    root_of_zeros,
    would_have_passed,
)
from evaluator.records.file_checks import last_weights
from evaluator.records.lines import RunLine, TrainingRecord
from evaluator.records.merging import badly_merged
from evaluator.records.replay import Doubles, Replay, exact, next_weights, replay_of
from evaluator.records.server_steps import SumStep

# The most that roundings may hide, if they all point one way, over the length of all steps, if these are noise.
MOST_SLACK = 0.1


@record_check(
    NamedCheck(
        "record.linkage",
        name="linkage",
        meaning="The check uses blocks of the noised sums and weights, drawn at random after the record committed to "
        "all of these. It starts from the base weights and applies the declared server update (with its learning rate, "
        "normalizer and other parameters) to each noised sum in turn. On the drawn blocks, the result matches the "
        "checkpoint up to float32 rounding (under the rule `sum`: within 8·2⁻²³ of the summed magnitudes). If a round "
        "has neither clients nor noise, its sum is zero. Where the parts of adapters take turns, a round moves only "
        "those whose turn it is. Adapters, which the annex contains in full, start from "
        "values derived from the run token and produce the checkpoint once merged. The check flags update rules that "
        "can't be replayed, trained tensors that neither are in the base weights nor belong to adapters with a "
        "declared merge, and steps so small that rounding could hide a tenth of them or more.",
        limit="Sums invented to produce a desired model, such as the desired change plus noise that later "
        "rounds cancel (see `record.noise_size` and `record.noise_reuse`); whether the sums contain clipped "
        "updates, or come from any training at all; noise known to someone; and a change to a share s of "
        "all blocks, which goes undetected with a probability of (1 − s)ⁿ if n blocks are opened (there is "
        "only one attempt; see `record.challenge`).",
        code=ErrorCode.RECORD_MODELS,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
    RunFile.ANNEX,
)
def linkage(this: NamedCheck, case: Case) -> Check:
    record, annex = case.record, case.annex
    run, rounds = record.run, len(record.rounds)
    drawn = drawn_blocks(annex.challenge, rounds, run.numels)
    if annex.openings.keys() != set(drawn.updates) or _wrong(annex.openings, record, "update_root"):
        return this.not_applicable("the noised sums in the annex aren't those selected by the challenge")
    return this.judge(
        _differences(case, drawn),
        otherwise=f"{rounds} rounds with the update rule {run.server.rule}; "
        f"{would_have_passed(run.numel, rounds)}",
    )


def _differences(case: Case, drawn: DrawnBlocks) -> Iterator[Difference]:
    record, annex = case.record, case.annex
    base, checkpoint = case.files[RunFile.BASE], case.files[RunFile.CHECKPOINT]
    run = record.run
    yield from _silent_rounds(record)
    if annex.weights.keys() != set(drawn.weights):
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
    rule = replay_of(run.server, run.normalizer)
    if rule is not None and first is not None and last is not None:
        yield from _replayed(record, annex, drawn.common, (first, last), rule)
    if rule is not None and isinstance(run.server, SumStep):
        yield from _single_steps(record, annex, drawn, first, rule)


def _silent_rounds(record: TrainingRecord) -> Iterator[Difference]:
    """Yield the first round whose sum isn't zero although nobody added anything to it: neither clients nor noise."""
    silent = (
        line
        for line in record.rounds
        if not line.clients and not record.run.noise_in(line).multiplier_of_sum(line.clients)
    )
    zeros = ""
    for line in silent:
        zeros = zeros or root_of_zeros(record.run.numel)
        if line.update_root != zeros:
            yield Difference(
                "the root of a sum of zeros, as no client took part",
                "another",
                f"round {line.round}, update_root",
            )
            return


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
    names = {tensor.name for adapter in run.adapters for tensor in adapter.tensors.values()}
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
    ends: tuple[WeightVector, WeightVector],
    rule: Replay,
) -> Iterator[Difference]:
    """Yield the first block in which the checkpoint isn't what the rule makes of the base weights and all noised sums.

    Yield as well, if that is so, that all roundings together could hide a drift beside which the steps are small.
    """
    start, end = (_opened([_block(vector, block) for block in blocks]) for vector in ends)
    weights, squares, turns = exact(start), 0.0, record.run.turns
    for number in range(1, len(record.rounds) + 1):
        step = rule.step(_opened([annex.openings[number, block].values for block in blocks]))
        if turns:
            step = step.where(
                np.concatenate([turns.moved(number, block * BLOCK, (block + 1) * BLOCK) for block in blocks])
            )
        weights = weights.plus(step)
        squares += float(step.value @ step.value)
    off = np.flatnonzero(~(np.abs(end - weights.value) <= weights.error))
    if len(off):
        yield Difference(
            f"the weights that the rule {record.run.server.rule} computes from the base weights and all noised sums, "
            "up to float32 rounding",
            "others",
            f"{last_weights(record)}, block {blocks[off[0] // BLOCK]}",
        )
    elif squares and float(np.linalg.norm(weights.error)) > MOST_SLACK * math.sqrt(squares):
        yield Difference(
            f"steps so large that float32 rounding in {len(record.rounds)} rounds can't hide a drift",
            "smaller steps",
            "line 1, server",
            rejects=False,
        )


def _single_steps(
    record: TrainingRecord, annex: Annex, drawn: DrawnBlocks, first: WeightVector | None, rule: Replay
) -> Iterator[Difference]:
    """Yield the first fresh block whose weights aren't what the sum of its round makes of those before."""
    turns = record.run.turns
    for number, blocks in enumerate(drawn.fresh, 1):
        for block in blocks:
            if number > 1:
                before = annex.weights[number - 1, block].values
            elif first is not None:
                before = _block(first, block)
            else:
                continue
            total = annex.openings[number, block].values
            step = rule.step(total.astype(np.float64))
            if turns:
                step = step.where(turns.moved(number, block * BLOCK, (block + 1) * BLOCK))
            due = next_weights(before.astype(np.float64), step)
            after = annex.weights[number, block].values
            if not (np.abs(after - due.value) <= due.error).all():
                yield Difference(
                    f"the weights that the rule {record.run.server.rule} computes from the previous round's weights "
                    "and the noised sum, up to float32 rounding",
                    "others",
                    f"round {number}, block {block}",
                )
                return


def _block(vector: WeightVector, block: int) -> Floats:
    return vector.read(block * BLOCK, (block + 1) * BLOCK)


def _opened(blocks: Sequence[Floats]) -> Doubles:
    return np.concatenate(blocks).astype(np.float64)
