from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docvqa_site.accounts.services import create_token
from docvqa_site.challenge.definitions import DEFAULT_DEFINITIONS, read_definitions, save_tracks
from docvqa_site.challenge.models import Track
from docvqa_site.teams.models import Team
from starter_kit.site.client import SiteClient
from tests.docvqa_site.factories import make_team
from tests.services.live_site import LiveSite
from tests.starter_kit.pocket_data import CLIENTS, make_base, make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder; see `make_data`. Not to be changed."""
    return make_data(tmp_path_factory.mktemp("pocket") / "data")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base weights; see `make_base`. Not to be changed."""
    return make_base(tmp_path_factory.mktemp("pocket") / "base")


@pytest.fixture
def site(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[LiveSite]:
    """The real site with the shipped tracks for the pocket data's clients, a store of its own, and small parts."""
    settings.STORE_FOLDER = tmp_path / "store"
    settings.UPLOAD_PART_SIZE_BYTES = 1000
    save_tracks(read_definitions(DEFAULT_DEFINITIONS))
    Track.objects.update(clients=len(CLIENTS))
    with LiveSite() as site:
        yield site


@pytest.fixture
def team(site: LiveSite) -> Team:
    """A team of one member at the site."""
    return make_team()


@pytest.fixture
def token(team: Team) -> str:
    """An API token of the team's member."""
    return create_token(team.memberships.get().user, "test")[1]


@pytest.fixture
def site_client(site: LiveSite, token: str) -> SiteClient:
    """The member's access to the site, without long pauses between tries."""
    return SiteClient(site.url, token, first_pause_s=0.001)
