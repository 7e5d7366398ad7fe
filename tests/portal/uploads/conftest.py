from uuid import uuid4

import pytest

from portal.uploads.location import Bucket
from tests.services.seaweedfs import ACCESS_KEY, REGION, SECRET_KEY, SeaweedFS


@pytest.fixture(autouse=True)
def store_folder(settings, tmp_path):
    """A store of one's own, with parts so small that a few bytes make several."""
    settings.STORE_FOLDER = tmp_path / "store"
    settings.UPLOAD_PART_SIZE_BYTES = 10
    return settings.STORE_FOLDER


def place_in(server: SeaweedFS) -> Bucket:
    """A place of one's own in the server's bucket."""
    return Bucket(
        name=server.bucket,
        prefix=f"{uuid4().hex}/",
        region=REGION,
        endpoint=server.url,
        public_endpoint=server.url,
        path_style=True,
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
    )


@pytest.fixture
def bucket(seaweedfs):
    """A place of one's own on a real S3 server."""
    return place_in(seaweedfs)
