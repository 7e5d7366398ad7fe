"""Puts a file of the site's own into the store, by the way that uploads go: every part is compared with its SHA-256."""

import hashlib
from pathlib import Path

import requests
from django.conf import settings

from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.parts import Part, part_size_bytes
from docvqa_site.uploads.store import Store
from evaluator.errors import ErrorCode, ProblemError

PART_TIMEOUT_S = 300


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
    if isinstance(store, FolderStore):
        store.receive(upload, part, [content])
        return
    address = store.part_url(key, upload, part)
    response = requests.put(address.url, data=content, headers=address.headers, timeout=PART_TIMEOUT_S)
    if not response.ok:
        raise ProblemError.of(
            ErrorCode.STORE_UNAVAILABLE, where=f"part {part.number}", found=f"status {response.status_code}"
        )
