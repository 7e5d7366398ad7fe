"""The checks of a training record, each on a run that is as it should be and on one that isn't."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from evaluator.checkpoints.weight_changes import TensorChange
from evaluator.communication.log import LogEntry, write_log
from evaluator.communication.nf4 import dequantize, quantize
from evaluator.errors import ErrorCode
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import FixedSize, Full, Poisson
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from evaluator.messages.jobs import CheckStatus
from evaluator.records.annex import Annex
from evaluator.records.check_table import CHECKS, failures
from evaluator.records.lines import (
    Codec,
    RoundLine,
    RunLine,
    TrainableTensor,
    Tuning,
)
from evaluator.records.tensor_checks import tensor_differences
from tests.evaluator.records.checked import adapter, checks, odd
from tests.evaluator.records.factories import DATA_SHA256, make_record, noise_only, write_weights

TWO_STAGE = Poisson(client_rate=0.5, provider_rate=0.25)
FIXED = FixedSize(clients_per_round=2, providers_per_client=5, fewest_providers=20)


def changing(number: int, **changes: Any) -> Callable[[RoundLine], RoundLine]:
    return lambda line: line.model_copy(update=changes) if line.round == number else line


def with_sampled(**counts: int) -> Callable[[Annex], Annex]:
    """Round 1 of the annex with other counts, by client: `c0=3`."""
    sampled = {int(name[1:]): count for name, count in counts.items()}
    return lambda annex: replace(annex, sampled=[sampled, *annex.sampled[1:]])


@pytest.mark.parametrize(
    "run",
    [
        {},
        {"rounds": 40},
        {"clients": 10, "sampling": TWO_STAGE, "rounds": 30},
        {"clients": 10, "sampling": Poisson(client_rate=0.01, provider_rate=0.25), "rounds": 5},
        {"sampling": Full()},
        {"clients": 10, "sampling": FIXED},
        {"noise": Noise(multiplier=1.1, placement=Placement.CLIENT_FULL)},
        {
            "clients": 4,
            "sampling": Poisson(client_rate=0.3, provider_rate=0.25),
            "rounds": 8,
            "noise": Noise(multiplier=2.0, placement=Placement.CLIENT_FULL),
        },
        {
            "noise": Noise(
                multiplier=1.1,
                placement=Placement.CLIENT_SHARE,
                secure_aggregation="simulated",
            )
        },
    ],
)
def test_an_honest_run_has_nothing_odd(tmp_path: Path, run: dict[str, Any]) -> None:
    found = checks(make_record(tmp_path, **run), clients=run.get("clients", 2))
    assert odd(found) == {}
    assert found.keys() <= CHECKS.keys()


def test_a_run_of_no_rounds_leaves_the_base_weights(tmp_path: Path) -> None:
    base = write_weights(tmp_path / "base.safetensors")
    assert odd(checks(make_record(tmp_path / "same", rounds=0, base=base, checkpoint=base))) == {}
    other = write_weights(tmp_path / "other.safetensors", seed=2)
    assert odd(checks(make_record(tmp_path / "other", rounds=0, checkpoint=other))) == {
        "record.models": CheckStatus.FAILED,
        "record.linkage": CheckStatus.FAILED,
        "record.tensors": CheckStatus.FAILED,
    }


# More blocks than are opened.
LONG = [TrainableTensor(name="encoder.weight", shape=[300, 400])]
REJECTED: list[tuple[str, dict[str, Any], str]] = [
    ("record.rounds", {"change_round": changing(2, round=3)}, "line 3"),
    ("record.rounds", {"end": {"rounds": 3}}, "end line, rounds"),
    ("record.bytes", {"change_round": changing(1, bytes_up=19271)}, "round 1, bytes_up"),
    ("record.bytes", {"change_round": changing(1, bytes_down=19700)}, "round 1, bytes_down"),
    ("record.bytes", {"codec": Codec(name="int8", bits_per_parameter=8.0)}, "round 1, bytes_down"),
    ("record.bytes", {"end": {"bytes_up": 1}}, "end line, bytes_up"),
    ("record.clients", {"change_round": changing(2, clients=1)}, "round 2, clients"),
    ("record.providers", {"change_annex": with_sampled(c0=21, c1=5)}, "annex, round 1"),
    ("record.providers", {"change_annex": with_sampled(c0=5)}, "annex, round 1"),
    ("record.providers", {"change_annex": with_sampled(c0=5, c7=5)}, "annex, round 1"),
    (
        "record.providers",
        {"change_annex": lambda annex: replace(annex, providers_per_client={0: 20})},
        "annex, providers_per_client",
    ),
    ("record.providers", {"sampling": Full(), "change_annex": with_sampled(c0=20, c1=19)}, "annex, client 1"),
    (
        "record.providers",
        {"rounds": 30, "change_annex": lambda annex: replace(annex, sampled=[{0: 9, 1: 5}] * 30)},
        "annex, client 0",
    ),
    ("record.noise_size", {"change_annex": lambda annex: replace(annex, openings={})}, "annex"),
    (
        "record.noise_size",
        {"change_annex": lambda annex: replace(annex, challenge="f" * 64), "trainable": LONG},
        "annex",
    ),
    ("record.checkpoint", {"end": {"checkpoint_sha256": "f" * 64}}, "end line, checkpoint_sha256"),
    ("record.annex", {"end": {"annex_body_sha256": "f" * 64}}, "end line, annex_body_sha256"),
    ("record.annex", {"change_annex": lambda annex: replace(annex, run_token=None)}, "annex, run_token"),
    (
        "record.annex",
        {"change_annex": lambda annex: replace(annex, sampled=annex.sampled[:1])},
        "annex, rounds",
    ),
    ("record.base_weights", {"base_sha256": "f" * 64}, "line 1, base_sha256"),
    ("record.track_rules", {"delta": 1e-4}, "line 1, delta"),
    ("record.track_rules", {"unit": PrivacyUnit.RECORD}, "line 1, unit"),
    ("record.track_rules", {"adjacency": Adjacency.REPLACE}, "line 1, adjacency"),
]


@pytest.mark.parametrize(("check", "changes", "where"), REJECTED)
def test_a_contradiction_is_rejected_with_the_checks_code(
    tmp_path: Path, check: str, changes: dict[str, Any], where: str
) -> None:
    found = checks(make_record(tmp_path, **changes))
    assert found[check].status is CheckStatus.FAILED
    assert found[check].where == where
    assert found[check].expected
    assert found[check].found
    problems = [problem for problem in failures(list(found.values())) if f"check {check}" in problem.where]
    assert [problem.code for problem in problems] == [CHECKS[check].code]


def test_other_base_weights_or_another_checkpoint_than_the_records_are_rejected(tmp_path: Path) -> None:
    made = make_record(tmp_path / "run")
    other = write_weights(tmp_path / "other.safetensors", seed=3)
    for changed, where in (
        (replace(made, base=other), "line 1, weights_root"),
        (replace(made, checkpoint=other), "round 2, weights_root"),
    ):
        found = checks(changed)
        assert (found["record.models"].status, found["record.models"].where) == (CheckStatus.FAILED, where)


@pytest.mark.parametrize(
    ("trainable", "where"),
    [
        ([TrainableTensor(name="encoder.weight", shape=[60, 40])], "tensor bias"),
        ([TrainableTensor(name="bias", shape=[3, 3])], "trainable, bias"),
    ],
)
def test_tensors_that_were_not_declared_may_not_change(
    tmp_path: Path, trainable: list[TrainableTensor], where: str
) -> None:
    checkpoint = write_weights(tmp_path / "other.safetensors", seed=2)
    found = checks(make_record(tmp_path / "run", trainable=trainable, checkpoint=checkpoint))
    assert (found["record.tensors"].status, found["record.tensors"].where) == (CheckStatus.FAILED, where)


def test_a_run_of_another_number_of_clients_than_the_track_is_rejected(tmp_path: Path) -> None:
    assert checks(make_record(tmp_path), clients=3)["record.track_rules"].status is CheckStatus.FAILED


def test_openings_of_other_values_are_rejected(tmp_path: Path) -> None:
    def prettier(annex: Annex) -> Annex:
        place, opening = next(iter(annex.openings.items()))
        return replace(
            annex,
            openings=annex.openings | {place: replace(opening, values=opening.values * np.float32(1.1))},
        )

    found = checks(make_record(tmp_path, change_annex=prettier))["record.noise_size"]
    assert (found.status, found.where) == (CheckStatus.FAILED, "annex, round 1, block 0")


def test_bytes_that_the_log_has_otherwise_are_rejected(tmp_path: Path) -> None:
    made = make_record(tmp_path)
    log = [
        LogEntry(number, *way, 9636)
        for number in (1, 2)
        for client in (0, 1)
        for way in ((-1, client), (client, -1))
    ]
    write_log(made.log, log)
    assert checks(made)["record.bytes"].status is CheckStatus.PASSED
    for other, where in (
        ([*log[:-1], replace(log[-1], size_bytes=9637)], "round 2, bytes_up"),
        (log[:4], "round 2, clients"),
        ([*log, LogEntry(3, -1, 0, 9636)], "communication log"),
    ):
        write_log(made.log, other)
        found = checks(made)["record.bytes"]
        assert (found.status, found.where) == (CheckStatus.FAILED, where)


def test_a_percent_of_framing_is_allowed(tmp_path: Path) -> None:
    size = round(9636 * 1.009)
    made = make_record(
        tmp_path,
        change_round=lambda line: line.model_copy(update={"bytes_down": 2 * size, "bytes_up": 2 * size}),
    )
    write_log(
        made.log,
        [
            LogEntry(number, *way, size)
            for number in (1, 2)
            for client in (0, 1)
            for way in ((-1, client), (client, -1))
        ],
    )
    assert odd(checks(made)) == {}


FLAGGED: list[tuple[str, dict[str, Any]]] = [
    ("record.rounds", {"change_round": changing(2, noise_multiplier=1.2)}),
    ("record.rounds", {"change_round": changing(2, sampling=Poisson(provider_rate=0.3))}),
    ("record.rounds", {"change_round": changing(1, clip_norm=0.6)}),
    (
        "record.providers",
        {"rounds": 30, "change_annex": lambda annex: replace(annex, sampled=[{0: 5, 1: 5}] * 30)},
    ),
    (
        "record.providers",
        {"rounds": 30, "change_annex": lambda annex: replace(annex, sampled=[{0: 7, 1: 5}] * 30)},
    ),
    ("record.other_uses", {"validation_on_private_data": True}),
    ("record.other_uses", {"tuning": Tuning(private_runs=3)}),
]


@pytest.mark.parametrize(("check", "changes"), FLAGGED)
def test_what_may_be_honest_is_flagged_and_not_rejected(
    tmp_path: Path, check: str, changes: dict[str, Any]
) -> None:
    assert odd(checks(make_record(tmp_path, **changes))) == {check: CheckStatus.FLAGGED}


def test_weights_after_rounds_that_released_nothing_are_the_base_weights() -> None:
    changed = [TensorChange("encoder.weight", (60, 40), 2400, 1)]
    adapters = [TrainableTensor(name="a", shape=[60, 1]), TrainableTensor(name="b", shape=[1, 40])]
    base = {"encoder.weight": (60, 40)}
    assert not list(tensor_differences(adapters, base, changed, released=True))
    (difference,) = tensor_differences(adapters, base, changed, released=False)
    assert difference.rejects


def less_noise(run: RunLine, line: RoundLine, providers: int) -> NDArray[np.float32]:
    return np.float32(0.9) * noise_only(run, line, providers)


def half_without(run: RunLine, line: RoundLine, providers: int) -> NDArray[np.float32]:
    total = noise_only(run, line, providers)
    total[::2] *= np.float32(0.5)
    return total


def same_noise(run: RunLine, line: RoundLine, providers: int) -> NDArray[np.float32]:
    return noise_only(run, line.model_copy(update={"round": 1}), providers)


@pytest.mark.parametrize(
    ("check", "sums"),
    [
        ("record.noise_size", less_noise),
        ("record.noise_size", half_without),
        ("record.noise_reuse", same_noise),
    ],
)
def test_missing_noise_is_flagged(tmp_path: Path, check: str, sums: Any) -> None:
    found = checks(make_record(tmp_path, sums=sums, rounds=4))
    assert found[check].status is CheckStatus.FLAGGED
    # Others see it too where it is in all rounds.
    others = {"record.whole_change", "record.alignment", "record.noise_shape"}
    assert odd(found).keys() <= {check, *others}
    assert found[check].where.startswith("round ")


def test_a_signal_of_all_sampled_providers_in_one_direction_is_flagged_for_nothing_but_that(
    tmp_path: Path,
) -> None:
    def with_signal(run: RunLine, line: RoundLine, providers: int) -> NDArray[np.float32]:
        direction = np.ones(run.numel, np.float32) / np.float32(run.numel**0.5)
        return noise_only(run, line, providers) + np.float32(providers * line.clip_norm) * direction

    found = odd(checks(make_record(tmp_path, sums=with_signal, rounds=60)))
    assert found == {"record.alignment": CheckStatus.FLAGGED}


def test_no_finding_reveals_how_many_providers_took_part(tmp_path: Path) -> None:
    """The same findings whatever the counts: here 3 and 17 of 20."""

    def found(count: int, sampling: Any) -> list[tuple[str, str]]:
        made = make_record(
            tmp_path / f"{count}",
            sampling=sampling,
            rounds=30,
            sums=same_noise,
            change_annex=lambda annex: replace(annex, sampled=[{0: count, 1: count}] * 30),
        )
        private = checks(made)
        return [
            (private[name].expected, private[name].found)
            for name in ("record.providers", "record.noise_size", "record.noise_reuse")
        ]

    coins = Poisson(provider_rate=0.5)
    assert found(3, coins) == found(17, coins)


@pytest.mark.parametrize("sums", [noise_only, half_without, same_noise])
@pytest.mark.parametrize("normalizer", [10.0, 300.0])
def test_no_text_of_a_noise_check_changes_with_the_private_counts(
    tmp_path: Path, sums: Any, normalizer: float
) -> None:
    """From 1 to 20 providers of each client, so that the norm of the signal changes from small to large."""

    def counted(count: int) -> Callable[[Annex], Annex]:
        return lambda annex: replace(annex, sampled=[{0: count, 1: count}] * 6)

    found = []
    for count in (1, 5, 20):
        made = make_record(
            tmp_path / f"{count}",
            rounds=6,
            sums=sums,
            normalizer=normalizer,
            noise=Noise(multiplier=3.0),
            change_round=lambda line: line.model_copy(update={"noise_multiplier": 3.0}),
            change_annex=counted(count),
        )
        found.append(
            [checks(made)[name] for name in ("record.noise_size", "record.noise_reuse", "record.noise_shape")]
        )
    assert found[0] == found[1] == found[2]


def test_a_check_that_would_have_found_nothing_says_so(tmp_path: Path) -> None:
    """What it says follows from the expected number of providers, which is public."""
    few = checks(make_record(tmp_path / "few", rounds=4))
    assert {
        few[name].status for name in ("record.noise_size", "record.noise_reuse", "record.noise_shape")
    } == {CheckStatus.PASSED}
    assert "would have detected noise below 87.9% of the declared level" in few["record.noise_size"].found
    many = checks(make_record(tmp_path / "many", rounds=4, normalizer=1000.0))
    assert {
        many[name].status for name in ("record.noise_size", "record.noise_reuse", "record.noise_shape")
    } == {CheckStatus.NO_POWER}
    assert failures(list(many.values())) == []


def test_a_single_round_has_no_earlier_one_to_repeat(tmp_path: Path) -> None:
    assert checks(make_record(tmp_path, rounds=1))["record.noise_reuse"].status is CheckStatus.NOT_APPLICABLE


def test_honest_noise_that_a_codec_rounded_raises_no_alarm(tmp_path: Path) -> None:
    """One client's message in NF4 is on sixteen levels a block, which is another shape and hardly another size."""

    def rounded(run: RunLine, line: RoundLine, providers: int) -> NDArray[np.float32]:
        return dequantize(quantize(noise_only(run, line, providers)), run.numel)

    made = make_record(
        tmp_path,
        clients=1,
        rounds=8,
        providers=40,
        trainable=[TrainableTensor(name="embedding", shape=[512, 256])],
        sums=rounded,
        noise=Noise(multiplier=2.0, placement=Placement.CLIENT_FULL),
        change_round=lambda line: line.model_copy(update={"noise_multiplier": 2.0}),
        codec=Codec(name="nf4", bits_per_parameter=4.5),
    )
    found = checks(made, clients=1)
    assert {
        name: found[name].status for name in ("record.noise_size", "record.noise_reuse", "record.noise_shape")
    } == {
        "record.noise_size": CheckStatus.PASSED,
        "record.noise_reuse": CheckStatus.PASSED,
        "record.noise_shape": CheckStatus.NO_POWER,
    }
    assert "codec" in found["record.noise_shape"].found


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Base weights, and a checkpoint into which an adapter of rank 2 was merged."""
    folder = tmp_path_factory.mktemp("adapted")
    weights = load_file(write_weights(folder / "base.safetensors", seed=1))
    random = np.random.default_rng(2)
    change = random.standard_normal((60, 2)) @ random.standard_normal((2, 40))
    weights["encoder.weight"] += change.astype(np.float32)
    save_file(weights, folder / "model.safetensors")
    return folder / "base.safetensors", folder / "model.safetensors"


def test_merged_adapters_explain_a_change_of_their_rank(tmp_path: Path) -> None:
    found = checks(make_record(tmp_path, trainable=adapter(2), lora_scale=2.0))
    assert odd(found) == {}
    assert found["record.models"].status is CheckStatus.NOT_APPLICABLE
    assert found["record.tensors"].status is found["record.linkage"].status is CheckStatus.PASSED


@pytest.mark.parametrize(
    "trainable",
    [
        adapter(1),
        adapter(2)[:1],
        [*adapter(2)[1:], TrainableTensor(name="other", shape=[2, 41])],
        [TrainableTensor(name="bias", shape=[9])],
    ],
)
def test_adapters_too_small_for_the_change_are_rejected(
    tmp_path: Path, adapted: tuple[Path, Path], trainable: list[TrainableTensor]
) -> None:
    base, checkpoint = adapted
    scale = 1.0 if trainable == adapter(1) else None
    made = make_record(tmp_path, base=base, checkpoint=checkpoint, trainable=trainable, lora_scale=scale)
    found = checks(made)
    assert (found["record.tensors"].status, found["record.tensors"].where) == (
        CheckStatus.FAILED,
        "tensor encoder.weight",
    )


def test_one_adapter_doesnt_explain_the_changes_of_two_matrices(tmp_path: Path) -> None:
    shapes = [TrainableTensor(name=name, shape=[30, 30]) for name in "ab"]
    base = write_weights(tmp_path / "base.safetensors", seed=1, tensors=shapes)
    weights = load_file(base)
    random = np.random.default_rng(2)
    for name in "ab":
        weights[name] += np.outer(random.standard_normal(30), random.standard_normal(30)).astype(np.float32)
    save_file(weights, tmp_path / "model.safetensors")
    one = [TrainableTensor(name="in", shape=[1, 30]), TrainableTensor(name="out", shape=[30, 1])]
    made = make_record(tmp_path, base=base, checkpoint=tmp_path / "model.safetensors", trainable=one)
    found = checks(made)["record.tensors"]
    assert (found.status, found.where) == (CheckStatus.FAILED, "undeclared tensors")


CHALLENGE = "5" * 64


def test_the_annex_must_answer_the_challenge_that_the_site_drew(tmp_path: Path) -> None:
    dry_run = checks(make_record(tmp_path / "dry"), challenge=CHALLENGE)
    assert odd(dry_run) == {"record.challenge": CheckStatus.FAILED}
    assert [problem.code for problem in failures(list(dry_run.values()))] == [ErrorCode.RECORD_CHALLENGE]
    made = make_record(tmp_path / "answer", challenge=CHALLENGE)
    found = checks(made, challenge=CHALLENGE)
    assert odd(found) == {}
    assert found["record.challenge"].status is CheckStatus.PASSED
    assert odd(checks(made, challenge="6" * 64)) == {"record.challenge": CheckStatus.FAILED}


def test_without_a_site_the_challenge_shows_nothing_and_says_so(tmp_path: Path) -> None:
    dry_run = checks(make_record(tmp_path / "dry"))["record.challenge"]
    assert dry_run.status is CheckStatus.NO_POWER
    assert "the site draws other blocks" in dry_run.found
    answered = checks(make_record(tmp_path / "answer", challenge=CHALLENGE))["record.challenge"]
    assert answered.status is CheckStatus.NOT_APPLICABLE


def test_the_training_data_must_be_the_tracks(tmp_path: Path) -> None:
    made = make_record(tmp_path)
    assert checks(made, data_sha256=DATA_SHA256)["record.data"].status is CheckStatus.PASSED
    other = checks(made, data_sha256="b" * 64)
    assert odd(other) == {"record.data": CheckStatus.FAILED}
    (problem,) = failures(list(other.values()))
    assert problem.code is ErrorCode.RECORD_DATA
    assert DATA_SHA256 not in str(problem)
    assert "b" * 64 not in str(problem)
    unknown = checks(made)["record.data"]
    assert (unknown.status, "not compared" in unknown.found) == (CheckStatus.NOT_APPLICABLE, True)
