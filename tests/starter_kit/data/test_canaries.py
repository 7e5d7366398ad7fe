"""Canaries in released data: who is in it, what the escrow keeps, and what can't be seen from outside."""

from pathlib import Path

import pytest

from evaluator.auditing.escrow import SPLIT, Escrow
from evaluator.docvqa.dataset import Dataset, DatasetInfo, write_info
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.data.canaries import CanarySettings, add_canaries
from starter_kit.data.synthetic.providers import all_names, providers
from tests.starter_kit.pocket_data import PROVIDERS, make_data

SETTINGS = CanarySettings(canaries=100, pages=1)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("canaries")
    source = make_data(folder / "source")
    add_canaries(source, folder / "public", folder / "escrow", SETTINGS)
    return source, folder / "public", folder / "escrow"


def test_the_winners_are_training_providers_and_the_others_nowhere(folders: tuple[Path, Path, Path]) -> None:
    _, public, escrow_folder = folders
    escrow = Escrow.read(escrow_folder / "escrow.json")
    released = {name for name, coin in escrow.is_released.items() if coin}
    training = Dataset(public, "train")
    assert set(training.questions_by_provider()) == released | set(PROVIDERS)
    in_clients = [name for names in training.info.clients.values() for name in names]
    assert len(in_clients) == len(set(in_clients))
    assert set(in_clients) == released | set(PROVIDERS) | {"Ghost"}
    everywhere = (public / "train" / "pages.jsonl").read_text() + (public / "dataset.json").read_text()
    assert not [name for name in escrow.is_released.keys() - released if name in everywhere]
    # Fair coins: fewer than 25 or more than 75 of 100 come once in 10 million draws.
    assert 25 <= len(released) <= 75
    assert (len(escrow.is_released), escrow.guesses) == (100, 20)


def test_released_documents_are_those_that_an_audit_asks_about(folders: tuple[Path, Path, Path]) -> None:
    _, public, escrow_folder = folders
    escrow = Escrow.read(escrow_folder / "escrow.json")
    kept, training = Dataset(escrow_folder, SPLIT), Dataset(public, "train")
    escrow.check_data(kept)
    assert set(kept.questions_by_provider()) == set(escrow.is_released)
    assert {len(questions) for questions in kept.questions_by_provider().values()} == {3}
    shared = {name: page for name, page in kept.pages.items() if escrow.is_released[page.provider]}
    assert {name: training.pages[name] for name in shared} == shared
    for name in shared:
        assert training.image_path(name).read_bytes() == kept.image_path(name).read_bytes()
    assert len(list((public / "images").iterdir())) == 12 + len(shared)


def test_the_data_that_was_there_is_kept(folders: tuple[Path, Path, Path]) -> None:
    source, public, _ = folders
    before, after = Dataset(source, "train"), Dataset(public, "train")
    assert {question.question_id for question in before.questions} <= {q.question_id for q in after.questions}
    assert len({question.question_id for question in after.questions}) == len(after.questions)
    assert Dataset(source, "valid").sha256() == Dataset(public, "valid").sha256()


def test_the_escrow_file_belongs_to_its_own_canaries(folders: tuple[Path, Path, Path]) -> None:
    _, public, escrow_folder = folders
    with pytest.raises(ProblemError) as caught:
        Escrow.read(escrow_folder / "escrow.json").check_data(Dataset(public, "train"))
    assert caught.value.problem.code == ErrorCode.AUDIT_ESCROW


def test_data_without_clients_or_without_free_names_is_rejected(tmp_path: Path) -> None:
    source = make_data(tmp_path / "source")
    names = [provider.name for provider in providers(1, len(all_names()))]
    for clients, code in (
        ({}, ErrorCode.DATASET_FORMAT),
        ({0: [*PROVIDERS, *names[:950]]}, ErrorCode.AUDIT_CANARIES),
    ):
        write_info(source, DatasetInfo(name="pocket", clients=clients))
        with pytest.raises(ProblemError) as caught:
            add_canaries(source, tmp_path / "public", tmp_path / "escrow", SETTINGS)
        assert caught.value.problem.code == code
        assert not (tmp_path / "public").exists()
