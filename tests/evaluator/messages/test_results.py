import pytest

from evaluator.messages.jobs import Check, CheckStatus, CommunicationResult, ScoringResult, ValidationResult
from evaluator.messages.results import RunResults, supported_decimals, unbound_by

SHA256 = "0" * 64
PASSED = Check(id="log.directions", status=CheckStatus.PASSED)
FLAGGED = Check(id="log.message_sizes", status=CheckStatus.FLAGGED, found="0.1 bits")
COMMUNICATION = CommunicationResult(
    rounds=3, messages=6, bytes_total=6000, bytes_down=3000, bytes_up=3000, bytes_needed=500, checks=[FLAGGED]
)
SCORING = ScoringResult(
    anls=0.5, accuracy=0.25, questions=8, test_set_sha256=SHA256, checkpoint_sha256=SHA256
)


def test_results_of_steps_add_up():
    results = RunResults(checks=[PASSED]).including(COMMUNICATION).including(SCORING)
    assert results == RunResults(
        bytes_total=6000,
        bytes_needed=500,
        log_flag="log.message_sizes",
        log_rounds=COMMUNICATION.rounds,
        anls=0.5,
        accuracy=0.25,
        decimals=1,
        checks=[PASSED, FLAGGED],
    )
    assert results.flagged_checks == 1


def test_a_flag_matters_where_the_log_is_the_word_of_the_team():
    counted = COMMUNICATION.model_copy(update={"counting": "counted", "rounds_folded": 3, "bytes_sent": 7000})
    results = RunResults().including(counted)
    assert (results.log_flag, results.counting, results.rounds_folded) == ("", "counted", 3)
    large = RunResults().including(counted.model_copy(update={"rounds": 30}))
    assert large.counting_label == "counted, 3 of 30 rounds"
    assert results.model_copy(update={"log_rounds": 3}).counting_label == "counted"
    assert (results.bytes_total, results.bytes_sent) == (6000, 7000)
    assert RunResults().including(COMMUNICATION.model_copy(update={"checks": [PASSED]})).log_flag == ""


def test_a_step_without_results_of_the_run_changes_nothing():
    validation = ValidationResult(tensors=2, parameters=10, sha256=SHA256, changed=[])
    assert RunResults(anls=0.5).including(validation) == RunResults(anls=0.5)


def test_a_result_of_another_version_is_ignored():
    assert RunResults.model_validate({"anls": 0.5, "invented": 1}) == RunResults(anls=0.5)


def test_a_score_has_as_many_decimals_as_its_questions_support():
    sizes = (1, 8, 200, 1_200, 5_000, 43_591, 1_000_000)
    assert [supported_decimals(size) for size in sizes] == [1, 1, 2, 2, 2, 3, 4]
    # The last digit is never worth less than a third of half the largest standard error.
    assert all(10 ** -supported_decimals(size) > 1 / (4 * size**0.5) / 3.2 for size in sizes)


@pytest.mark.parametrize("status", sorted(set(CheckStatus) - {CheckStatus.PASSED}))
def test_a_run_whose_linkage_did_not_pass_is_unbound(status: CheckStatus):
    linkage = Check(id="record.linkage", status=status)
    assert unbound_by([PASSED, linkage]) == f"record.linkage: {status.replace('_', ' ')}"


def test_a_run_is_bound_by_a_check_that_passed_and_not_by_one_that_was_not_made():
    linkage = Check(id="record.linkage", status=CheckStatus.PASSED)
    whole = Check(id="record.whole_change", status=CheckStatus.NOT_APPLICABLE)
    shape = Check(id="record.noise_shape", status=CheckStatus.NOT_APPLICABLE)
    alignment = Check(id="record.alignment", status=CheckStatus.NO_POWER)
    assert unbound_by([linkage, whole, shape, alignment, FLAGGED]) == ""
    aligned = Check(id="record.alignment", status=CheckStatus.FLAGGED)
    assert unbound_by([linkage, whole, shape, aligned]) == "record.alignment: flagged"
    moved = Check(id="record.noise_shape", status=CheckStatus.FLAGGED)
    assert unbound_by([linkage, whole, moved, alignment]) == "record.noise_shape: flagged"
    assert unbound_by([linkage, whole]) == "record.noise_shape: not made"
    assert unbound_by([linkage]) == "record.whole_change: not made"
    assert unbound_by([PASSED]) == "record.linkage: not made"
