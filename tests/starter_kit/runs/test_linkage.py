"""What every private method of the kit releases leads to its checkpoint, by the rule that it declares."""

from pathlib import Path

import pytest

from evaluator.contracts import ArtifactKind, CheckStatus, PrivacyRules, TrackRules
from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.annex import MAX_BYTES
from starter_kit.scaffolding.writing import write_method
from tests.starter_kit.training_runs import accounting, trained

RUNS: list[tuple[str, list[str]]] = [
    ("fl-provider-dp", []),
    ("fl-provider-dp", ["sampling.client_rate=0.6", "rounds=5"]),
    ("fl-provider-dp", ["placement=client_full"]),
    ("fl-provider-dp", ["placement=client_full", "codec=nf4"]),
    ("secure-aggregation", []),
    ("centralized-dp", []),
    ("dp-clgecl", []),
    ("dp-clgecl", ["codec=nf4"]),
    ("dp-clgecl-momentum", []),
    ("dp-lora", ["rounds=3"]),
    ("dp-lora", ["trainable=['*.decoder.final_layer_norm.weight']"]),
]


@pytest.mark.parametrize(("config", "changes"), RUNS)
def test_a_genuine_run_is_linked(
    config: str, changes: list[str], base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained(config, base, data, tmp_path / "run", changes)
    clients = 1 if config == "centralized-dp" else 3
    rules = TrackRules(
        reference="local", test_set="local", clients=clients, privacy=PrivacyRules(epsilon=8, delta=1e-5)
    )
    found = {check.id: check for check in accounting(run.files(), base, rules).checks}
    assert found["C21"].status is CheckStatus.PASSED, found["C21"]
    assert found["C3"].status is (CheckStatus.NOT_APPLICABLE if config == "dp-lora" else CheckStatus.PASSED)
    assert run.file(ArtifactKind.TRAINING_ANNEX).stat().st_size < MAX_BYTES


def test_the_templates_own_rule_is_replayed_too(base: Path, data: Path, tmp_path: Path) -> None:
    files = write_method("with_momentum", tmp_path / "method", private=True)
    config = next(str(path) for path in files if path.suffix == ".yaml")
    run = trained(config, base, data, tmp_path / "run", ["rounds=4"])
    (found,) = (check for check in accounting(run.files(), base).checks if check.id == "C21")
    assert (found.status, found.found.split(",")[0]) == (CheckStatus.PASSED, "4 rounds by the rule momentum")


def test_the_evaluator_rejects_the_record_of_another_checkpoint(
    base: Path, data: Path, tmp_path: Path
) -> None:
    ours, other = (
        trained("fl-provider-dp", base, data, tmp_path / name, [f"rounds={rounds}"])
        for name, rounds in (("ours", 2), ("other", 3))
    )
    checkpoint = {ArtifactKind.CHECKPOINT: other.file(ArtifactKind.CHECKPOINT)}
    with pytest.raises(ProblemError) as caught:
        accounting({**ours.files(), **checkpoint}, base)
    assert ErrorCode.RECORD_MODELS in {problem.code for problem in caught.value.problems}
