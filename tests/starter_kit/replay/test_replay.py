"""A round of a replayable run is the same when organizers train it again, and each lie about it has its own code."""

import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import ArtifactKind
from evaluator.records.certificate import Floats
from evaluator.records.round_keys import key_path, round_key
from evaluator.records.round_opening import read_opening, write_opening
from starter_kit.dp import gaussian_sum, sampling
from starter_kit.dp.clipping import clip
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.noise import with_gaussian_noise
from starter_kit.replay.examination import examine
from starter_kit.replay.training import UPDATE, WEIGHTS, RoundRequest, TrainedRound, train_round
from starter_kit.runs import round_secret
from starter_kit.runs.folder import OPENING, RunFolder
from starter_kit.runs.opened_round import open_rounds
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.pocket_data import make_base
from tests.starter_kit.replay.opened_runs import (
    CHALLENGE,
    REPLAYABLE,
    SAMPLED,
    codes,
    examined,
    inputs_of,
    replayable_run,
)
from tests.starter_kit.training_runs import accounting, trained


@pytest.fixture(scope="module")
def genuine(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of two rounds, both of them open. Not to be changed."""
    run = replayable_run(base, data, tmp_path_factory.mktemp("genuine") / "run")
    assert open_rounds(run.path, CHALLENGE) == [1, 2]
    return run


@pytest.fixture
def copied(genuine: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy of it, to be changed."""
    return RunFolder(Path(shutil.copytree(genuine.path, tmp_path / "copy")))


def test_genuine_rounds_are_the_same_bit_for_bit(genuine: RunFolder, base: Path, data: Path) -> None:
    replayed = examined(genuine, base, data)
    assert (list(replayed.comparisons), replayed.of, replayed.exact) == ([1, 2], 2, True)
    assert all(found.distance == 0.0 and found.step_follows for found in replayed.comparisons.values())


def with_noise(factor: float) -> Callable[[RoundRequest], TrainedRound]:
    """Trains a round on terms whose noise multiplier is this times that of the settings."""

    def train(request: RoundRequest) -> TrainedRound:
        trained_round = train_round(request)
        assert trained_round.terms is not None
        terms = trained_round.terms
        noise = terms.noise.model_copy(update={"multiplier": factor * terms.noise.multiplier})
        return trained_round.model_copy(update={"terms": terms.model_copy(update={"noise": noise})})

    return train


def test_noise_that_another_processor_computed_otherwise_in_the_last_digits_is_the_same(
    genuine: RunFolder, base: Path, data: Path
) -> None:
    inputs = inputs_of(genuine, base, data)
    assert examine(inputs, with_noise(1 + 1e-13)).exact
    with pytest.raises(ProblemError) as caught:
        examine(inputs, with_noise(1 + 1e-6))
    assert codes(caught.value) == {ErrorCode.REPLAY_NOISE}


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("fl-provider-dp", ["placement=client_full", "codec=nf4", "sampling.client_rate=0.7"]),
        ("secure-aggregation", []),
    ],
)
def test_so_it_is_with_every_placement_and_codec(
    base: Path, data: Path, tmp_path: Path, config: str, changes: list[str]
) -> None:
    run = replayable_run(base, data, tmp_path / "run", [*REPLAYABLE, *changes], config)
    open_rounds(run.path, CHALLENGE)
    assert examined(run, base, data).exact


def test_a_round_that_began_again_after_an_interruption_has_other_noise_and_is_replayed(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise: list[tuple[float, ...]] = []

    def noted(vector: torch.Tensor, std: float, step: float, keystream: Keystream) -> torch.Tensor:
        noised = with_gaussian_noise(vector, std, step, keystream)
        noise.append(tuple((noised - vector).tolist()))
        return noised

    monkeypatch.setattr(gaussian_sum, "with_gaussian_noise", noted)
    changes = [*SAMPLED, "placement=client_full"]
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=CutOff(6))
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes, resume=True)
    # Three clients in each of two rounds, and in the second one twice.
    assert len(set(noise)) == len(noise) == 9
    open_rounds(run.path, CHALLENGE)
    assert examined(run, base, data).exact


def test_the_same_secret_gives_the_same_run_and_another_one_another(
    base: Path, data: Path, tmp_path: Path
) -> None:
    once = [*SAMPLED, "rounds=1"]
    runs = [replayable_run(base, data, tmp_path / name, once) for name in ("first", "second")]
    runs.append(trained("fl-provider-dp", base, data, tmp_path / "other", once))
    first, second, other = (sha256_of(run.file(ArtifactKind.CHECKPOINT)) for run in runs)
    assert first == second != other


def test_an_opening_stays_when_what_it_was_made_from_is_gone(copied: RunFolder) -> None:
    """As when a run is submitted a second time."""
    before = (copied.path / OPENING).read_bytes()
    for name in ("replay", "vectors"):
        shutil.rmtree(copied.path / name)
    assert open_rounds(copied.path, CHALLENGE) == [1, 2]
    assert (copied.path / OPENING).read_bytes() == before
    with pytest.raises(ProblemError) as caught:
        open_rounds(copied.path, CHALLENGE, drawn=0)
    assert codes(caught.value) == {ErrorCode.RUN_FOLDER}


def test_the_evaluator_accepts_the_record_and_it_shows_no_key(
    genuine: RunFolder, base: Path, data: Path
) -> None:
    assert accounting(genuine.files(), base).epsilon
    secret = round_secret.read_secret(genuine.path)
    texts = [path.read_bytes() for path in genuine.path.iterdir() if path.is_file()]
    keys = [round_key(secret, number) for number in (1, 2)]
    shown = [key.hex().encode() in text for key in keys for text in texts]
    # Of the opened rounds, and in the opening only.
    assert sum(shown) == 2
    assert not any(secret in text or secret.hex().encode() in text for text in texts)


def test_only_the_owner_can_read_the_secret_the_vectors_and_the_opening(genuine: RunFolder) -> None:
    for name in ("replay", "replay/secret", "vectors", OPENING):
        assert not stat.S_IMODE((genuine.path / name).stat().st_mode) & 0o077


def test_a_run_that_isnt_replayable_keeps_nothing_and_cant_be_opened(
    base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=1", *REPLAYABLE[1:]], None)
    assert not [name for name in ("replay", "vectors") if (run.path / name).exists()]
    with pytest.raises(ProblemError) as caught:
        open_rounds(run.path, CHALLENGE)
    assert codes(caught.value) == {ErrorCode.REPLAY_UNSUPPORTED}


# --- what isn't replayed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config", ["dp-clgecl", "dp-clgecl-momentum", "client-dp", "laplace-fedavg", "laplace-iadmm"]
)
def test_a_method_that_cant_be_replayed_is_rejected_before_it_trains(
    base: Path, data: Path, tmp_path: Path, config: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        trained(config, base, data, tmp_path / "run", ["replayable=true"])
    assert codes(caught.value) == {ErrorCode.REPLAY_UNSUPPORTED}
    assert not list(tmp_path.iterdir())


def test_other_rounds_are_never_opened(copied: RunFolder) -> None:
    with pytest.raises(ProblemError) as caught:
        open_rounds(copied.path, CHALLENGE, drawn=0)
    assert codes(caught.value) == {ErrorCode.RUN_FOLDER}


# --- the lies --------------------------------------------------------------------------------------------------------


def rewrite(
    run: RunFolder,
    *,
    opened: slice = slice(None),
    token: str | None = None,
    vectors: Mapping[str, Floats] | None = None,
    **changes: object,
) -> None:
    """Change the first line of the opening, or the key or the vectors of the last round in it."""
    path = run.path / OPENING
    opening = read_opening(path, run.record(max_rounds=2).run.numel)
    rounds = opening.rounds[opened]
    last = replace(
        rounds[-1],
        key=rounds[-1].key.model_copy(update=dict(changes)),
        **(vectors or {}),
    )
    rounds = [*rounds[:-1], last]
    stored = [np.array(v) for each in rounds for v in (each.before, each.update, each.after)]
    line = {"rounds": [each.key for each in rounds], **({"run_token": token} if token else {})}
    path.unlink()
    write_opening(path, opening.line.model_copy(update=line), stored)


def rejected(run: RunFolder, base: Path, data: Path, **changes: object) -> set[ErrorCode]:
    with pytest.raises(ProblemError) as caught:
        examined(run, base, data, **changes)
    return codes(caught.value)


def test_another_secret_is_no_key_of_the_record(copied: RunFolder, base: Path, data: Path) -> None:
    rewrite(copied, key=round_key(bytes(32), 2).hex(), path=key_path(bytes(32), 2, 2))
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_KEY}


def test_an_opening_without_the_last_round_is_rejected(copied: RunFolder, base: Path, data: Path) -> None:
    rewrite(copied, opened=slice(1))
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_ROUND}


@pytest.mark.parametrize("name", ["before", "update", "after"])
def test_other_vectors_than_those_of_the_record_are_rejected(
    copied: RunFolder, base: Path, data: Path, name: str
) -> None:
    numel = copied.record(max_rounds=2).run.numel
    rewrite(copied, vectors={name: np.zeros(numel, np.float32)})
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_WEIGHTS}


@pytest.mark.parametrize("content", [b"", b"{}\n", b"no opening", b'{"schema":"pfl-round-opening/1"}\n'])
def test_a_file_that_is_no_opening_is_rejected(
    copied: RunFolder, base: Path, data: Path, content: bytes
) -> None:
    (copied.path / OPENING).write_bytes(content)
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_OPENING}


def test_an_opening_with_bytes_missing_or_of_another_run_is_rejected(
    copied: RunFolder, base: Path, data: Path
) -> None:
    rewrite(copied, token="another-token-of-the-site")
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_OPENING}
    with (copied.path / OPENING).open("ab") as file:
        file.write(b"\0")
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_OPENING}


def test_other_code_is_rejected(copied: RunFolder, base: Path, data: Path) -> None:
    settings = copied.path / "settings.yaml"
    settings.write_text(settings.read_text().replace("weight_decay: 0.01", "weight_decay: 0.02"))
    assert rejected(copied, base, data) == {ErrorCode.REPLAY_CODE}


def test_settings_that_are_no_text_are_rejected(copied: RunFolder, base: Path, data: Path) -> None:
    (copied.path / "settings.yaml").write_bytes(b"rounds: 2\xff\n")
    assert rejected(copied, base, data) == {ErrorCode.CONFIGURATION}


@pytest.mark.parametrize("name", [UPDATE, WEIGHTS])
def test_vectors_that_are_not_numbers_are_rejected(
    genuine: RunFolder, base: Path, data: Path, name: str
) -> None:
    def without_numbers(request: RoundRequest) -> TrainedRound:
        trained = train_round(request)
        size = (request.out / name).stat().st_size // 4
        np.full(size, np.nan, "<f4").tofile(request.out / name)
        return trained

    with pytest.raises(ProblemError) as caught:
        examine(inputs_of(genuine, base, data), without_numbers)
    assert codes(caught.value) == {ErrorCode.REPLAY_TRAINING}


def test_other_base_weights_are_rejected(genuine: RunFolder, data: Path, tmp_path: Path) -> None:
    base = make_base(tmp_path / "base")
    weights = load_file(base / "model.safetensors")
    save_file({name: value * 1.001 for name, value in weights.items()}, base / "model.safetensors")
    assert rejected(genuine, base, data) == {ErrorCode.REPLAY_DATA}


def test_other_providers_are_rejected(genuine: RunFolder, base: Path, data: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(data, tmp_path / "data"))
    info = changed / "dataset.json"
    info.write_text(info.read_text().replace('"Ghost"', '"Ghost", "Hazel"'))
    assert ErrorCode.REPLAY_DATA in rejected(genuine, base, changed)


def test_other_documents_are_rejected(genuine: RunFolder, base: Path, data: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(data, tmp_path / "data"))
    for path in changed.rglob("*.jsonl"):
        path.write_text(path.read_text().replace("owes", "lent"))
    assert rejected(genuine, base, changed) == {ErrorCode.REPLAY_DATA}


def lying(base: Path, data: Path, out: Path, monkeypatch: pytest.MonkeyPatch, **lies: object) -> RunFolder:
    """A run whose kit does something else than its record says, opened honestly."""
    with monkeypatch.context() as patched:
        for name, lie in lies.items():
            module = sampling if name == "poisson_sample" else gaussian_sum
            patched.setattr(module, name, lie)
        run = replayable_run(base, data, out)
    open_rounds(run.path, CHALLENGE)
    return run


def test_clipping_to_thrice_the_norm_is_found(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = lying(base, data, tmp_path / "run", monkeypatch, clip=lambda update, norm: clip(update, 3 * norm))
    assert rejected(run, base, data) == {ErrorCode.REPLAY_CLIP}


def test_half_the_noise_and_noise_from_elsewhere_are_found(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(vector: torch.Tensor, std: float, step: float, keystream: Keystream) -> torch.Tensor:
        return with_gaussian_noise(vector, std / 2, step, keystream)

    def own(vector: torch.Tensor, std: float, _step: float, _keystream: object) -> torch.Tensor:
        return vector + std * torch.randn(len(vector), generator=torch.Generator().manual_seed(5))

    for name, noise in (("half", half), ("own", own)):
        run = lying(base, data, tmp_path / name, monkeypatch, with_gaussian_noise=noise)
        assert rejected(run, base, data) == {ErrorCode.REPLAY_NOISE}


def test_a_sample_that_the_key_doesnt_draw_is_found(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_population: object, _rate: float, _keystream: object) -> list[object]:
        return []

    run = lying(base, data, tmp_path / "run", monkeypatch, poisson_sample=nobody)
    assert rejected(run, base, data) == {ErrorCode.REPLAY_COUNT}


@pytest.mark.parametrize("challenge", ["1" * 64, "2" * 64, "3" * 64])
def test_an_honest_run_whose_last_round_was_overwritten_is_always_found(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, challenge: str
) -> None:
    honest, rounds = GaussianSum.noised_by_server, []

    def overwritten(noise: GaussianSum, total: torch.Tensor) -> torch.Tensor:
        rounds.append(total)
        return honest(noise, total) if len(rounds) < 3 else torch.full_like(total, 0.5)

    with monkeypatch.context() as patched:
        patched.setattr(GaussianSum, "noised_by_server", overwritten)
        run = replayable_run(base, data, tmp_path / "run", [*SAMPLED, "rounds=3"])
    opened = open_rounds(run.path, challenge, drawn=1)
    assert opened[-1] == 3
    found = rejected(run, base, data, challenge=challenge, drawn=1)
    assert found <= {ErrorCode.REPLAY_CLIP, ErrorCode.REPLAY_NOISE, ErrorCode.REPLAY_MISMATCH}
