"""`pfl conformance`: what it prints, and its exit status."""

import json
from pathlib import Path

from starter_kit.conformance.mutants.catalog import SETTINGS
from tests.starter_kit.commands.pfl import pfl


def test_a_mutant_ends_with_status_1_and_names_what_failed() -> None:
    printed = pfl("conformance", SETTINGS, "--set", "mutant=half-noise", "--seed", 3, status=1).stdout
    assert "noise-scale" in printed
    assert "doesn't conform" in printed


def test_a_result_is_printed_as_json() -> None:
    printed = pfl("conformance", SETTINGS, "--seed", 4, "--json").stdout
    result = json.loads(printed)
    assert {test["verdict"] for test in result["tests"]} <= {"passed", "not_applicable"}
    assert result["tests"][-1]["id"] == "noise-of-two-processes"


def test_a_method_that_cannot_be_examined_ends_with_status_2(tmp_path: Path) -> None:
    assert "E_CONFIGURATION" in pfl("conformance", tmp_path / "no.yaml", status=2).stderr
