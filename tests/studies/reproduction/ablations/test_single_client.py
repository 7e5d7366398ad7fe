"""Who takes part where one client trains alone."""

import pytest

from starter_kit.federation.rounds import Client
from starter_kit.settings.configuration import load_settings
from tests.studies.reproduction.ablations.rows import CLIENTS, EPOCH_ROWS

ALL = [Client(number, {f"provider {number}": [number]}) for number in range(10)]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_that_is_named_trains_alone(client: int) -> None:
    row = EPOCH_ROWS[2, client]
    settings = load_settings(str(row.config_file), row.changes)
    plan = settings.plan(ALL)
    assert list(plan.clients) == [ALL[client]]
    assert plan.rounds == 1
    assert settings.model_dump()["local"]["epochs"] == 2
