import pytest
from django.core.exceptions import ValidationError

from docvqa_site.challenge.models import Track, validate_patterns
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.units import Adjacency
from evaluator.messages.jobs import ArtifactKind


def test_a_bytes_track_has_one_run_without_a_budget() -> None:
    track = Track(ranking=FEWEST_BYTES.key, reference="vt5-tiny", test_set="demo")
    assert track.run_budgets() == [None]
    assert ArtifactKind.TRAINING_RECORD not in track.kind.run_artifacts
    assert track.rules(None).privacy is None


def test_a_private_track_has_a_run_for_each_budget_and_asks_for_records() -> None:
    track = Track(
        ranking=BEST_ANLS_AT_BUDGET.key, reference="vt5-tiny", test_set="demo", budgets=[1, 4], delta=1e-6
    )
    assert track.run_budgets() == [1.0, 4.0]
    assert {ArtifactKind.TRAINING_RECORD, ArtifactKind.TRAINING_ANNEX} <= set(track.kind.run_artifacts)
    privacy = track.rules(4.0).privacy
    assert privacy is not None
    assert (privacy.epsilon, privacy.delta) == (4.0, 1e-6)


def test_the_two_stage_rule_and_pld_decide_unless_the_track_says_otherwise() -> None:
    track = Track(ranking=BEST_ANLS_AT_BUDGET.key, reference="vt5-tiny", test_set="demo")
    privacy = track.rules(4.0).privacy
    assert privacy is not None
    assert (privacy.sampling_rule, privacy.accountant) == (SamplingRule.TWO_STAGE, Accountant.PLD)
    assert privacy.adjacency == Adjacency.ADD_REMOVE
    track.sampling_rule, track.accountant, track.adjacency = "product", "rdp", "replace"
    privacy = track.rules(4.0).privacy
    assert privacy is not None
    assert (privacy.sampling_rule, privacy.accountant) == (SamplingRule.PRODUCT, Accountant.RDP)
    assert privacy.adjacency == Adjacency.REPLACE


def test_every_tensor_may_change_unless_the_track_says_otherwise() -> None:
    track = Track(ranking=FEWEST_BYTES.key, reference="vt5-tiny", test_set="demo")
    assert track.rules(None).trainable == []
    track.trainable = "  *.bias \n\n\tlanguage_backbone.*\r\n"
    assert track.rules(None).trainable == ["*.bias", "language_backbone.*"]


@pytest.mark.parametrize(
    "text", ["*\n" * 101, "x" * 257, "two words", "it's", 'a"b', "naïve.*", "a\0b", "*.bias\nlayer norm"]
)
def test_patterns_that_are_too_many_or_too_odd_are_not_valid(text: str) -> None:
    with pytest.raises(ValidationError):
        validate_patterns(text)


@pytest.mark.parametrize("text", ["", "\n \n", "*\n" * 100, "x" * 256, "visual.[0-9]*.w?ight\n*.block.1[!0]"])
def test_patterns_up_to_the_limits_are_valid(text: str) -> None:
    validate_patterns(text)
