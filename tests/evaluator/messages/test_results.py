from evaluator.messages.jobs import Check, CheckStatus, CommunicationResult, ScoringResult, ValidationResult
from evaluator.messages.results import RunResults

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
        bytes_total=6000, bytes_needed=500, anls=0.5, accuracy=0.25, checks=[PASSED, FLAGGED]
    )
    assert results.flagged_checks == 1


def test_a_step_without_results_of_the_run_changes_nothing():
    validation = ValidationResult(tensors=2, parameters=10, sha256=SHA256, changed=[])
    assert RunResults(anls=0.5).including(validation) == RunResults(anls=0.5)


def test_a_result_of_another_version_is_ignored():
    assert RunResults.model_validate({"anls": 0.5, "invented": 1}) == RunResults(anls=0.5)
