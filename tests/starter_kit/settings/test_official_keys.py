"""Files and flags of the competition's kit, and what becomes of each of their keys."""

from pathlib import Path

import pytest
import yaml

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.sampling import FixedSize
from starter_kit.federation.rounds import Client
from starter_kit.methods import fedavg, fl_provider_dp
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.official_keys import FLAGS, KEYS, find_model_config, is_official
from starter_kit.settings.run_settings import RunSettings

MODEL = """
save_dir: save/
model_name: VT5
model_weights: somewhere/vt5.ckpt
max_input_tokens: 512
device: cuda
seed: 7
visual_module:
  model: dit
  model_weights: somewhere/dit
  finetune: False
training_parameters:
  lr: 2e-4
  batch_size: 10
fl_parameters:
  sample_clients: 2
  total_clients: 10
  num_rounds: 5
  iterations_per_fl_round: 3
dp_parameters:
  providers_per_fl_round: 50
  sensitivity: 0.5
  noise_multiplier: 1.182
"""
DATASET = """
dataset_name: PFL-DocVQA
imdb_dir: somewhere/imdb
images_dir: somewhere/images
provider_docs: somewhere/data_points.json
"""
TEN_CLIENTS = [Client(c, {f"{c}-{n}": [0] for n in range(400)}) for c in range(10)]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return written(tmp_path / "VT5.yml", MODEL)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def loaded(config: Path, *changes: str, **flags: object) -> tuple[RunSettings, list[str]]:
    """The settings of a file, with flags named without their dashes, and the notes on them."""
    notes: list[str] = []
    named = {f"--{name}": value for name, value in flags.items()}
    return load_settings(str(config), changes, flags=named, on_note=notes.append), notes


def rejections(config: Path, *changes: str, **flags: object) -> dict[str, str]:
    """What is rejected: where, and what was expected."""
    with pytest.raises(ProblemError) as caught:
        loaded(config, *changes, **flags)
    assert {problem.code for problem in caught.value.problems} == {ErrorCode.CONFIGURATION}
    return {problem.where: problem.expected for problem in caught.value.problems}


def test_without_use_dp_it_is_federated_averaging(config: Path) -> None:
    settings, notes = loaded(config)
    assert isinstance(settings, fedavg.Settings)
    assert (settings.rounds, settings.clients_per_round, settings.seed, settings.device) == (5, 2, 7, "cuda")
    assert (settings.local.epochs, settings.local.batch_size, settings.local.learning_rate) == (3, 10, 2e-4)
    assert (settings.max_input_tokens, settings.dropout, settings.trainable) == (512, True, None)
    assert "fl_parameters.sample_clients: 2 -> clients_per_round: 2" in notes
    assert notes[-1].startswith("use_dp: false -> method: fedavg")


def test_with_use_dp_it_is_fl_provider_dp_as_published(config: Path) -> None:
    settings, notes = loaded(config, use_dp=True)
    assert isinstance(settings, fl_provider_dp.Settings)
    assert settings.sampling == FixedSize(clients_per_round=2, providers_per_client=50)
    assert (settings.clip_norm, settings.noise_multiplier, settings.delta) == (0.5, 1.182, 1e-5)
    assert settings.target_epsilon is None
    assert settings.placement == "client_full"
    built = settings.plan(TEN_CLIENTS).method
    assert isinstance(built, fl_provider_dp.ProviderDP)
    assert built.divisor == 100
    assert notes[-1].startswith("--use_dp: true -> method: fl-provider-dp")
    assert any("ε is larger than with a coin" in note for note in notes)


def test_fixed_numbers_do_cost_more_than_coins_at_the_same_noise(config: Path) -> None:
    """What the note on them claims."""
    published, _ = loaded(config, use_dp=True)
    coins, _ = loaded(
        config,
        "sampling={type: poisson, client_rate: 0.2, provider_rate: 0.125}",
        use_dp=True,
    )
    fixed_epsilon, coin_epsilon = (
        guarantee.epsilon(5)
        for settings in (published, coins)
        if (guarantee := settings.plan(TEN_CLIENTS).guarantee)
    )
    assert fixed_epsilon > 1.5 * coin_epsilon


def test_every_key_is_reported_in_a_line_with_its_translation(config: Path) -> None:
    written(config, f"{MODEL}{DATASET}flower: true\nuse_dp: true\n")
    _, notes = loaded(config)
    assert sorted(note.split(":")[0] for note in notes) == sorted(KEYS)
    ignored = [note for note in notes if "-> ignored" in note]
    assert len(ignored) == 10
    assert all(note.endswith(")") for note in ignored)


def test_what_is_said_of_privacy_is_ignored_without_use_dp_and_the_note_says_so(config: Path) -> None:
    _, notes = loaded(config)
    assert "dp_parameters.sensitivity: 0.5 -> ignored (nothing is private without --use_dp)" in notes
    assert len([note for note in notes if "without --use_dp" in note]) == 3


def test_flags_overwrite_the_files_keys(config: Path) -> None:
    flags = {
        "batch-size": 4,
        "max-sequence-length": 64,
        "seed": 3,
        "sample_clients": 3,
        "num_rounds": 2,
        "iterations_per_fl_round": 1,
        "use_dp": True,
        "providers_per_fl_round": 5,
        "sensitivity": 1.5,
        "noise_multiplier": 2.5,
        "dataset": "PFL-DocVQA",
        "save-dir": "elsewhere",
        "flower": True,
    }
    assert {f"--{name}" for name in flags} == set(FLAGS)
    settings, notes = loaded(config, **flags)
    assert isinstance(settings, fl_provider_dp.Settings)
    assert (settings.local.batch_size, settings.max_input_tokens, settings.seed) == (4, 64, 3)
    assert (settings.sampling.clients_per_round, settings.rounds, settings.local.epochs) == (3, 2, 1)
    assert (settings.sampling.providers_per_client, settings.clip_norm, settings.noise_multiplier) == (
        5,
        1.5,
        2.5,
    )
    assert settings.experiment == "VT5_PFL-DocVQA_dp"
    assert "--num_rounds: 2 -> rounds: 2" in notes
    assert not any(note.startswith("fl_parameters.num_rounds") for note in notes)


def test_changes_have_the_last_word(config: Path) -> None:
    assert loaded(config, "rounds=9", num_rounds=2)[0].rounds == 9


def test_an_unknown_key_is_rejected_by_name(tmp_path: Path) -> None:
    config = written(tmp_path / "VT5.yml", MODEL.replace("sample_clients", "samples") + "warmup: 3\n")
    wrong = rejections(config)
    assert wrong.keys() == {"VT5.yml, fl_parameters.samples", "VT5.yml, warmup"}
    known = "one of iterations_per_fl_round, num_rounds, sample_clients, total_clients"
    assert wrong["VT5.yml, fl_parameters.samples"] == known
    assert "fl_parameters" in wrong["VT5.yml, warmup"]


def test_a_misspelt_key_is_answered_with_the_one_that_is_meant(tmp_path: Path) -> None:
    config = written(tmp_path / "VT5.yml", MODEL.replace("sample_clients", "sampled_clients"))
    with pytest.raises(ProblemError) as caught:
        load_settings(str(config))
    assert caught.value.problem.next_step == "Is fl_parameters.sample_clients meant?"


def test_what_is_wrong_is_reported_by_its_name_there(tmp_path: Path) -> None:
    text = MODEL.replace("num_rounds: 5", "num_rounds: five").replace("  lr: 2e-4\n", "")
    assert rejections(written(tmp_path / "VT5.yml", text)) == {
        "VT5.yml, fl_parameters.num_rounds (rounds)": "whole number, at least 0",
        "VT5.yml, training_parameters.lr (local.learning_rate)": "number, above 0",
    }
    config = written(tmp_path / "VT5.yml", MODEL)
    assert rejections(config, sensitivity=0.0, use_dp=True).keys() == {"--sensitivity (clip_norm)"}


def test_a_group_is_a_group_and_a_switch_a_switch(tmp_path: Path) -> None:
    text = "model_name: VT5\nfl_parameters: 3\n"
    assert rejections(written(tmp_path / "a.yml", text)) == {"a.yml, fl_parameters": "a group of keys"}
    assert rejections(written(tmp_path / "a.yml", MODEL + "use_dp: maybe")) == {
        "a.yml, use_dp": "true or false"
    }


def test_included_files_are_read_and_overwritten(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts" / "below.yml", DATASET + "seed: 1\nmax_input_tokens: 99\n")
    config = written(
        tmp_path / "VT5.yml", MODEL.replace("max_input_tokens: 512", "") + "includes: [parts/below.yml]"
    )
    settings, _ = loaded(config)
    assert (settings.seed, settings.max_input_tokens, settings.experiment) == (7, 99, "VT5_PFL-DocVQA")
    assert (
        str(tmp_path / "gone.yml") in rejections(written(config, MODEL + "includes: gone.yml")).popitem()[0]
    )
    assert "includes" in rejections(written(config, MODEL + "includes: VT5.yml")).popitem()[0]


@pytest.mark.parametrize("tag", ["object:argparse.Namespace", "name:os.system", "object/apply:os.getcwd"])
def test_what_the_official_kit_writes_with_python_objects_is_rejected(tmp_path: Path, tag: str) -> None:
    config = written(tmp_path / "experiment_config.yml", f"model_name: !!python/{tag} []\n")
    with pytest.raises(ProblemError) as caught:
        loaded(config)
    assert caught.value.problem.found == f"the Python object {tag}"
    assert "configs/models" in caught.value.problem.next_step


def test_a_file_of_this_kit_is_none_of_theirs() -> None:
    assert is_official(yaml.safe_load(MODEL))
    assert not is_official({"method": "fedavg", "fl_parameters": {}})
    assert not is_official({"experiment": "mine"})


def test_flags_go_with_a_config_of_this_kit_as_well() -> None:
    notes: list[str] = []
    settings = load_settings("fedavg", flags={"--num_rounds": 3, "--flower": True}, on_note=notes.append)
    assert settings.rounds == 3
    assert notes[0] == "--num_rounds: 3 -> rounds: 3"
    assert notes[1].startswith("--flower: true -> ignored")
    assert rejections(Path("fedavg"), sensitivity=0.5).keys() == {"--sensitivity (clip_norm)"}


@pytest.mark.parametrize("config", ["fedavg", "fl-provider-dp"])
def test_use_dp_never_seems_to_work_where_a_file_names_its_method(config: str) -> None:
    assert rejections(Path(config), use_dp=True).keys() == {"--use_dp"}


def test_a_model_config_is_found_by_path_or_by_name(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_model_config(str(config)) == config
    (tmp_path / "configs" / "models").mkdir(parents=True)
    written(tmp_path / "configs" / "models" / "Mine.yml", MODEL)
    monkeypatch.chdir(tmp_path)
    assert find_model_config("Mine") == Path("configs/models/Mine.yml")
    with pytest.raises(ProblemError, match=r"Yours or configs/models/Yours\.yml"):
        find_model_config("Yours")
