"""How long mails that were given up are kept. Delivered ones are deleted at once."""

from datetime import datetime

from docvqa_site.mail.models import OutgoingMail
from docvqa_site.periods import cutoff


def remove_mails(now: datetime, limit: int) -> int:
    """Remove mails that were given up long ago, at most `limit`; returns how many. Those that wait stay."""
    before = cutoff("mails", now)
    if before is None:
        return 0
    given_up = OutgoingMail.objects.filter(failed_at__lt=before).order_by("failed_at", "pk")
    return OutgoingMail.objects.filter(pk__in=list(given_up.values_list("pk", flat=True)[:limit])).delete()[0]
