"""Accepting terms, and putting a file of the organizers into the store."""

import secrets
from pathlib import Path

from django.db import transaction

from portal.accounts.models import User
from portal.audit.models import record
from portal.downloads.models import Acceptance, Download, Terms
from portal.uploads.sending import send
from portal.uploads.stores import current_store

# Of the keys in the store, as it names folders.
PREFIX = "dl"


@transaction.atomic
def accept(terms: Terms, user: User) -> Acceptance:
    """Record that the user accepts this version of the terms; the first time counts."""
    acceptance, is_new = Acceptance.objects.get_or_create(terms=terms, user=user)
    if is_new:
        record(user, "terms.accepted", terms, title=terms.title, version=terms.version)
    return acceptance


def has_accepted(user: User | None, terms: Terms | None) -> bool:
    """Return whether nothing is left to accept; `user` is None for somebody who hasn't logged in."""
    if terms is None:
        return True
    return user is not None and Acceptance.objects.filter(terms=terms, user=user).exists()


def add_download(path: Path, slug: str, **fields: object) -> Download:
    """Put the file into the store and offer it under `slug`; one of that name is replaced, and its file removed.

    Raises:
        ProblemError: The store doesn't take the file.
    """
    key = f"{PREFIX}/{secrets.token_hex(16)}"
    digest = send(path, key, current_store())
    stored = {
        "filename": path.name,
        "size_bytes": path.stat().st_size,
        "sha256": digest,
        "store_key": key,
    }
    with transaction.atomic():
        replaced = list(Download.objects.filter(slug=slug).values_list("store_key", flat=True))
        download, is_new = Download.objects.update_or_create(slug=slug, defaults={**fields, **stored})
        record(None, "download.added" if is_new else "download.replaced", download, sha256=digest)
    for key in replaced:
        current_store().delete(key)
    return download
