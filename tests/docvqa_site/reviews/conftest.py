import pytest
from django.test import Client

from docvqa_site.accounts.models import User
from docvqa_site.submissions.models import Submission
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_artifact, make_reviewer, scored_submission


@pytest.fixture
def submission(db: None) -> Submission:
    """A scored one whose proof waits for reviewers."""
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
    return submission


@pytest.fixture
def reviewer(client: Client, db: None) -> User:
    """A reviewer who is signed in."""
    reviewer = make_reviewer()
    client.force_login(reviewer)
    return reviewer
