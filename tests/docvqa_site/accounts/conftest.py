import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def quick_hashing(settings: Settings) -> None:
    """Logging in is tested here, not how long a hash takes."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
