"""A copy of all that the site stores about a person."""

from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import all_addresses
from docvqa_site.audit.models import readable_details
from docvqa_site.people.holdings import HOLDINGS, Person


def person_of(user: User) -> Person:
    return Person(all_addresses(user), user)


def export(person: Person) -> dict[str, Any]:
    """Return it as JSON values and times, by where it is stored. Secrets and other people's addresses aren't in it."""
    stored = {name: holding.export(person) for name, holding in HOLDINGS.items()}
    own = Q(person=person.user.pk) if person.user else Q()
    for address in person.addresses:
        own |= Q(text__iexact=address)
    entries = stored["audit.AuditEntry.actor"]
    for entry, details in zip(entries, readable_details([e["details"] for e in entries], own), strict=True):
        entry["details"] = details
    return {
        "site": settings.SITE_URL,
        "exported_at": timezone.now(),
        "stored": {
            name: {
                "what": HOLDINGS[name].what,
                "when_the_account_is_deleted": HOLDINGS[name].fate,
                "rows": rows,
            }
            for name, rows in stored.items()
        },
    }
