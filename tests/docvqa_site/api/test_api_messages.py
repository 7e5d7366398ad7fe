"""The messages of the API and the site's models agree on the words that both use."""

import pytest

from docvqa_site.uploads.models import UploadState
from evaluator.messages.file_api import UploadStatus
from evaluator.messages.states import LABELS, ResultStatus, RunState


def test_the_api_knows_every_state_of_an_upload():
    assert set(UploadStatus.model_fields["state"].annotation.__args__) == set(UploadState.values)


@pytest.mark.parametrize("status", [status for status in ResultStatus if status not in LABELS])
def test_people_read_the_stored_word_where_the_table_of_labels_has_no_other(status):
    assert status.label == status.value


def test_a_result_is_scored_in_the_words_of_the_run_that_has_it():
    assert ResultStatus.SCORED.label == RunState.SCORED
