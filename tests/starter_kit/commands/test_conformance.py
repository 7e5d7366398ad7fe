"""`pfl conformance`: what it prints, and its exit status."""

import json
from pathlib import Path

from starter_kit.conformance.mutants.catalog import SETTINGS
from tests.starter_kit.commands.pfl import pfl


def test_a_mutant_ends_with_status_1_and_its_tests_are_printed_as_json() -> None:
    printed = pfl(
        "conformance", SETTINGS, "--set", "mutant=half-noise", "--seed", 3, "--json", status=1
    ).stdout
    verdicts = {test["id"]: test["verdict"] for test in json.loads(printed)["tests"]}
    assert verdicts["noise-scale"] == "failed"
    assert verdicts["noise-of-two-processes"] == "passed"


def test_what_is_printed_ends_with_a_verdict() -> None:
    ended = pfl("conformance", "fedavg", "--seed", 3, status=2)
    assert "E_CONFORMANCE_UNSUPPORTED" in ended.stderr
    assert "doesn't conform" in ended.stdout


def test_a_method_that_cannot_be_examined_ends_with_status_2(tmp_path: Path) -> None:
    assert "E_CONFIGURATION" in pfl("conformance", tmp_path / "no.yaml", status=2).stderr
