import pytest

from starter_kit.published import BYTES
from starter_kit.settings.configuration import load_settings
from tests.studies.published_bytes import TOTALS, Total


@pytest.mark.parametrize("total", [total for total in TOTALS if total.unit], ids=lambda total: total.config)
def test_the_printed_total_is_the_number_of_bytes_in_its_unit(total: Total) -> None:
    assert total.published_bytes
    printed = total.published_bytes / BYTES[total.unit]
    # As printed, cut or rounded.
    assert abs(printed - total.printed.value) < (5 if total.printed.value.is_integer() else 0.01)


@pytest.mark.parametrize("total", TOTALS, ids=lambda total: total.config)
def test_the_config_exchanges_as_many_messages(total: Total) -> None:
    settings = load_settings(total.config)
    clients = settings.model_dump()["clients_per_round"]
    assert (2 * settings.rounds * clients, clients) == (total.messages, total.first_downloads)


def test_the_gigabytes_of_the_baselines_are_binary() -> None:
    baseline = TOTALS[0]
    assert baseline.published_bytes == 40 * 1_198_728_192
    assert baseline.counted_bytes == 36_105_461_760
