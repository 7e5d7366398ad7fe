import pytest
from django.db import transaction

from docvqa_site.audit.models import AuditEntry
from docvqa_site.audit.transitions import IllegalTransitionError
from docvqa_site.uploads import services
from docvqa_site.uploads.models import UploadState
from docvqa_site.uploads.states import UPLOAD_TRANSITIONS, move_upload
from tests.docvqa_site.factories import make_team, make_upload
from tests.docvqa_site.uploads.sending import cut, send, start

pytestmark = pytest.mark.django_db

CONTENT = b"0123456789abcdefghij!"


def test_every_state_is_in_the_table():
    assert set(UPLOAD_TRANSITIONS) == set(UploadState)


@pytest.mark.parametrize("state", [UploadState.OPEN, UploadState.COMPLETED])
def test_a_change_that_the_table_does_not_allow_is_an_error(state):
    upload = make_upload(make_team(), state=UploadState.ABORTED)
    with pytest.raises(IllegalTransitionError, match="can't go from aborted"), transaction.atomic():
        move_upload(upload, state)
    upload.refresh_from_db()
    assert upload.state == UploadState.ABORTED


@pytest.mark.django_db(transaction=True)
def test_states_change_inside_a_transaction_only():
    with pytest.raises(IllegalTransitionError, match="inside a transaction"):
        move_upload(make_upload(make_team()), UploadState.ABORTED)


def test_every_change_leaves_an_audit_entry(client):
    upload = start(make_team(), CONTENT)
    send(client, upload, cut(CONTENT))
    services.complete(upload, actor=upload.created_by)
    services.discard(upload)
    entries = AuditEntry.objects.filter(object_id=str(upload.pk)).order_by("pk")
    assert [(entry.action, entry.actor, entry.details) for entry in entries] == [
        ("upload.completed", upload.created_by, {"before": "open"}),
        ("upload.aborted", None, {"before": "completed"}),
    ]
