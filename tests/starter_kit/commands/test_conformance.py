"""`pfl conformance`: what it prints, and its exit status."""

import json
from pathlib import Path

import pytest

from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.commands.conformance import verdict
from starter_kit.conformance.results import Result
from tests.starter_kit.commands.pfl import pfl
from tests.studies.mutants.catalog import SETTINGS


@pytest.mark.slow
def test_a_mutant_ends_with_status_1_and_its_tests_are_printed_as_json() -> None:
    """Its noise is that of a generator which every process seeds alike: only a second process finds that."""
    printed = pfl(
        "conformance", SETTINGS, "--set", "mutant=global-generator", "--seed", 12, "--json", status=1
    ).stdout
    verdicts = {test["id"]: test["verdict"] for test in json.loads(printed)["tests"]}
    assert verdicts["noise-scale"] == "passed"
    assert [name for name, verdict in verdicts.items() if verdict == "failed"] == ["noise-of-two-processes"]


def test_what_is_printed_ends_with_a_verdict() -> None:
    ended = pfl("conformance", "fedavg", "--seed", 3, status=2)
    assert "E_CONFORMANCE_UNSUPPORTED" in ended.stderr
    assert "doesn't conform" in ended.stdout


def test_a_method_that_cannot_be_examined_ends_with_status_2(tmp_path: Path) -> None:
    assert "E_CONFIGURATION" in pfl("conformance", tmp_path / "no.yaml", status=2).stderr


def test_the_verdict_names_the_tests_without_power() -> None:
    tests = [
        ConformanceTest(id="noise-scale", measures="noise", verdict=Verdict.PASSED),
        ConformanceTest(id="constant-divisor", measures="factors", verdict=Verdict.NO_POWER),
    ]
    assert "except that these tests had no power: constant-divisor. " in verdict(
        Result(method="m", unit="provider", tests=tests)
    )
    assert "no power" not in verdict(Result(method="m", unit="provider", tests=tests[:1]))
