from pathlib import Path

from evaluator.messages.jobs import ArtifactKind
from starter_kit.runs.code_identity import differing_terms
from tests.starter_kit.training_runs import RUN_TOKEN, trained


def test_trainings_of_the_same_settings_have_the_same_terms(base: Path, data: Path, tmp_path: Path) -> None:
    changes = ["rounds=1", "replayable=true"]
    submitted, repeated, other = (
        str(
            trained(
                "fl-provider-dp", base, data, tmp_path / name, [*changes, f"clip_norm={clip}"], token
            ).file(ArtifactKind.TRAINING_RECORD)
        )
        for name, clip, token in (("submitted", 1, RUN_TOKEN), ("repeated", 1, None), ("other", 2, None))
    )
    assert differing_terms({"submitted": submitted, "repeated": repeated}, print) == []
    assert differing_terms({"submitted": submitted, "repeated": other}, print) == ["clip_norm"]


def test_noise_that_another_processor_computed_otherwise_in_the_last_digits_is_the_same(
    base: Path, data: Path, tmp_path: Path
) -> None:
    paths = [
        str(
            trained(
                "fl-provider-dp", base, data, tmp_path / name, ["rounds=1", f"noise_multiplier={noise!r}"]
            ).file(ArtifactKind.TRAINING_RECORD)
        )
        for name, noise in (("one", 0.7), ("other", 0.7 * (1 + 1e-13)), ("third", 0.7 * (1 + 1e-6)))
    ]
    assert differing_terms({"submitted": paths[0], "repeated": paths[1]}, print) == []
    assert differing_terms({"submitted": paths[0], "repeated": paths[2]}, print) == [
        "noise",
        "claimed_epsilon",
    ]
