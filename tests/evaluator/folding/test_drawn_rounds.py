"""Large runs: the last round and the drawn ones are folded, each from the state that the index commits to."""

from collections.abc import Callable
from dataclasses import replace
from math import comb
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding import opening
from evaluator.folding.lines import (
    BuiltIn,
    TranscriptEnd,
    TranscriptMessage,
    TranscriptRound,
    TranscriptRun,
    messages_root,
)
from evaluator.folding.opening import folded_rounds, missed
from evaluator.folding.reading import MAX_MESSAGES_BYTES, Transcript, read_transcript
from evaluator.messages.jobs import DRAWN_ROUNDS, SERVER, ArtifactKind, CommunicationResult, Step
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.lines import TrainableTensor
from evaluator.records.round_keys import replayed_rounds
from evaluator.records.server_steps import AdamStep, MomentumStep, ServerStep, SumStep
from tests.evaluator.folding.made_runs import (
    CLIENTS,
    RULES,
    MadeRun,
    hashed,
    make_base,
    make_run,
    write_lines,
)

pytestmark = pytest.mark.usefixtures("few_drawn")

ROUNDS = 9
CHALLENGE = "5a" * 32
DRAWN = replayed_rounds(CHALLENGE, ROUNDS, DRAWN_ROUNDS)
MESSAGE, FOLD = ErrorCode.TRANSCRIPT_MESSAGE, ErrorCode.TRANSCRIPT_FOLD

Files = dict[ArtifactKind, Path]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def run(base: Path) -> MadeRun:
    return make_run(base, rounds=ROUNDS)


def opened(run: MadeRun, folder: Path, challenge: str = CHALLENGE) -> Files:
    """Return the files of a run whose messages are those of the rounds that the challenge draws."""
    files = run.write(folder)
    run.write_opened(files, replayed_rounds(challenge, len(run.rounds), DRAWN_ROUNDS))
    return files


def counted(files: Files, base: Path, challenge: str = CHALLENGE) -> CommunicationResult:
    inputs = StepInputs(files, RULES, reference=base, challenge=challenge)
    result = run_step(Step.COMMUNICATION, inputs, lambda _done, _total: None).result
    assert isinstance(result, CommunicationResult)
    return result


def rejection(files: Files, base: Path, challenge: str = CHALLENGE) -> ErrorCode:
    with pytest.raises(ProblemError) as caught:
        counted(files, base, challenge)
    return ErrorCode(caught.value.problem.code)


@pytest.mark.parametrize(
    "server",
    [
        SumStep(learning_rate=1.0),
        MomentumStep(learning_rate=0.7, momentum=0.9),
        AdamStep(learning_rate=0.01, beta_1=0.9, beta_2=0.99, epsilon=1e-3, bias_correction=False),
    ],
    ids=lambda rule: rule.rule,
)
@pytest.mark.parametrize("codec", ["float32", "nf4"])
def test_a_large_run_is_counted_by_the_rounds_that_were_drawn(
    base: Path, tmp_path: Path, codec: str, server: ServerStep
) -> None:
    made = make_run(base, codec, server, rounds=ROUNDS)
    files = opened(made, tmp_path / "run")
    result = counted(files, base)
    assert (result.counting, result.rounds_folded, result.rounds) == ("counted", 1 + DRAWN_ROUNDS, ROUNDS)
    assert result.bytes_sent == sum(len(sent.payload) for round_ in made.rounds for sent in round_)


@pytest.mark.parametrize("number", range(1, ROUNDS))
def test_a_model_that_appears_after_a_round_is_found_if_and_only_if_that_round_is_drawn(
    base: Path, tmp_path: Path, number: int
) -> None:
    """What docs/bytes.md says of a lie in one round: the round after it begins from the model as it is claimed."""
    cheat = make_run(base, rounds=ROUNDS, smuggled_after=number)
    files = opened(cheat, tmp_path / "run")
    if number in DRAWN:
        assert rejection(files, base) is FOLD
    else:
        assert counted(files, base).counting == "counted"


def test_a_model_that_appears_after_the_last_round_is_always_found(base: Path, tmp_path: Path) -> None:
    cheat = make_run(base, rounds=ROUNDS, smuggled_after=ROUNDS)
    for challenge in ("00" * 32, "01" * 32):
        files = opened(cheat, tmp_path / challenge, challenge)
        assert rejection(files, base, challenge) is FOLD


def in_messages(change: Callable[[bytes], bytes]) -> Callable[[MadeRun, Files], None]:
    def apply(_run: MadeRun, files: Files) -> None:
        path = files[ArtifactKind.MESSAGES]
        path.write_bytes(change(path.read_bytes()))

    return apply


def of_rounds(numbers: list[int]) -> Callable[[MadeRun, Files], None]:
    return lambda run, files: run.write_opened(files, numbers)


def another_state(run: MadeRun, files: Files) -> None:
    """A drawn round is to begin from the model of another round."""
    vectors = list(run.vectors)
    vectors[DRAWN[-2] - 1] = run.vectors[0]
    replace(run, vectors=vectors).write_opened(files, DRAWN)


def another_rounds_messages(run: MadeRun, files: Files) -> None:
    rounds = list(run.rounds)
    rounds[DRAWN[-2] - 1] = rounds[next(n for n in range(1, ROUNDS) if n not in DRAWN) - 1]
    replace(run, rounds=rounds).write_opened(files, DRAWN)


def all_messages(run: MadeRun, files: Files) -> None:
    of_rounds(list(range(1, ROUNDS + 1)))(run, files)


OTHERS = replayed_rounds("77" * 32, ROUNDS, DRAWN_ROUNDS)


@pytest.mark.parametrize(
    "cheat",
    [
        another_state,
        another_rounds_messages,
        of_rounds(OTHERS),
        of_rounds(DRAWN[1:]),
        all_messages,
        in_messages(lambda content: bytes([content[0] ^ 1]) + content[1:]),
        in_messages(lambda content: content[:-1] + bytes([content[-1] ^ 1])),
        in_messages(lambda content: content[:-1]),
        in_messages(lambda content: content + b"\0"),
    ],
    ids=[
        "the state before another round", "messages of another round", "other rounds", "a round less", "all rounds",
        "a bit of a state", "a bit of a message", "a byte less", "a byte more",
    ],
)  # fmt: skip
def test_what_does_not_open_the_drawn_rounds_is_rejected(
    run: MadeRun, tmp_path: Path, cheat: Callable[[MadeRun, Files], None]
) -> None:
    assert OTHERS != DRAWN
    files = opened(run, tmp_path / "run")
    cheat(run, files)
    assert rejection(files, run.base) is MESSAGE


def test_an_opening_for_another_challenge_is_rejected(run: MadeRun, tmp_path: Path) -> None:
    """As after a change of the index, for which the site draws again."""
    files = opened(run, tmp_path / "run")
    assert rejection(files, run.base, "77" * 32) is MESSAGE


def test_who_sends_what_is_checked_in_rounds_that_were_not_drawn(run: MadeRun, tmp_path: Path) -> None:
    number = next(number for number in range(2, ROUNDS) if number not in DRAWN)
    rounds, unasked = list(run.rounds), (number + 1) % CLIENTS
    assert all(sent.receiver != unasked for sent in run.rounds[number - 1])
    rounds[number - 1] = [*run.rounds[number - 1], replace(run.rounds[0][-1], sender=unasked)]
    assert rejection(opened(run.with_rounds(*rounds), tmp_path / "run"), run.base) is FOLD


def test_without_the_opening_a_run_is_declared_and_says_why(run: MadeRun, tmp_path: Path) -> None:
    files = opened(run, tmp_path / "run")
    del files[ArtifactKind.MESSAGES]
    result = counted(files, run.base)
    assert (result.counting, result.rounds_folded) == ("declared", 0)
    assert "aren't attached" in result.not_counted_because


def test_rounds_without_messages_do_not_dilute_the_draw(run: MadeRun, tmp_path: Path) -> None:
    """They cost nothing, so that a thousand of them would hide one false round."""
    files = run.with_rounds(*run.rounds[:-1], [], run.rounds[-1]).write(tmp_path / "run")
    result = counted(files, run.base)
    assert result.counting == "declared"
    assert "round 9 has none" in result.not_counted_because


def test_a_draw_that_would_miss_a_false_round_nearly_always_counts_nothing(
    base: Path, tmp_path: Path
) -> None:
    """Ten thousand rounds of a byte would hide one false round as well as rounds without messages."""
    found = [counted(opened(make_run(base, rounds=n), tmp_path / str(n)), base) for n in (31, 32)]
    assert [result.counting for result in found] == ["counted", "declared"]
    assert found[1].not_counted_because == (
        "Only 4 of 32 rounds fit into the file of messages, so that a false round would be missed with a probability "
        "of 90.3%; at most 90% is accepted."
    )


def claiming(run: MadeRun, files: Files, size_bytes: int) -> Transcript:
    """Return the index of a run whose first download only says that it is so long."""
    transcript = read_transcript(files[ArtifactKind.TRANSCRIPT])
    first, *others = transcript.rounds
    claimed = [
        one.model_copy(update={"size_bytes": size_bytes}) if one.sender == SERVER else one
        for one in first.messages
    ]
    rounds = [first.model_copy(update={"messages": claimed}), *others]
    return Transcript(transcript.run, rounds, transcript.end)


@pytest.mark.parametrize("claimed", [10**3, 10**9, 13 * 10**9])
def test_a_first_download_that_costs_nothing_changes_nothing_in_what_is_folded(
    run: MadeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int
) -> None:
    """Otherwise a claim of many bytes would turn a small run into a large one, and keep its first round closed."""
    files = run.write(tmp_path / "run")
    honest = read_transcript(files[ArtifactKind.TRANSCRIPT])
    cheat = claiming(run, files, claimed)
    assert cheat.distinct_bytes == honest.distinct_bytes
    monkeypatch.setattr(opening, "MAX_MESSAGES_BYTES", claimed + 2 * honest.distinct_bytes // 3)
    opens_first = 0
    for number in range(200):
        numbers = [line.round for line in folded_rounds(cheat, f"{number:064x}", 1).rounds]
        opens_first += 1 in numbers
        assert 2 < len(numbers) < ROUNDS
    assert opens_first > 40


def test_a_draw_keeps_no_room_for_a_first_download_longer_than_a_model(run: MadeRun, tmp_path: Path) -> None:
    first, *others = run.rounds
    longer = [replace(one, payload=one.payload * 2) if one.sender == SERVER else one for one in first]
    files = run.with_rounds(longer, *others).write(tmp_path / "run")
    result = counted(files, run.base)
    assert result.counting == "declared"
    assert "The first downloads have" in result.not_counted_because


def test_how_probable_it_is_that_no_false_round_is_folded() -> None:
    """The figures of docs/bytes.md, by counting all draws."""
    assert missed(30, 3) == pytest.approx(26 / 29)
    assert missed(30, 3, false=10) == pytest.approx(comb(19, 3) / comb(29, 3))
    assert missed(4, 3) == 0.0
    draws = [replayed_rounds(f"{number:064x}", 6, 2) for number in range(3000)]
    assert sum(2 not in drawn for drawn in draws) / len(draws) == pytest.approx(missed(6, 2), abs=0.03)


def test_the_index_of_a_run_of_36_gigabytes_is_small_and_says_how_large_an_opening_is(tmp_path: Path) -> None:
    """Thirty rounds with ten clients that send 120 MB each, of an adapter-free model in NF4."""
    rounds, clients, size, numel = 30, 10, 120_000_000, 213_000_000
    run = TranscriptRun(
        base_sha256="0" * 64,
        clients=clients,
        codec=BuiltIn(name="nf4"),
        lora_scale=None,
        server=SumStep(learning_rate=1.0),
        start="seed 1",
        trainable=[TrainableTensor(name="w", shape=[numel])],
    )
    lines = [
        TranscriptRound(
            round=number,
            messages=[
                TranscriptMessage(sender=sender, receiver=receiver, size_bytes=size, sha256=hashed(content))
                for client in range(clients)
                for sender, receiver, content in (
                    (SERVER, client, b"%d" % number),
                    (client, SERVER, b"%d %d" % (number, client)),
                )
            ],
            state_sha256="0" * 64,
        )
        for number in range(1, rounds + 1)
    ]
    leaves = [message.leaf for line in lines for message in line.messages]
    end = TranscriptEnd(rounds=rounds, messages_root=messages_root(leaves), checkpoint_sha256="0" * 64)
    write_lines(tmp_path / "index", [run, *lines, end])
    assert (tmp_path / "index").stat().st_size < 10**6
    transcript = Transcript(run, lines, end)
    assert transcript.distinct_bytes == 329 * size
    folded = folded_rounds(transcript, CHALLENGE, DRAWN_ROUNDS)
    assert len(folded.rounds) == 4
    assert folded.size_bytes == 44 * size + 4 * 4 * numel < MAX_MESSAGES_BYTES


def test_as_many_rounds_are_drawn_as_there_is_room_for(
    run: MadeRun, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = run.write(tmp_path / "run")
    transcript = read_transcript(files[ArtifactKind.TRANSCRIPT])
    few = folded_rounds(transcript, CHALLENGE, DRAWN_ROUNDS)
    assert len(few.rounds) == 1 + DRAWN_ROUNDS
    monkeypatch.setattr(opening, "MAX_MESSAGES_BYTES", 2 * few.size_bytes)
    more = folded_rounds(transcript, CHALLENGE, DRAWN_ROUNDS)
    assert few.size_bytes < more.size_bytes <= 2 * few.size_bytes
    assert {line.round for line in few.rounds} < {line.round for line in more.rounds}
    run.write_opened(files, [line.round for line in more.rounds])
    assert counted(files, base).rounds_folded == len(more.rounds) < ROUNDS


def test_all_rounds_of_a_large_run_are_folded_if_there_is_room_for_them(
    run: MadeRun, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "MAX_MESSAGES_BYTES", MAX_MESSAGES_BYTES)
    files = run.write(tmp_path / "run")
    run.write_opened(files, list(range(1, ROUNDS + 1)))
    assert counted(files, base).rounds_folded == ROUNDS
