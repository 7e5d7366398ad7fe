"""Checks that a record is that of the run's other files: base weights, checkpoint and annex."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.errors import ErrorCode
from evaluator.messages.checks import Difference, Findings, NamedCheck
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import Check
from evaluator.records.case import Case, RunFile, record_check
from evaluator.records.certificate import root_of_pieces
from evaluator.records.lines import TrainingRecord


@record_check(
    NamedCheck(
        "record.models",
        name="model chain",
        meaning="The record commits to all weights before the first round and after every round. The first weights "
        "match the base weights, and the last weights match the checkpoint.",
        limit="The steps in between, and adapters, which are in neither the base weights nor the checkpoint. For both, "
        "see `record.linkage`.",
        code=ErrorCode.RECORD_MODELS,
        findings=Findings.PUBLIC,
    ),
    RunFile.BASE,
    RunFile.CHECKPOINT,
)
def models(this: NamedCheck, case: Case) -> Check:
    record, shapes = case.record, case.record.run.shapes
    first, last = (_root(case.files[file], shapes) for file in (RunFile.BASE, RunFile.CHECKPOINT))
    if first is None or last is None:
        return this.not_applicable(
            "the trainable tensors are in neither the base weights nor the checkpoint; see record.linkage"
        )
    ends = {
        "line 1, weights_root": (first, record.run.weights_root),
        f"{last_weights(record)}, weights_root": (last, record.last_weights_root),
    }
    broken = [
        Difference(expected, found, where) for where, (expected, found) in ends.items() if expected != found
    ]
    return this.judge(
        broken, otherwise=f"{len(record.rounds)} rounds from the base weights to the checkpoint"
    )


def _root(checkpoint: Path, shapes: Mapping[str, Sequence[int]]) -> str | None:
    """Return the root of the trainable tensors, in the order of the record; None where the file has others."""
    vector = weight_vector(checkpoint, shapes)
    return None if vector is None else root_of_pieces(vector.pieces())


def last_weights(record: TrainingRecord) -> str:
    """Return which line has the root of the weights that the run ends with."""
    return f"round {record.rounds[-1].round}" if record.rounds else "line 1"


@record_check(
    NamedCheck(
        "record.checkpoint",
        name="checkpoint file",
        meaning="The record's last line contains the SHA-256 of the submitted checkpoint.",
        limit="How the checkpoint was produced.",
        code=ErrorCode.RECORD_CHECKPOINT,
        findings=Findings.PUBLIC,
    ),
    RunFile.CHECKPOINT,
)
def checkpoint_file(this: NamedCheck, case: Case) -> Check:
    sha256 = sha256_of(case.files[RunFile.CHECKPOINT])
    return this.compare(sha256, case.record.end.checkpoint_sha256, "end line, checkpoint_sha256")


@record_check(
    NamedCheck(
        "record.annex",
        name="annex file",
        meaning="The annex's body, which contains the counts and the adapters, matches the SHA-256 in the record's "
        "last line, and the annex contains the record's run token and number of rounds.",
        limit="Whether the annex's contents are accurate.",
        code=ErrorCode.RECORD_ANNEX,
    ),
    RunFile.ANNEX,
    of_any_annex=True,
)
def annex_file(this: NamedCheck, case: Case) -> Check:
    return this.judge(case.annex_differences, otherwise=case.annex.body_sha256)


@record_check(
    NamedCheck(
        "record.base_weights",
        name="base weights",
        meaning="The record contains the SHA-256 of the track's base weights.",
        limit="Whether training started from these weights; see `record.models`.",
        code=ErrorCode.RECORD_MODELS,
        findings=Findings.PUBLIC,
    ),
    RunFile.BASE,
)
def base_weights(this: NamedCheck, case: Case) -> Check:
    return this.compare(
        sha256_of(case.files[RunFile.BASE]), case.record.run.base_sha256, "line 1, base_sha256"
    )


@record_check(
    NamedCheck(
        "record.challenge",
        name="challenge",
        meaning="After the record is uploaded, the site draws one random number per run token. The annex shows the "
        "blocks that this number selects. Nobody could know which blocks would be selected before the record "
        "fixed the noised sums and weights, and nobody could try again with another record. In a dry run without "
        "a site, the blocks are derived from the record's own hash, so the record's author could choose them and "
        "the check has no power.",
        limit="A second training run under another token. `team.declared_runs` counts it, and its blocks are just as "
        "unpredictable.",
        code=ErrorCode.RECORD_CHALLENGE,
        findings=Findings.PUBLIC,
    ),
    RunFile.ANNEX,
)
def challenge(this: NamedCheck, case: Case) -> Check:
    # No site was asked on a participant's own disk.
    if case.challenge is not None:
        return this.compare(case.challenge, case.annex.challenge, "annex, challenge")
    if case.annex.challenge == case.record.own_challenge:
        return this.no_power(
            "a dry run: the opened blocks are derived from the record's own hash; after the upload, the site draws "
            "other blocks"
        )
    return this.not_applicable("the annex answers a challenge; only the site can confirm it")


@record_check(
    NamedCheck(
        "record.data",
        name="training data",
        meaning="The hash of the data manifest in the annex is the one that the organizers configured for the track. "
        "The manifest covers every document of every provider and client, with words and questions. If the organizers "
        "configured no hash, nothing is compared.",
        limit="Whether the run used that data, or additional data, since the hash can be copied; and the pixels of the "
        "pages.",
        code=ErrorCode.RECORD_DATA,
        findings=Findings.PUBLIC,
    ),
    RunFile.ANNEX,
)
def training_data(this: NamedCheck, case: Case) -> Check:
    if not (sha256 := case.rules.data_sha256):
        return this.not_applicable("not compared: the track has no data manifest")
    # The hashes are not reported: whoever can guess the data could compare.
    expected = "the data manifest that the organizers configured"
    other = Difference(expected, "another one", "annex, data_sha256")
    return this.judge([other] if case.annex.data_sha256 != sha256 else [], otherwise=expected)
