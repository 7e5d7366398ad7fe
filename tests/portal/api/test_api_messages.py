"""The messages of the API and the site's models agree on the words that both use."""

import pytest

from evaluator.messages.api import RunState, SubmissionState, UploadStatus
from portal.submissions import models as submissions
from portal.uploads.models import UploadState


@pytest.mark.parametrize(
    ("of_the_api", "of_the_site"),
    [
        (list(RunState), submissions.RunState.values),
        (list(SubmissionState), submissions.SubmissionState.values),
        (UploadStatus.model_fields["state"].annotation.__args__, UploadState.values),
    ],
)
def test_the_api_knows_every_state_of_the_site(of_the_api, of_the_site):
    assert set(of_the_api) == set(of_the_site)
