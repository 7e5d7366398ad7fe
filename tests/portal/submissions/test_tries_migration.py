"""A database with challenges that an earlier version drew learns when that was."""

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.audit.models import AuditEntry, record
from portal.submissions.models import RunToken
from tests.portal.factories import make_team, make_token
from tests.portal.submissions.drafts import make_private_track
from tests.portal.submissions.test_artifact_migration import latest, migrate

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = [("submissions", "0004_plain_help_texts")]

__all__ = ["latest"]


def test_challenges_are_dated_by_the_audit_log_or_else_by_their_tokens(
    latest: list[tuple[str, str]],
) -> None:
    team, track = make_team(), make_private_track()
    earlier = timezone.now() - timedelta(days=3)
    noted, silent = (make_token(team, track, record_sha256="5" * 64, issued_at=earlier) for _ in range(2))
    unused = make_token(team, track)
    entry = record(None, "run_token.challenged", noted)
    migrate(BEFORE)
    migrate(latest)
    dates = dict(RunToken.objects.values_list("pk", "challenged_at"))
    assert dates == {noted.pk: AuditEntry.objects.get(pk=entry.pk).at, silent.pk: earlier, unused.pk: None}
