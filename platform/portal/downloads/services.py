"""Accepting terms, and putting a file of the organizers into the store."""

import hashlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import requests
from django.conf import settings
from django.db import transaction

from evaluator.errors import ErrorCode, ProblemError
from portal.accounts.models import User
from portal.audit.models import record
from portal.downloads.models import Acceptance, Download, Terms
from portal.uploads.parts import Part, part_size_bytes
from portal.uploads.store import Store
from portal.uploads.stores import current_folder, current_store

# Of the keys in the store, as it names folders.
PREFIX = "dl"
CHUNK_BYTES = 1024 * 1024
PART_TIMEOUT_S = 300


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


def send(path: Path, key: str, store: Store) -> str:
    """Send the file to the store in parts, and return its SHA-256.

    Raises:
        ProblemError: The store doesn't take it; nothing of it is left there.
    """
    size = path.stat().st_size
    part_bytes = part_size_bytes(size, settings.UPLOAD_PART_SIZE_BYTES)
    upload = store.begin(key, part_bytes)
    whole = hashlib.sha256()
    parts = []
    try:
        with path.open("rb") as file:
            for number in range(1, max(1, -(-size // part_bytes)) + 1):
                content = file.read(part_bytes)
                whole.update(content)
                part = Part(number, len(content), hashlib.sha256(content).hexdigest())
                _send_part(store, key, upload, part, content)
                parts.append(part)
        store.complete(key, upload, parts)
    except BaseException:
        store.abort(key, upload)
        raise
    return whole.hexdigest()


def _send_part(store: Store, key: str, upload: str, part: Part, content: bytes) -> None:
    if settings.STORE_BUCKET is None:
        current_folder().receive(upload, part, _chunks(content))
        return
    address = store.part_url(key, upload, part)
    response = requests.put(address.url, data=content, headers=address.headers, timeout=PART_TIMEOUT_S)
    if not response.ok:
        raise ProblemError.of(
            ErrorCode.STORE_UNAVAILABLE, where=f"part {part.number}", found=f"status {response.status_code}"
        )


def _chunks(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]
