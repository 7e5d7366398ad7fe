"""An examination: honest methods pass, others end in a failed test or a coded error.

Honest methods fail with a probability below 10⁻⁹ in each examination: see `starter_kit.conformance.statistics`.
"""

from pathlib import Path

import pytest

from evaluator.messages.examinations import Verdict
from starter_kit.conformance.examination import examine
from starter_kit.conformance.processes import examine_apart, fresh_process_test
from starter_kit.conformance.results import Group, Inputs, Result
from starter_kit.scaffolding.writing import write_method
from tests.studies.conformance.counting import private_configs

HEAD = """
from starter_kit.methods import fl_provider_dp
class Settings(fl_provider_dp.Settings):
    def extend(self, method, clients):
"""


def own_method(folder: Path, body: str) -> str:
    """Write a method whose `extend` has this body, and return the path of its settings."""
    write_method("odd", folder, private=True)
    (folder / "odd.py").write_text(HEAD + "\n".join(f"        {line}" for line in body.splitlines()) + "\n")
    config = folder / "odd.yaml"
    config.write_text(config.read_text().replace("momentum: 0.5\n", ""))
    return str(config)


def codes(result: Result) -> list[str]:
    return [problem.code for problem in result.problems]


# All groups of FL-PROVIDER-DP are in tests/docvqa_site and tests/e2e, where the judge is a process. Its
# other configs differ from it in what a codec, an adapter or an optimizer does.
@pytest.mark.parametrize("config", ["client-dp", "laplace-iadmm"])
def test_contributions_of_other_units_conform(config: str) -> None:
    only = [Group.CONTRIBUTIONS, Group.NOT_FINITE]
    result = examine(Inputs(method=config, seed=5, only=only))
    assert result.problems == []
    assert result.failed == []


@pytest.mark.parametrize("config", ["dp-clgecl", "client-dp", "laplace-iadmm", "centralized-dp"])
def test_updates_of_every_length_long_runs_and_large_models_of_other_methods_conform(config: str) -> None:
    only = [Group.LENGTHS, Group.LONG_RUN, Group.LARGE_MODEL]
    result = examine(Inputs(method=config, seed=5, only=only))
    assert result.problems == []
    assert result.failed == []


@pytest.mark.parametrize("config", ["dp-clgecl", "secure-aggregation", "laplace-fedavg", "centralized-dp"])
def test_noise_and_contributions_of_other_methods_conform(config: str) -> None:
    only = [Group.NOISE, Group.CARRIED]
    result = examine(Inputs(method=config, seed=6, only=only))
    assert result.problems == []
    assert result.failed == []


def test_clients_that_are_sampled_too_conform() -> None:
    changes = ["sampling={type: poisson, client_rate: 0.5, provider_rate: 0.4}"]
    only = [Group.NOISE, Group.EMPTY, Group.SAMPLING]
    result = examine(Inputs(method="fl-provider-dp", changes=changes, seed=7, only=only))
    assert result.problems == []
    assert result.failed == []
    assert "sampling-rate-of-clients" in [test.id for test in result.tests]


def test_random_allocation_conforms() -> None:
    only = [Group.SAMPLING, Group.CARRIED]
    result = examine(Inputs(method="random-allocation", seed=7, only=only))
    assert result.problems == []
    assert result.failed == []
    passed = {test.id for test in result.tests if test.verdict is Verdict.PASSED}
    assert {"allocation-in-each-cycle", "allocation-of-each-client", "allocation-in-two-runs"} <= passed


def test_coins_of_clients_and_their_providers_are_not_tested_as_if_they_were_one() -> None:
    result = examine(Inputs(method="full/fl-provider-dp-epsilon-1", seed=5, only=[Group.SAMPLING]))
    assert result.failed == [], "its amplification rule `product` is for accounting only"


def test_rounds_without_any_client_are_tested_where_they_release_something() -> None:
    changes = ["sampling={type: poisson, client_rate: 0.5, provider_rate: 1}"]
    by_server = Inputs(method="fl-provider-dp", changes=changes, seed=5, only=[Group.EMPTY])
    assert [test.verdict for test in examine(by_server).tests] == [Verdict.PASSED]
    by_clients = by_server.model_copy(update={"changes": [*changes, "placement=client_full"]})
    (test,) = examine(by_clients).tests
    assert (test.verdict, test.note) == (Verdict.NOT_APPLICABLE, "a round without clients has no messages")


def test_the_method_that_the_kit_writes_conforms(tmp_path: Path) -> None:
    write_method("clever_idea", tmp_path, private=True)
    only = [Group.CONTRIBUTIONS]
    result = examine(Inputs(method=str(tmp_path / "clever_idea.yaml"), seed=8, only=only))
    assert result.problems == []
    assert result.failed == []
    assert len(result.method_sha256) == 64
    followed = next(test for test in result.tests if test.id == "model-follows-from-releases")
    assert followed.verdict is Verdict.PASSED, "momentum is linear in the released sums"


def test_all_private_configs_are_counted() -> None:
    assert set(private_configs()) >= {
        "fl-provider-dp",
        "client-dp",
        "dp-clgecl",
        "laplace-fedavg",
        "laplace-iadmm",
        "plugins/private-fedadam",
    }


def test_a_method_without_privacy_is_unsupported() -> None:
    assert codes(examine(Inputs(method="fedavg", seed=1))) == ["E_CONFORMANCE_UNSUPPORTED"]


def test_a_sample_too_large_for_synthetic_data_is_unsupported() -> None:
    changes = ["sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 1000000000}"]
    found = codes(examine(Inputs(method="fl-provider-dp", changes=changes, seed=1)))
    assert found == ["E_CONFORMANCE_UNSUPPORTED"]


def test_a_file_that_cannot_run_is_a_coded_error(tmp_path: Path) -> None:
    config = own_method(tmp_path, "import no_such_module")
    (tmp_path / "odd.py").write_text("import no_such_module\n")
    assert codes(examine(Inputs(method=config, seed=1))) == ["E_CONFORMANCE_IMPORT"]


def test_a_method_that_raises_is_a_coded_error(tmp_path: Path) -> None:
    result = examine(Inputs(method=own_method(tmp_path, "raise RuntimeError('not today')"), seed=1))
    assert codes(result) == ["E_CONFORMANCE_FAILED"]
    assert "not today" in result.problems[0].found


@pytest.mark.parametrize("value", ["inf", "nan", "1e30"])
def test_values_that_are_huge_or_not_finite_are_a_coded_error(tmp_path: Path, value: str) -> None:
    body = f"""
object.__setattr__(method, 'aggregate', lambda w, received, state: fl_provider_dp.Aggregate(w + float('{value}'), w))
return method"""
    config = own_method(tmp_path, body.strip())
    assert codes(examine(Inputs(method=config, seed=1))) == ["E_CONFORMANCE_VALUES"]


def test_a_method_that_hangs_or_exits_is_a_coded_error(tmp_path: Path) -> None:
    exits = own_method(tmp_path / "exits", "import os\nos._exit(3)")
    result = examine_apart(Inputs(method=exits, seed=1))
    assert codes(result) == ["E_CONFORMANCE_CRASHED"]
    assert "exit status 3" in result.problems[0].found
    hangs = own_method(tmp_path / "hangs", "while True: pass")
    assert codes(examine_apart(Inputs(method=hangs, seed=1), timeout_s=1)) == ["E_CONFORMANCE_TIMEOUT"]


def test_the_same_noise_in_two_processes_fails_and_other_noise_passes() -> None:
    assert fresh_process_test([1.0, -2.0, 0.5] * 100, [1.0, -2.0, 0.5] * 100).verdict is Verdict.FAILED
    assert fresh_process_test([1.0, -1.0] * 100, [1.0, 1.0] * 100).verdict is Verdict.PASSED
    assert fresh_process_test([], []).verdict is Verdict.NO_POWER


def test_a_result_survives_json() -> None:
    result = examine(Inputs(method="fl-provider-dp", seed=9, only=[Group.EMPTY]))
    assert Result.model_validate_json(result.model_dump_json()) == result
