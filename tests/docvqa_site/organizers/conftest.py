import pytest
from django.test import Client

from docvqa_site.accounts.models import User
from tests.docvqa_site.factories import sign_in_organizer


@pytest.fixture
def organizer(client: Client) -> User:
    """Who is signed in and may change tracks; a file whose pages need other permissions has its own."""
    return sign_in_organizer(client, "organize", "change_track")
