"""The store that the settings name."""

from functools import cache
from pathlib import Path

from django.conf import settings

from docvqa_site.uploads.folder_store import FolderStore
from docvqa_site.uploads.location import Bucket
from docvqa_site.uploads.store import Store


def current_store() -> Store:
    bucket: Bucket | None = settings.STORE_BUCKET
    return current_folder() if bucket is None else _bucket_store(bucket)


def current_folder() -> FolderStore:
    """Return the folder store; a site with a bucket has none that anything is in."""
    return FolderStore(Path(settings.STORE_FOLDER), group_readable=bool(settings.ACCEL_PREFIX))


@cache
def _bucket_store(bucket: Bucket) -> Store:
    # An embedded site shall not wait for this import, nor hold it in memory. The store is kept, because making a
    # client takes long; it may be used by several threads at once.
    from docvqa_site.uploads.s3_store import S3Store

    return S3Store(bucket)
