from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.methods import fedavg, fl_provider_dp
from starter_kit.settings.config_files import CONFIGS, config_names, find_config, method_names
from starter_kit.settings.configuration import load_settings, snapshot
from tests.starter_kit.settings.federation import FEDERATION

SMALL = """
method: fedavg
experiment: mine
rounds: 2
local: {learning_rate: 0.01}
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def rejection(config: str, *changes: str) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        load_settings(config, changes)
    assert all(problem.code is ErrorCode.CONFIGURATION for problem in caught.value.problems)
    return caught.value


@pytest.mark.parametrize("path", sorted((CONFIGS / "tiny").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_config_for_the_tiny_model_is_found_by_its_name_alone_and_loads(path: Path) -> None:
    assert find_config(path.stem) == find_config(f"tiny/{path.stem}") == path
    assert load_settings(path.stem).experiment == path.stem


@pytest.mark.parametrize("path", sorted((CONFIGS / "full").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_config_for_the_real_model_is_found_by_its_folder_and_loads(path: Path) -> None:
    assert find_config(f"full/{path.stem}") == path
    assert load_settings(f"full/{path.stem}").experiment == path.stem


def test_every_method_has_a_config_for_the_real_model() -> None:
    assert {load_settings(name).method for name in config_names() if "/" in name} == set(method_names())


@pytest.mark.parametrize("epsilon", [1, 4, 8])
def test_published_noise_gives_the_published_epsilon_by_the_published_rule(epsilon: int) -> None:
    """Table A8 of the privacy-aware DocVQA paper, with ten clients of at least 400 providers."""
    for method in ("fl-provider-dp", "centralized-dp"):
        plan = load_settings(f"full/{method}-epsilon-{epsilon}").plan(FEDERATION)
        assert plan.guarantee
        assert 0.98 * epsilon < plan.guarantee.epsilon(plan.rounds) <= epsilon


def test_the_private_baseline_of_the_competition_has_its_published_numbers() -> None:
    """Section A.4.2 of the competition paper: K = 2 of ten clients, M = 50 of at least 400 providers, clip norm 0.5."""
    settings = load_settings("full/fl-provider-dp-track-2")
    assert isinstance(settings, fl_provider_dp.Settings)
    terms = settings.plan(FEDERATION).record_terms
    assert terms
    assert terms.mechanism.sampling.clients(10).mean == 2
    assert terms.mechanism.sampling.providers(400).mean == 50
    assert (settings.rounds, settings.clip_norm, settings.delta) == (5, 0.5, 1e-5)


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, SMALL))
    assert isinstance(settings, fedavg.Settings)
    assert (settings.rounds, settings.clients_per_round, settings.local.learning_rate) == (2, 2, 0.01)


def test_changes_reach_top_and_nested_settings() -> None:
    settings = load_settings("fedavg", ["rounds=7", "local.learning_rate=0.5", "trainable=['*.wo.weight']"])
    assert isinstance(settings, fedavg.Settings)
    assert settings.rounds == 7
    assert settings.local.learning_rate == 0.5
    assert settings.trainable == ["*.wo.weight"]


def test_the_budget_is_chosen_on_the_command_line() -> None:
    settings = load_settings("fl-provider-dp", ["target_epsilon=4"])
    assert isinstance(settings, fl_provider_dp.Settings)
    assert settings.target_epsilon == 4


def test_a_snapshot_reads_back_the_same(tmp_path: Path) -> None:
    for name in ("fedavg", "fl-provider-dp"):
        settings = load_settings(name)
        assert load_settings(written(tmp_path, snapshot(settings))) == settings


def test_an_unknown_setting_is_named_never_ignored() -> None:
    problem = rejection("fedavg", "learning_rate=1").problem
    assert problem.where == "--set learning_rate"
    assert "clients_per_round" in problem.expected
    assert "local.learning_rate" in problem.next_step
    nested = rejection("fedavg", "lora.ranks=3").problem
    assert nested.where == "--set lora.ranks"
    assert nested.expected == "one of alpha, dropout, rank, targets, type"
    assert "lora.rank" in nested.next_step


def test_all_known_settings_are_listed_however_many(tmp_path: Path) -> None:
    text = SMALL.replace("fedavg", "fl-provider-dp") + "nothing: 1"
    unknown = rejection(written(tmp_path, text)).problems[-1]
    assert unknown.where == "mine.yaml, nothing"
    assert unknown.expected == f"one of {', '.join(sorted(fl_provider_dp.Settings.model_fields))}"


def test_all_that_is_wrong_is_reported_at_once() -> None:
    error = rejection("fl-provider-dp", "clip_norm=0", "sampling.provider_rate=2", "local.batch_size=none")
    assert {problem.where: problem.expected for problem in error.problems} == {
        "--set local.batch_size": "whole number, at least 1",
        "--set clip_norm": "number, above 0, at most 1e+12",
        "--set sampling.provider_rate": "number, at least 1e-09, at most 1",
    }


def test_a_file_is_named_where_it_is_wrong_and_the_command_line_where_that_is(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL.replace("rounds: 2", "rounds: two"))
    problems = rejection(path, "local.learning_rate=0").problems
    assert [problem.where for problem in problems] == ["mine.yaml, rounds", "--set local.learning_rate"]
    assert rejection(written(tmp_path, "method: fedavg")).problems[0].found == "nothing"


@pytest.mark.parametrize(
    ("change", "expected", "found"),
    [
        ("rounds=2.5", "whole number, at least 0", "2.5"),
        ("rounds=true", "whole number, at least 0", "true"),
        ("rounds='5'", "whole number, at least 0", '"5", which is text'),
        ("dropout=1", "true or false", "1"),
        ("experiment=3", "text, up to 100 letters, digits, dots, hyphens and underscores", "3"),
        ("trainable=all", "list of texts, not empty, or null", '"all"'),
        ("frozen=[3]", "list of texts", "3"),
        ("local=3", "group of epochs, max_steps", "3"),
        ("device=gpu", "cpu, cuda or mps", '"gpu"'),
        ("local.optimizer=adam", "one of adamw, sgd, shampoo; a Python file", "adam"),
    ],
)
def test_the_expected_type_is_described_and_nothing_is_converted(
    change: str, expected: str, found: str
) -> None:
    problem = rejection("fedavg", change).problem
    assert problem.expected.startswith(expected)
    assert problem.found == found


def test_numbers_are_read_as_people_write_them(tmp_path: Path) -> None:
    of_file = load_settings(written(tmp_path, SMALL.replace("0.01", "1e-4")))
    of_change = load_settings("fedavg", ["local.learning_rate=2E-5"])
    assert isinstance(of_file, fedavg.Settings)
    assert isinstance(of_change, fedavg.Settings)
    assert (of_file.local.learning_rate, of_change.local.learning_rate) == (1e-4, 2e-5)


def test_a_target_or_the_noise_is_given() -> None:
    assert "give target_epsilon" in rejection("fl-provider-dp", "target_epsilon=null").problem.expected
    settings = load_settings("fl-provider-dp", ["target_epsilon=null", "noise_multiplier=2"])
    assert isinstance(settings, fl_provider_dp.Settings)
    assert settings.noise_multiplier == 2


def test_private_training_has_rounds_while_fedavg_may_have_none() -> None:
    assert load_settings("fedavg", ["rounds=0"]).rounds == 0
    for config in ("fl-provider-dp", "client-dp", "laplace-fedavg"):
        assert "rounds" in rejection(config, "rounds=0").problem.where


def test_an_unknown_name_is_answered_with_those_that_exist() -> None:
    assert ", ".join(config_names()) in rejection("fedavgg").problem.next_step
    assert ", ".join(method_names()) in rejection("fedavg", "method=fedavgg").problem.next_step


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("fedavgg", "fedavg"), ("dplora", "dp-lora"), ("fulll/lora", "full/lora"), ("topK", "plugins/topk")],
)
def test_a_misspelt_name_is_answered_with_the_one_that_is_meant(typed: str, meant: str) -> None:
    said = rejection(typed).problem.next_step
    assert said.startswith("Do you mean ")
    assert meant in said.partition("?")[0].removeprefix("Do you mean ").split(" or ")


def test_a_name_that_is_like_no_other_is_not_guessed() -> None:
    assert rejection("my-thesis").problem.next_step.startswith("The kit's configs are ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- a list", "a list"),
        ("{", "expected the node content"),
        ("", "an empty file"),
        ("a: !!python/object/apply:os.getcwd []", "the Python object object/apply:os.getcwd"),
        ("rounds: 3\nseed: 1\nrounds: 4", "rounds twice"),
        ("local: {epochs: 1, epochs: 2}", "epochs twice"),
        ("rounds: .inf", ".inf, which is no number"),
        ("rounds: 1e999", "1e999, which is no number"),
        ("3: 4", "3 in place of a name"),
        ("{[1]: 4}", "[1] in place of a name"),
        ("experiment: 2025-02-30", "a value that can't be read: day is out of range for month"),
        ("seed: !!int many", "a value that can't be read"),
        ("dropout: !!bool perhaps", "a value that can't be read"),
        ("seed: " + "9" * 5000, "a value that can't be read"),
        ("frozen: &all [*all]", "values that contain themselves"),
        (
            "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(9)).replace(
                "*a-1", "x"
            ),
            "more than 100000 values",
        ),
    ],
)
def test_what_is_no_mapping_of_plain_values_is_rejected(tmp_path: Path, text: str, found: str) -> None:
    problem = rejection(written(tmp_path, text)).problem
    assert found in problem.found
    assert "mine.yaml" in problem.where


def test_a_name_that_no_file_can_have_is_one_of_no_file(tmp_path: Path) -> None:
    assert "no such file" in rejection("a" * 5000).problem.found
    rejection(written(tmp_path, SMALL), f"method={'a' * 5000}.py")


def test_the_line_of_a_file_that_can_not_be_read_is_reported(tmp_path: Path) -> None:
    assert rejection(written(tmp_path, "rounds: 3\nseed: 1\nrounds: 4")).problem.where.endswith(
        "mine.yaml, line 3"
    )


def test_groups_may_be_merged_as_yaml_has_it(tmp_path: Path) -> None:
    lora = load_settings(written(tmp_path, SMALL + "lora: {<<: {rank: 3, alpha: 2.0}, rank: 4}")).lora
    assert lora is not None
    assert (lora.rank, lora.alpha) == (4, 2.0)


@pytest.mark.parametrize("change", ["rounds", "=3", "rounds=[", "rounds=.nan"])
def test_a_change_that_is_no_change_is_rejected(change: str) -> None:
    assert change in rejection("fedavg", change).problem.where


def test_a_change_goes_through_groups_only() -> None:
    problem = rejection("fedavg", "rounds.deep=1").problem
    assert (problem.where, problem.found) == ("rounds.deep", "10")
    assert load_settings("fedavg", ["lora.rank=2"]).lora.rank == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["target_epsilon=0"], "target_epsilon"),
        (["target_epsilon=-1"], "target_epsilon"),
        (["clip_norm=0"], "clip_norm"),
        (["sampling.provider_rate=null"], "number, at least 1e-09, at most 1"),
        (["sampling.clients_per_round=2"], "one of client_rate, provider_rate, type"),
        (
            ["sampling={provider_rate: 1}"],
            "a group with the type full, poisson, fixed_size or random_allocation",
        ),
        (["sampling.type=poison"], "a group with the type full, poisson, fixed_size or random_allocation"),
        (["sampling={type: fixed_size, clients_per_round: 2}"], "whole number, at least 1"),
        (["codec=nf4"], "codec nf4"),
        (["codec=zip"], "float32, nf4"),
        (["local.optimizer=adam"], "adamw, sgd, shampoo"),
        (["lora={dropout: 0.1}"], "lora.dropout does nothing"),
        (["local.optimizer=adamw", "local.momentum=0.5"], "momentum does nothing under adamw"),
        (["delta=1"], "below 1"),
    ],
)
def test_what_can_not_be_private_is_rejected_with_what_can(changes: list[str], said: str) -> None:
    problem = rejection("fl-provider-dp", *changes).problem
    assert said in f"{problem.where} {problem.expected}"
