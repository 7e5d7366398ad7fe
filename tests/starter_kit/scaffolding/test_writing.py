"""`pfl new`: what is written works as it is, for somebody who has the kit and nothing else."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import CheckStatus, PrivacyRules, TrackRules
from starter_kit.commands.new import plugin_files
from starter_kit.evaluation.steps import check_run
from starter_kit.federation.rounds import Client
from starter_kit.plugin import PluginKind
from starter_kit.scaffolding.writing import TEMPLATES, write_method
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.plugin_list import KINDS as PLUGINS
from tests.services.forked import Forked
from tests.starter_kit.scaffolding.own_test import FILE, as_a_script, by_pytest
from tests.starter_kit.training_runs import accounting, trained
from tests.test_proofs import PARTS

CLIENTS = [Client(c, {f"{c}-{n}": [0] for n in range(40)}) for c in range(10)]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONPATH": str(Path(__file__).parents[3]),
}
KINDS = pytest.mark.parametrize("private", [False, True], ids=["public", "private"])


@KINDS
def test_the_files_carry_the_methods_name_and_nothing_of_the_templates(tmp_path: Path, private: bool) -> None:
    files = write_method("clever_idea", tmp_path / "new", private=private)
    names = ["clever_idea.py", "clever_idea.yaml", "test_clever_idea.py"] + ["clever_idea_proof.md"] * private
    assert sorted(path.name for path in files) == sorted(names)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    text = "".join(path.read_text() for path in files)
    assert "my_method" not in text
    assert "MyMethod" not in text
    assert "class CleverIdea" in text


def run_its_test(folder: Path, program: Callable[[], None]) -> tuple[int, str]:
    """Run the method's own test; return its exit status and what it printed."""
    printed = folder / "printed"
    ran = Forked(
        program,
        [FILE],
        environment=ENVIRONMENT,
        folder=folder,
        stdout=printed,
        stderr=printed,
    )
    return ran.wait(600), printed.read_text()


@KINDS
def test_its_own_test_passes_outside_of_this_repository_and_without_pytest(
    tmp_path: Path, private: bool
) -> None:
    write_method("clever_idea", tmp_path, private=private)
    (tmp_path / "pytest.py").write_text("raise ModuleNotFoundError('as where the kit alone is installed')")
    if private:
        ran = subprocess.run(
            [sys.executable, FILE],
            cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        status, printed = ran.returncode, ran.stdout + ran.stderr
    else:
        status, printed = run_its_test(tmp_path, as_a_script)
    assert status == 0, printed
    assert "a round is what the equations say ... ok" in printed
    assert "Ran 4 tests" in printed


def test_pytest_runs_its_own_test_too(tmp_path: Path) -> None:
    write_method("clever_idea", tmp_path, private=False)
    status, printed = run_its_test(tmp_path, by_pytest)
    assert status == 0, printed
    assert "4 passed" in printed


def test_its_own_test_reports_a_failure_by_its_status_too(tmp_path: Path) -> None:
    write_method("clever_idea", tmp_path, private=False)
    method = tmp_path / "clever_idea.py"
    method.write_text(method.read_text().replace("self.momentum * state", "0.9 * state"))
    status, printed = run_its_test(tmp_path, as_a_script)
    assert status == 1
    assert "a round is what the equations say ... FAIL" in printed
    assert "the same seed gives the same run ... ok" in printed


@pytest.mark.parametrize(
    ("old", "new"),
    [("self.momentum * state", "0.9 * state"), ("self.server_learning_rate * velocity", "velocity")],
)
@KINDS
def test_its_own_test_fails_when_a_step_is_not_what_the_equations_say(
    tmp_path: Path, private: bool, old: str, new: str
) -> None:
    write_method("clever_idea", tmp_path, private=private)
    check = runpy.run_path(str(tmp_path / "test_clever_idea.py"))["test_a_round_is_what_the_equations_say"]
    check()
    method = tmp_path / "clever_idea.py"
    assert old in method.read_text()
    method.write_text(method.read_text().replace(old, new))
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("kind", PLUGINS, ids=lambda kind: kind.setting)
def test_a_plugin_works_as_it_is_written(tmp_path: Path, base: Path, data: Path, kind: PluginKind) -> None:
    files = plugin_files(kind.option, "clever_idea", tmp_path)
    assert sorted(path.name for path in files) == [
        "clever_idea.py",
        "clever_idea.yaml",
        "test_clever_idea.py",
    ]
    assert not any("my_plugin" in path.read_text() for path in files)
    tests = runpy.run_path(str(tmp_path / "test_clever_idea.py"))
    for name in [name for name in tests if name.startswith("test_")]:
        tests[name]()
    run = trained(str(tmp_path / "clever_idea.yaml"), base, data, tmp_path / "run", ["rounds=1"])
    rules = TrackRules(reference="local", test_set="local", clients=3, max_rounds=10)
    assert all(outcome.accepted for outcome in check_run(run, rules, base))


@KINDS
def test_it_trains_and_its_run_is_accepted(tmp_path: Path, data: Path, base: Path, private: bool) -> None:
    write_method("clever_idea", tmp_path, private=private)
    run = trained(str(tmp_path / "clever_idea.yaml"), base, data, tmp_path / "run", ["rounds=4"])
    rules = TrackRules(
        reference="local",
        test_set="local",
        clients=3,
        max_rounds=10,
        privacy=PrivacyRules(epsilon=8, delta=1e-5) if private else None,
    )
    assert all(outcome.accepted for outcome in check_run(run, rules, base))
    if private:
        (found,) = (check for check in accounting(run.files(), base).checks if check.id == "record.linkage")
        assert (found.status, found.found.split(",")[0]) == (
            CheckStatus.PASSED,
            "4 rounds with the update rule momentum; every block is opened",
        )


def test_a_private_one_claims_what_it_is_given_and_says_what_its_server_does() -> None:
    settings = load_settings(str(TEMPLATES / "private" / "my_method.yaml"))
    plan = settings.plan(CLIENTS)
    assert plan.guarantee is not None
    assert plan.record_terms is not None
    assert plan.record_terms.server.rule == "momentum"
    assert 7.9 < plan.guarantee.epsilon(plan.rounds) <= 8


def test_its_proof_has_the_parts_that_are_asked_for(tmp_path: Path) -> None:
    write_method("clever_idea", tmp_path, private=True)
    text = (tmp_path / "clever_idea_proof.md").read_text()
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == PARTS


@KINDS
def test_the_config_holds_settings_only_that_the_method_has(tmp_path: Path, private: bool) -> None:
    _, config, *_ = sorted(write_method("clever_idea", tmp_path, private=private))
    values = yaml.safe_load(config.read_text())
    assert values["method"] == "clever_idea.py"
    assert set(values) <= set(load_settings(str(config)).model_dump())


@pytest.mark.parametrize(
    "name",
    ["", "my-method", "My_method", "3d", "a/b", "../up", "class", "torch", "json", "a" * 50, "naïve", "a.py"],
)
def test_what_is_no_name_for_a_file_of_python_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProblemError) as caught:
        write_method(name, tmp_path, private=False)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("existing", ["clever_idea.py", "clever_idea.yaml", "clever_idea_proof.md"])
def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("mine")
    with pytest.raises(ProblemError) as caught:
        write_method("clever_idea", tmp_path, private=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert existing in caught.value.problem.where
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"
