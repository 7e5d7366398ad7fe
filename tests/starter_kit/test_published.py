"""The published numbers agree with each other wherever the papers print a quantity twice, or its parts."""

import pytest

from starter_kit.published import Source, Table, published
from starter_kit.settings.configuration import load_settings

ALL = published()
A1 = ALL.table(Source.COMPETITION, "A1")


def values(table: Table, column: str) -> dict[str, float]:
    return {number.row: number.value for number in table.numbers() if number.column == column}


@pytest.mark.parametrize("name", ["1", "A5"])
@pytest.mark.parametrize("metric", ["accuracy", "anls"])
def test_differences_are_those_of_seen_and_unseen_providers(name: str, metric: str) -> None:
    table = ALL.table(Source.PRIVACY, name)
    seen, unseen = values(table, f"{metric}_in"), values(table, f"{metric}_out")
    for row, printed in values(table, f"{metric}_difference").items():
        assert abs(seen[row] - unseen[row]) == pytest.approx(printed, abs=0.011)


def test_both_papers_print_the_same_counts_of_the_data() -> None:
    printed = ALL.table(Source.PRIVACY, "A1").rows
    for row, counts in A1.rows.items():
        if row != "valid":
            assert printed[row] == counts
    assert values(A1, "providers")["valid"] == 1268 + 963
    assert values(A1, "documents")["valid"] == 2561 + 975


def test_the_totals_of_the_data_are_larger_than_all_that_the_table_lists() -> None:
    totals = ALL.table(Source.COMPETITION, "Section 3.1")
    red = [row for row in ALL.table(Source.PRIVACY, "A1").rows if row.startswith("red")]
    for column in ("documents", "pages", "questions"):
        listed = sum(values(A1, column).values())
        listed += sum(values(ALL.table(Source.PRIVACY, "A1"), column)[row] for row in red)
        assert 1 < values(totals, column)["all"] / listed < 1.25


def test_the_training_providers_are_those_of_the_hyperparameters() -> None:
    clients = [count for row, count in values(A1, "providers").items() if row.startswith("client")]
    everyone = ALL.table(Source.PRIVACY, "A8").number("VT5_C", "providers_per_round").value
    assert sum(clients) == everyone == 4149


def test_the_changes_of_track_1_are_relative_to_its_baseline() -> None:
    table = ALL.table(Source.COMPETITION, "2")
    anls = values(table, "anls")
    for row, printed in values(table, "anls_change").items():
        assert 100 * (anls[row] / anls["baseline"] - 1) == pytest.approx(printed, abs=0.011)


def test_totals_of_communication_are_messages_times_their_size() -> None:
    table = ALL.table(Source.COMPETITION, "A2")
    sizes, clients, rounds = (values(table, name) for name in ("message", "clients_per_round", "rounds"))
    for row, printed in values(table, "communication").items():
        assert 2 * clients[row] * rounds[row] * sizes[row] == pytest.approx(printed, rel=0.01)


def test_the_first_target_set_of_each_table_is_the_same() -> None:
    a6, a7, a8 = (ALL.table(Source.PRIVACY, name) for name in ("A6", "A7", "Figure A.8"))
    apk = a6.number("VT5_C: APK, G1+G2+G3", "s_5").value
    assert a8.number("s = 5", "accuracy").value == apk
    assert a7.number("RF: accuracy, NLS, loss, confidence, gains", "accuracy").value == apk
    assert a7.number("KM: accuracy, NLS", "accuracy").value == a6.number("VT5_C: AZK, G1", "s_5").value


def test_every_row_with_results_names_a_config_that_loads() -> None:
    trained = [
        ("A2", Source.PRIVACY),
        *((name, Source.COMPETITION) for name in ("2", "3", "A2", "Section 5.4")),
    ]
    for name, source in trained:
        table = ALL.table(source, name)
        assert table.configs.keys() == table.rows.keys()
    configs = {config for table in ALL.tables for config in table.configs.values()}
    assert {load_settings(config).experiment for config in configs} == {name[5:] for name in configs}


def test_a_row_without_a_value_for_every_column_is_rejected() -> None:
    with pytest.raises(ValueError, match="table 1 of kit: a"):
        Table(source=Source.KIT, table="1", title="", columns={"x": "", "y": ""}, rows={"a": [1]})
