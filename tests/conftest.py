"""Services that several packages of tests share."""

from collections.abc import Iterator

import pytest

from tests.services.seaweedfs import SeaweedFS


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[SeaweedFS]:
    """One S3 server for the tests of this process; each test makes a bucket of its own."""
    with SeaweedFS() as server:
        yield server
