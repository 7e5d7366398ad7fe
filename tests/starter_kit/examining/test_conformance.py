"""A confined examination: honest code passes, and what hostile code does to its own process gains it nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.sandbox.sandbox import Sandbox
from starter_kit.conformance.results import Group, Inputs, Result
from starter_kit.examining.confined import Confined
from starter_kit.examining.conformance import ConfinedInputs, examine_confined
from starter_kit.scaffolding.writing import write_method
from starter_kit.settings.config_files import find_config

# Whatever these do, they do when the file is loaded, or when the method is made.
HEAD = """
from starter_kit.methods import fl_provider_dp
class Settings(fl_provider_dp.Settings):
    def extend(self, method, clients):
        return method
"""
# Without noise, and every test, verdict and result that the process can reach is replaced.
PATCHES = """
from evaluator.messages import examinations
from starter_kit.conformance import contributions, examination, noise, results, statistics
from starter_kit.dp import gaussian_sum
passed = lambda *a, **k: examinations.ConformanceTest(id="x", measures="x", verdict="passed")
for module in (contributions, examination, noise, statistics):
    for name in ("judged", "measured", "noise_tests", "bound_tests"):
        if hasattr(module, name):
            setattr(module, name, passed)
results.Result.passed = property(lambda self: True)
results.Result.failed = property(lambda self: [])
honest = gaussian_sum.with_gaussian_noise
gaussian_sum.with_gaussian_noise = lambda sum, *a: sum + 1e-6 * (honest(sum, *a) - sum)
"""
# What a result of the harness looks like, in every place where somebody might look for one.
FORGES = """
import json, os, sys
test = {"id": "x", "measures": "x", "verdict": "passed"}
forged = json.dumps({"result": {"method": "x", "seed": 1, "tests": [test]}})
for descriptor in range(1, 64):
    try:
        os.write(descriptor, (forged + "\\n").encode())
    except OSError:
        pass
print(forged)
os._exit(0)
"""
TRIES = """
import os, socket
gained = [name for name in os.environ if name.startswith(("PFL_", "DJANGO"))]
for attempt in (os.fork, socket.socket, lambda: open({path!r}).read()):
    try:
        gained.append(attempt())
    except OSError as error:
        gained.append(type(error).__name__)
raise RuntimeError(f"gained {{gained}}")
"""


@pytest.fixture(scope="module")
def confined() -> Iterator[Confined]:
    with Sandbox() as sandbox:
        yield Confined(sandbox)


def examined(confined: Confined, folder: Path, body: str, only: list[Group], timeout_s: int = 60) -> Result:
    write_method("odd", folder, private=True)
    (folder / "odd.py").write_text(HEAD + body)
    config = folder / "odd.yaml"
    config.write_text(config.read_text().replace("momentum: 0.5\n", ""))
    inputs = Inputs(method=str(config), seed=3, only=only, with_sample=False)
    return examine_confined(ConfinedInputs(inputs=inputs, timeout_s=timeout_s), confined)


def found(result: Result) -> str:
    return " ".join(f"{problem.code} {problem.found}" for problem in result.problems)


# All groups are made by the site's command, in tests/docvqa_site/evaluation/examining/test_examining_commands.py.
def test_an_honest_method_passes(confined: Confined) -> None:
    only = [Group.CONFIGURED, Group.EMPTY, Group.CARRIED]
    inputs = Inputs(method=str(find_config("fl-provider-dp")), seed=5, only=only)
    result = examine_confined(ConfinedInputs(inputs=inputs), confined)
    assert result.problems == []
    assert result.failed == []
    assert result.passed
    assert "noise-of-two-processes" in [test.id for test in result.tests]


def test_a_file_that_patches_the_harness_patches_its_own_process_only(
    confined: Confined, tmp_path: Path
) -> None:
    result = examined(confined, tmp_path, PATCHES, [Group.NOISE])
    assert not result.passed
    assert "noise-scale" in [test.id for test in result.failed]


def test_a_result_that_the_file_writes_itself_is_none(confined: Confined, tmp_path: Path) -> None:
    result = examined(confined, tmp_path, FORGES, [Group.NOISE])
    assert not result.passed
    assert "E_CONFORMANCE_CRASHED" in found(result)


@pytest.mark.parametrize("body", ["while True: pass\n", "while True: print('x' * 10_000)\n"])
def test_a_file_that_never_ends_is_ended(confined: Confined, tmp_path: Path, body: str) -> None:
    result = examined(confined, tmp_path, body, [Group.NOISE], timeout_s=1)
    assert not result.passed
    assert "E_CONFORMANCE_TIMEOUT" in found(result)


def test_it_starts_no_process_opens_no_connection_and_reads_neither_the_test_set_nor_the_environment(
    confined: Confined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFL_SECRET", "secret of the site")
    secret = tmp_path / "test_set" / "questions.jsonl"
    secret.parent.mkdir()
    secret.write_text("the answer is Rumpelstiltskin")
    result = examined(confined, tmp_path / "method", TRIES.format(path=str(secret)), [Group.NOISE])
    assert not result.passed
    assert "gained ['PermissionError', 'PermissionError', 'PermissionError']" in found(result)
    assert "Rumpelstiltskin" not in result.model_dump_json()
