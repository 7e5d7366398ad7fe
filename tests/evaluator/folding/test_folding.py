"""Counted bytes: an honest run folds to the bit, and each cheat is rejected with its code."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from evaluator.communication.codecs import CODECS
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding.folding import start_vector
from evaluator.folding.lines import BuiltIn
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import SERVER, ArtifactKind, CheckStatus, CommunicationResult, Step
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.canonical_lines import canonical
from evaluator.records.server_steps import AdamStep, MomentumStep, ServerStep, SumStep
from tests.evaluator.folding.made_runs import ADAPTED, RULES, MadeRun, Sent, make_base, make_run

Files = dict[ArtifactKind, Path]
FORMAT, LOG = ErrorCode.TRANSCRIPT_FORMAT, ErrorCode.TRANSCRIPT_LOG
MESSAGE, FOLD = ErrorCode.TRANSCRIPT_MESSAGE, ErrorCode.TRANSCRIPT_FOLD


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def run(base: Path) -> MadeRun:
    return make_run(base)


def counted(files: Files, base: Path) -> CommunicationResult:
    inputs = StepInputs(files, RULES, reference=base)
    result = run_step(Step.COMMUNICATION, inputs, lambda _done, _total: None).result
    assert isinstance(result, CommunicationResult)
    return result


def rejection(files: Files, base: Path) -> ErrorCode:
    with pytest.raises(ProblemError) as caught:
        counted(files, base)
    return ErrorCode(caught.value.problem.code)


RULES_OF_SERVERS: list[ServerStep] = [
    SumStep(learning_rate=1.0),
    SumStep(learning_rate=0.3),
    MomentumStep(learning_rate=0.7, momentum=0.9),
    AdamStep(learning_rate=0.01, beta_1=0.9, beta_2=0.99, epsilon=1e-3, bias_correction=False),
]


@pytest.mark.parametrize("codec", ["float32", "nf4"])
@pytest.mark.parametrize("server", RULES_OF_SERVERS, ids=lambda rule: f"{rule.rule}-{rule.learning_rate}")
def test_an_honest_run_is_counted(base: Path, tmp_path: Path, codec: str, server: ServerStep) -> None:
    made = make_run(base, codec, server)
    result = counted(made.write(tmp_path / "run"), base)
    assert (result.counting, result.rounds_folded, result.not_counted_because) == ("counted", 3, "")
    assert result.bytes_sent == sum(len(sent.payload) for round_ in made.rounds for sent in round_)
    guesses = {"log.message_sizes", "log.least_bytes"}
    assert {check.status for check in result.checks if check.id in guesses} == {CheckStatus.NOT_APPLICABLE}


def test_a_run_without_its_messages_is_declared_and_says_why(run: MadeRun, tmp_path: Path) -> None:
    files = run.write(tmp_path / "run")
    del files[ArtifactKind.MESSAGES]
    result = counted(files, run.base)
    assert (result.counting, result.rounds_folded) == ("declared", 0)
    assert "aren't attached" in result.not_counted_because


def test_a_run_without_a_transcript_is_declared(run: MadeRun, tmp_path: Path) -> None:
    files = run.write(tmp_path / "run")
    del files[ArtifactKind.TRANSCRIPT]
    result = counted(files, run.base)
    assert (result.counting, result.not_counted_because) == ("declared", "")


def test_a_model_that_nobody_trained_is_counted_as_nothing(base: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("federated_round,sender,receiver,amount_of_bytes\n")
    files = {ArtifactKind.COMMUNICATION_LOG: log, ArtifactKind.CHECKPOINT: base / "model.safetensors"}
    result = counted(files, base)
    assert (result.counting, result.bytes_total) == ("counted", 0)


def uploads(round_: list[Sent]) -> list[Sent]:
    return [sent for sent in round_ if sent.sender != SERVER]


def downloads(round_: list[Sent]) -> list[Sent]:
    return [sent for sent in round_ if sent.sender == SERVER]


def dropped(run: MadeRun) -> MadeRun:
    """One upload is left out, with its download."""
    first, *others = run.rounds
    client = uploads(first)[0].sender
    return run.with_rounds([sent for sent in first if client not in (sent.sender, sent.receiver)], *others)


def repeated(run: MadeRun) -> MadeRun:
    first, *others = run.rounds
    return run.with_rounds([*first, first[-1]], *others)


def swapped_rounds(run: MadeRun) -> MadeRun:
    """Uploads of two rounds change places."""
    first, second, third = run.rounds
    one, other = uploads(first)[0], uploads(second)[0]
    exchanged = {one.payload: other.payload, other.payload: one.payload}
    return run.with_rounds(
        *(
            [replace(s, payload=exchanged.get(s.payload, s.payload)) for s in round_]
            for round_ in (first, second)
        ),
        third,
    )


def changed(run: MadeRun, change: Callable[[bytes], bytes]) -> MadeRun:
    """The first upload is another one."""
    first, *others = run.rounds
    upload = uploads(first)[0]
    return run.with_rounds(
        [replace(s, payload=change(s.payload)) if s == upload else s for s in first], *others
    )


def shortened(run: MadeRun) -> MadeRun:
    return changed(run, lambda payload: payload[:-4])


def padded(run: MadeRun) -> MadeRun:
    """A message carries more than a vector."""
    return changed(run, lambda payload: payload + b"more")


def flipped(run: MadeRun) -> MadeRun:
    return changed(run, lambda payload: bytes([payload[0] ^ 1]) + payload[1:])


def without_content(run: MadeRun) -> MadeRun:
    """Clients of the second round are sent nothing, so that downloads cost nothing."""
    first, second, third = run.rounds
    return run.with_rounds(
        first, [replace(s, payload=b"") if s.sender == SERVER else s for s in second], third
    )


def without_downloads(run: MadeRun) -> MadeRun:
    return run.with_rounds(*(uploads(round_) for round_ in run.rounds))


def another_model_sent(run: MadeRun) -> MadeRun:
    """A client of the second round is sent something else than the model: the start."""
    first, second, third = run.rounds
    receiver, model = downloads(second)[0].receiver, downloads(first)[0].payload
    return run.with_rounds(
        first, [replace(s, payload=model) if s.receiver == receiver else s for s in second], third
    )


def two_rounds_as_one(run: MadeRun) -> MadeRun:
    first, second, third = run.rounds
    return run.with_rounds([*first, *second], third)


def answers_unasked(run: MadeRun) -> MadeRun:
    """A client that was sent nothing adds an upload."""
    first, *others = run.rounds
    return run.with_rounds([*first, Sent(3, SERVER, uploads(first)[0].payload)], *others)


def from_the_server_to_itself(run: MadeRun) -> MadeRun:
    return replace(run, line=run.line.model_copy(update={"server": SumStep(learning_rate=0.5)}))


def wrong_codec(run: MadeRun) -> MadeRun:
    return replace(run, line=run.line.model_copy(update={"codec": BuiltIn(name="nf4")}))


def another_start(run: MadeRun) -> MadeRun:
    return replace(run, line=run.line.model_copy(update={"start": "seed 2"}))


def another_scale(run: MadeRun) -> MadeRun:
    return replace(run, line=run.line.model_copy(update={"lora_scale": 3.0}))


def another_base(run: MadeRun) -> MadeRun:
    return replace(run, line=run.line.model_copy(update={"base_sha256": "0" * 64}))


def better_weights(run: MadeRun) -> MadeRun:
    """The checkpoint is not what the messages lead to."""
    weights = run.weights.copy()
    weights[-1] = np.nextafter(weights[-1], np.float32(9))
    return replace(run, weights=weights)


@pytest.mark.parametrize(
    "cheat",
    [
        dropped,
        repeated,
        swapped_rounds,
        shortened,
        padded,
        flipped,
        without_content,
        without_downloads,
        another_model_sent,
        two_rounds_as_one,
        answers_unasked,
        from_the_server_to_itself,
        wrong_codec,
        another_start,
        another_scale,
        another_base,
        better_weights,
    ],
)
def test_a_cheat_that_recomputes_every_hash_does_not_fold(
    run: MadeRun, tmp_path: Path, cheat: Callable[[MadeRun], MadeRun]
) -> None:
    assert rejection(cheat(run).write(tmp_path / "run"), run.base) is FOLD


def in_lines(change: Callable[[list[dict[str, object]]], object]) -> Callable[[Files], None]:
    """Return a change of the index, which stays canonical."""

    def apply(files: Files) -> None:
        path = files[ArtifactKind.TRANSCRIPT]
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        change(lines)
        path.write_bytes(b"".join(canonical(line) + b"\n" for line in lines))

    return apply


def in_file(kind: ArtifactKind, change: Callable[[bytes], bytes]) -> Callable[[Files], None]:
    def apply(files: Files) -> None:
        files[kind].write_bytes(change(files[kind].read_bytes()))

    return apply


def frozen_tensor(files: Files) -> None:
    """Something is trained that the index doesn't name."""
    tensors = load_file(files[ArtifactKind.CHECKPOINT])
    tensors["frozen"][0, 0] += 1
    save_file(tensors, files[ArtifactKind.CHECKPOINT])
    in_lines(lambda lines: lines[-1].update(checkpoint_sha256=sha256_of(files[ArtifactKind.CHECKPOINT])))(
        files
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (in_file(ArtifactKind.MESSAGES, lambda content: content[:-1] + bytes([content[-1] ^ 1])), MESSAGE),
        (in_file(ArtifactKind.MESSAGES, lambda content: content + b"\0"), MESSAGE),
        (in_file(ArtifactKind.MESSAGES, lambda content: content[:-1]), MESSAGE),
        (in_file(ArtifactKind.COMMUNICATION_LOG, lambda content: content[: content[:-1].rindex(b"\n") + 1]), LOG),
        (in_file(ArtifactKind.COMMUNICATION_LOG, lambda content: content.replace(b"5024", b"502", 1)), LOG),
        (in_file(ArtifactKind.TRANSCRIPT, lambda content: content.replace(b'{"', b'{ "', 1)), FORMAT),
        (in_file(ArtifactKind.TRANSCRIPT, lambda content: content + b"\n"), FORMAT),
        (in_lines(lambda lines: lines[0].update(note="01101")), FORMAT),
        (in_lines(lambda lines: lines[0].update(start="a word")), FORMAT),
        (in_lines(lambda lines: lines[0].update(server={"rule": "other", "description": "a word"})), FORMAT),
        (in_lines(lambda lines: lines[0]["trainable"][2].update(name="x")), FORMAT),  # type: ignore[index]
        (in_lines(lambda lines: lines.pop(2)), FORMAT),
        (in_lines(lambda lines: lines.pop()), FORMAT),
        (in_lines(lambda lines: lines[-1].update(messages_root="0" * 64)), FORMAT),
        (in_lines(lambda lines: lines[2].update(state_sha256="0" * 64)), FOLD),
        (in_lines(lambda lines: lines[-1].update(checkpoint_sha256="0" * 64)), FOLD),
        (frozen_tensor, FOLD),
    ],
    ids=[
        "a bit of a message", "a byte after the messages", "a byte less", "a row less in the log",
        "a smaller size in the log", "a space in the index", "a line more", "a free field", "a free start",
        "a free server", "a tensor that isn't there", "a round less", "no end", "another root", "another state",
        "another checkpoint", "a tensor beside the trained ones",
    ],
)  # fmt: skip
def test_a_file_that_was_changed_afterwards_is_rejected(
    run: MadeRun, tmp_path: Path, change: Callable[[Files], None], code: ErrorCode
) -> None:
    files = run.write(tmp_path / "run")
    change(files)
    assert rejection(files, run.base) is code


def test_the_file_that_another_hash_was_expected_of_is_named(run: MadeRun, tmp_path: Path) -> None:
    files = run.write(tmp_path / "run")
    in_lines(lambda lines: lines[-1].update(checkpoint_sha256="0" * 64))(files)
    with pytest.raises(ProblemError) as caught:
        counted(files, run.base)
    problem = caught.value.problem
    assert problem.where == "transcript.jsonl, end line, checkpoint_sha256"
    assert problem.expected == f"{sha256_of(files[ArtifactKind.CHECKPOINT])}, the SHA-256 of the checkpoint"
    assert problem.found == "0" * 64


def with_adapters(run: MadeRun, down: NDArray[np.float32], up: NDArray[np.float32]) -> MadeRun:
    """Return a run of one round and one client, which ends with these adapters, (2, 12) and (16, 2)."""
    goal = np.concatenate([down.ravel(), up.ravel(), run.weights[56:]]).astype(np.float32)
    start = start_vector(run.line, run.base / "model.safetensors")
    upload = Sent(0, SERVER, CODECS["float32"].encode(goal - start))
    (first, *_), weights = run.rounds, start + (goal - start)
    download = replace(downloads(first)[0], receiver=0)
    return replace(run, rounds=[[download, upload]], weights=weights, vectors=[[start]])


@pytest.mark.parametrize("columns", [12, 1], ids=["in all of it", "in all but one column"])
def test_adapters_that_cancel_hide_no_other_matrix(run: MadeRun, tmp_path: Path, columns: int) -> None:
    """Rounding of products that cancel would explain any matrix, also beside a column whose product is long."""
    down, up = (
        np.full((2, 12), 2.0**24, np.float32),
        np.tile(np.array([2.0**24, -(2.0**24)], np.float32), (16, 1)),
    )
    if columns == 1:
        down[1, 0] = 0
    files = with_adapters(run, down, up).write(tmp_path / "run")
    tensors = load_file(files[ArtifactKind.CHECKPOINT])
    tensors[ADAPTED][:, 1:] += 1
    save_file(tensors, files[ArtifactKind.CHECKPOINT])
    in_lines(lambda lines: lines[-1].update(checkpoint_sha256=sha256_of(files[ArtifactKind.CHECKPOINT])))(
        files
    )
    with pytest.raises(ProblemError, match="cancel"):
        counted(files, run.base)


@pytest.mark.parametrize("rows", [16, 0], ids=["trained", "untrained"])
def test_adapters_of_any_size_are_merged(run: MadeRun, tmp_path: Path, rows: int) -> None:
    random = np.random.default_rng(5)
    down = random.standard_normal((2, 12), dtype=np.float32) * np.float32(1e3)
    up = np.zeros((16, 2), np.float32)
    up[:rows] = random.standard_normal((rows, 2), dtype=np.float32) * np.float32(1e-6)
    files = with_adapters(run, down, up).write(tmp_path / "run")
    assert counted(files, run.base).counting == "counted"


def test_an_index_that_is_too_large_is_not_read(run: MadeRun, tmp_path: Path) -> None:
    files = run.write(tmp_path / "run")
    with files[ArtifactKind.TRANSCRIPT].open("ab") as file:
        file.truncate(5 * 1024**2)
    assert rejection(files, run.base) is FORMAT


def test_the_order_of_uploads_is_the_one_thing_that_messages_alone_do_not_fix(
    base: Path, tmp_path: Path
) -> None:
    """docs/bytes.md lists it: the order of K uploads chooses among at most K! sums that differ by rounding."""
    made = make_run(base, rounds=1, chosen=3)
    accepted = set()
    for number, order in enumerate(permutations(uploads(made.rounds[0]))):
        down = downloads(made.rounds[0])
        reordered = made.with_rounds([*down, *order])
        total = np.zeros_like(made.weights)
        for sent in order:
            total += np.frombuffer(sent.payload, "<f4")
        first = make_run(base, rounds=0).weights
        weights = first + total / np.float32(3)
        files = replace(reordered, weights=weights).write(tmp_path / f"run{number}")
        assert counted(files, base).counting == "counted"
        accepted.add(weights.tobytes())
    # The first two commute.
    assert 1 < len(accepted) <= 3
