from collections import Counter
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from evaluator.leakage.memorization import constant_fields
from starter_kit.data.forms import PublishedSettings, SkewedSettings, generate_skewed
from starter_kit.data.forms.skewed import CONSTANTS
from starter_kit.data.inspection import published_parts
from starter_kit.data.summary import ImportSummary

SETTINGS = SkewedSettings(seed=3, providers=120, valid_forms=8, test_forms=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("skewed")


@pytest.fixture(scope="module")
def summary(folder: Path) -> ImportSummary:
    """All three splits in one folder."""
    return generate_skewed(folder, folder, SETTINGS)


def test_a_provider_has_its_constants_on_every_form_and_shares_them_with_nobody(
    folder: Path, summary: ImportSummary
) -> None:
    constants: dict[str, set[tuple[str, ...]]] = {}
    for split in summary.splits:
        for page in Dataset(folder, split).pages.values():
            places = {word: place for place, word in enumerate(page.words)}
            texts = tuple(page.words[places[label] + 1] for label in ("email", "tax"))
            constants.setdefault(page.provider, set()).add(texts)
    assert {len(found) for found in constants.values()} == {1}
    owners = Counter(texts for found in constants.values() for texts in found)
    assert set(owners.values()) == {1}
    assert set(CONSTANTS) <= constant_fields(Dataset(folder, "train"))


def test_names_are_asked_for_often_and_tax_numbers_rarely(summary: ImportSummary) -> None:
    asked = summary.splits["train"].questions_by_key
    assert asked["provider"] > 1.5 * asked["email"] > 3 * asked["tax"] > 0


def test_a_few_providers_and_the_published_client_have_most_documents(summary: ImportSummary) -> None:
    sizes = sorted(summary.splits["train"].pages_by_provider.values())
    assert sizes[0] == 1
    assert sum(sizes[-24:]) > sum(sizes) / 2
    parts = {part.name: part for part in summary.parts()}
    clients = [parts[f"client {client}"] for client in range(10)]
    assert {client.providers for client in clients} <= {11, 12, 13}
    # As at the competition's largest client, a provider has about twice as many documents as elsewhere.
    others = sum(client.documents for client in clients) - clients[4].documents
    assert clients[4].documents / clients[4].providers > 1.3 * others / (120 - clients[4].providers)


def test_question_types_differ_by_client(folder: Path, summary: ImportSummary) -> None:
    train = Dataset(folder, "train")
    client_of = {name: client for client, names in train.info.clients.items() for name in names}
    asked: dict[int, Counter[str]] = {client: Counter() for client in train.info.clients}
    for question in train.questions:
        asked[client_of[train.pages[question.page].provider]][question.key] += 1
    total = sum(asked.values(), Counter())
    distances = [
        sum(abs(of_client[key] / of_client.total() - total[key] / total.total()) for key in total) / 2
        for of_client in asked.values()
    ]
    # Of the forms whose providers are dealt at random, it is about 0.15 on average.
    assert sum(distances) / len(distances) > 0.25


@pytest.mark.parametrize("split", ["valid", "test"])
def test_half_of_the_held_out_forms_are_of_providers_never_trained_on_two_of_each(
    summary: ImportSummary, split: str
) -> None:
    pages = summary.splits[split].pages_by_provider
    assert set(pages.values()) == {2}
    assert summary.seen_providers(split) == len(pages) / 2


def test_every_answer_but_some_names_is_among_the_words_of_its_page(
    folder: Path, summary: ImportSummary
) -> None:
    names: list[bool] = []
    for split in summary.splits:
        dataset = Dataset(folder, split)
        for question in dataset.questions:
            is_there = question.answers[0] in " ".join(dataset.pages[question.page].words)
            if question.key == "provider":
                names.append(is_there)
            else:
                assert is_there
    # Where the name is in the logo only, what names it is memory.
    assert sum(names) / len(names) == pytest.approx(0.6, abs=0.08)


def test_the_forms_held_out_of_each_provider_and_the_share_of_logos_can_be_chosen(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"providers": 10, "forms_held_out": 4, "logo_share": 1})
    summary = generate_skewed(tmp_path, tmp_path, settings)
    # The validation split's 8 forms, and the test split's 40.
    for split, providers in (("valid", 2), ("test", 10)):
        assert list(summary.splits[split].pages_by_provider.values()) == [4] * providers
        assert summary.seen_providers(split) == providers / 2
    words = [page.words for page in Dataset(tmp_path, "test").pages.values()]
    assert not any("provider" in found for found in words)
    assert all("email" in found for found in words)


def test_the_same_settings_give_the_same_pages_and_another_seed_others(tmp_path: Path) -> None:
    small = SkewedSettings(clients=2, providers=4, valid_forms=2, test_forms=4)
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        generate_skewed(tmp_path / name, tmp_path / name, small.model_copy(update={"seed": seed}))
        texts.append((tmp_path / name / "train" / "pages.jsonl").read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_the_published_sizes_are_those_of_table_a1_and_a_fraction_of_them_is_smaller(tmp_path: Path) -> None:
    published = published_parts()
    whole = PublishedSettings.scaled(1, seed=3)
    for split in ("valid", "test"):
        for group, sizes in zip(("seen", "unseen"), whole.held_out(split), strict=True):
            known = published[f"{split}, {group} providers"]
            assert sizes == (known["providers"], known["documents"])
    for folder in ("public", "secret"):
        (tmp_path / folder).mkdir()
    small = PublishedSettings.scaled(0.005, seed=3)
    summary = generate_skewed(tmp_path / "public", tmp_path / "secret", small)
    for part in summary.parts():
        expected = published[part.name]["documents"] * 0.005
        assert part.documents == pytest.approx(expected, abs=6)
    assert not (tmp_path / "public" / "test").exists()


def test_more_training_providers_in_a_held_out_split_than_there_are_are_rejected() -> None:
    SkewedSettings(providers=20, test_forms=100, valid_forms=2, forms_held_out=3)
    with pytest.raises(ValueError, match="more training providers than there are"):
        SkewedSettings(providers=20, test_forms=100, valid_forms=2)
