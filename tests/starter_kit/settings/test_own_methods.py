"""A method that is a file of the participant's own: found, known by its content, and kept with the run."""

import hashlib
from pathlib import Path

import pytest
import yaml

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.own_files import errors_reported, run_own_file
from starter_kit.runs.executed_code import code_sha256
from starter_kit.settings.configuration import load_settings, snapshot
from starter_kit.settings.own_methods import check_returns, own_file

CONFIG = """
method: my_method.py
experiment: mine
rounds: 2
local: {learning_rate: 0.01}
"""
OWN = """
from starter_kit.methods import fedavg

class Settings(fedavg.Settings):
    own: int = 3
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "my_method.py").write_text(OWN)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return str(tmp_path / "mine.yaml")


def rejection(config: str, *changes: str) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        load_settings(config, changes)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    return caught.value


def test_it_is_found_beside_the_config_and_has_its_own_settings(config: str) -> None:
    assert load_settings(config, ["own=4"]).model_dump()["own"] == 4
    assert "own" in rejection(config, "own=x").problem.where


def test_it_may_be_named_from_the_current_folder(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings("fedavg", ["method=./my_method.py", "trainable=null"])
    assert settings.method == "my_method.py"


@pytest.mark.parametrize(
    "text", ["", "Settings = 3", "class Settings: pass", "from starter_kit.methods.fedavg import Settings"]
)
def test_a_file_without_settings_of_its_own_is_no_method(config: str, text: str) -> None:
    Path(config).with_name("my_method.py").write_text(text)
    assert "class Settings" in rejection(config).problem.expected


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("x = 1\ndef", 2, "SyntaxError"),
        ("\n\nimport nothing_at_all", 3, "No module named 'nothing_at_all'"),
        ("from pathlib import Path\nPath('/nowhere/at/all').read_text()", 2, "FileNotFoundError"),
        ("import sys\nsys.exit(0)", 2, "SystemExit"),
    ],
)
def test_what_is_wrong_with_the_file_is_reported_with_its_line(
    config: str, text: str, line: int, found: str
) -> None:
    Path(config).with_name("my_method.py").write_text(text)
    problem = rejection(config).problem
    assert problem.where.endswith(f"my_method.py, line {line}")
    assert found in problem.found


def test_the_settings_of_a_run_name_the_file_by_its_hash_and_read_back(config: str, tmp_path: Path) -> None:
    settings = load_settings(config, ["own=5"])
    kept = yaml.safe_load(snapshot(settings))
    assert kept["method"] == "my_method.py"
    assert kept["method_sha256"] == hashlib.sha256(OWN.encode()).hexdigest()
    run = tmp_path / "run"
    run.mkdir()
    (run / "settings.yaml").write_text(snapshot(settings))
    file = own_file(type(settings))
    assert file is not None
    file.keep(run)
    again = load_settings(str(run / "settings.yaml"))
    assert again.model_dump() == settings.model_dump()
    assert snapshot(again) == snapshot(settings)


def test_another_file_of_the_name_is_not_taken_for_it(config: str, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(snapshot(load_settings(config)))
    (tmp_path / "my_method.py").write_text(OWN + "# changed")
    problem = rejection(str(tmp_path / "settings.yaml")).problem
    assert problem.where == "settings.yaml, method_sha256"
    assert str(tmp_path / "my_method.py") in problem.found


def test_what_was_run_is_kept_whatever_the_file_has_become_since(config: str, tmp_path: Path) -> None:
    file = own_file(type(load_settings(config)))
    Path(config).with_name("my_method.py").write_text("another")
    (tmp_path / "run").mkdir()
    assert file is not None
    file.keep(tmp_path / "run")
    assert (tmp_path / "run" / "my_method.py").read_text() == OWN


def test_the_file_is_part_of_what_the_training_record_calls_the_code(config: str) -> None:
    before = code_sha256(more=snapshot(load_settings(config)))
    Path(config).with_name("my_method.py").write_text(OWN + "# changed")
    assert code_sha256(more=snapshot(load_settings(config))) != before


def test_two_files_of_one_name_are_two_methods(config: str) -> None:
    first = load_settings(config)
    Path(config).with_name("my_method.py").write_text(OWN + "# changed")
    second = load_settings(config)
    assert snapshot(first) != snapshot(second)
    assert hashlib.sha256(OWN.encode()).hexdigest() in snapshot(first)


def test_the_kits_own_methods_have_no_file_to_keep() -> None:
    settings = load_settings("fedavg")
    assert own_file(type(settings)) is None
    assert "method_sha256" not in snapshot(settings)
    assert "method_sha256" in rejection("fedavg", "method_sha256=x").problem.where


FORGETFUL = """
class Forgetful:
    def choose_clients(self, clients, stream):
        return [*clients, 99]

    def client_update(self, task):
        task.copy()

    def accumulator(self, weights, state):
        return dict()

    def aggregate(self, weights, received, state):
        return weights
"""


@pytest.mark.parametrize(
    ("step", "arguments", "line", "expected"),
    [
        ("choose_clients", ([1, 2], None), 3, "choose_clients returns a list of some of the clients"),
        ("client_update", (set(),), 6, "client_update returns a ClientUpdate"),
        ("accumulator", (0, {}), 9, "accumulator returns an Accumulator"),
        ("aggregate", (0, 0, {}), 12, "aggregate returns an Aggregate"),
    ],
)
def test_what_a_step_returns_by_mistake_is_reported_with_its_line(
    tmp_path: Path, step: str, arguments: tuple[object, ...], line: int, expected: str
) -> None:
    path = tmp_path / "forgetful.py"
    path.write_text(FORGETFUL)
    method = run_own_file(path).Forgetful()
    check_returns(method)
    with pytest.raises(ProblemError) as rejected:
        getattr(method, step)(*arguments)
    problem = rejected.value.problem
    assert (problem.code, problem.where) == (ErrorCode.CONFIGURATION, f"{path}, line {line}")
    assert problem.expected == expected


def test_code_that_ends_the_program_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "leaving.py"
    path.write_text("def leave():\n    raise SystemExit(3)\n")
    leave = run_own_file(path).leave
    with pytest.raises(ProblemError, match=r"leaving\.py, line 2"), errors_reported():
        leave()
    with pytest.raises(SystemExit), errors_reported():
        raise SystemExit(3)
